"""Trains with Hugging Face's Trainer; run by test_torch_adapters.py."""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import Dataset
from transformers import TrainerCallback, TrainingArguments

from adapted import ACCUMULATED, BATCH, EPOCHS, SAMPLES, STEPS, Diary, Points, network
from boa.train.torch.transformers import ElasticTrainer


class Rows(Dataset[dict[str, Any]]):
    """The points as the Trainer wants them."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> dict[str, Any]:
        number, x, y = Points()[index]
        return {"index": number, "x": x, "labels": y}


class Model(nn.Module):
    """`trainer` is set once there is one."""

    trainer: Any = None

    def __init__(self, diary: Diary) -> None:
        super().__init__()
        self.net, self.diary = network(diary.dropout), diary
        self.accepts_loss_kwargs = diary.tokens

    def forward(
        self, index: Any, x: Any, labels: Any, num_items_in_batch: Any = None
    ) -> dict[str, torch.Tensor]:
        step, weight = Model.trainer.state.global_step, Model.trainer.weight
        if self.training:
            self.diary.batch(step // STEPS, step, index, weight)
        found = self.net(x).squeeze(1)
        if num_items_in_batch is None:
            return {"loss": mse_loss(found, labels)}
        counted = labels != -100
        total = ((found - labels) ** 2 * counted).sum()
        return {"loss": total / num_items_in_batch}


class Marks(TrainerCallback):  # type: ignore[misc]
    def __init__(self, diary: Diary) -> None:
        self.diary = diary

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.diary.note(ended=round(state.epoch))

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.diary.note(validated=round(state.epoch))


def main() -> None:
    diary = Diary()
    model = Model(diary)
    sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ExponentialLR(sgd, 0.97)
    trainer = ElasticTrainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(diary.folder / "out"),
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=BATCH // ACCUMULATED,
            gradient_accumulation_steps=ACCUMULATED,
            max_grad_norm=0.0,
            eval_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
            use_cpu=True,
        ),
        train_dataset=Rows(),
        eval_dataset=Rows(),
        optimizers=(sgd, schedule),
        callbacks=[Marks(diary)],
        save_every_s=diary.save_every_s,
    )
    Model.trainer = trainer
    trainer.train()
    diary.end(model.net, float(schedule.get_last_lr()[0]))


if __name__ == "__main__":
    main()
