"""Trains with Lightning; run by test_torch_adapters.py."""

from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader

from adapted import ACCUMULATED, BATCH, EPOCHS, Diary, Points, network
from boa.train.torch.lightning import ElasticCallback


class Module(LightningModule):
    def __init__(self, diary: Diary, elastic: ElasticCallback) -> None:
        super().__init__()
        self.net = network(diary.dropout)
        self.diary, self.elastic = diary, elastic

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        indices, x, y = batch
        self.diary.batch(self.current_epoch, self.global_step, indices, self.elastic.weight)
        return mse_loss(self.net(x).squeeze(1), y)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        _, x, y = batch
        self.log("validation", mse_loss(self.net(x).squeeze(1), y), sync_dist=True)

    def on_validation_epoch_end(self) -> None:
        if not self.trainer.sanity_checking:
            self.diary.note(validated=self.current_epoch)

    def on_train_epoch_end(self) -> None:
        self.diary.note(ended=self.current_epoch)

    def configure_optimizers(self) -> Any:
        sgd = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        schedule = torch.optim.lr_scheduler.ExponentialLR(sgd, 0.97)
        return {"optimizer": sgd, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def main() -> None:
    diary = Diary()
    elastic = ElasticCallback(
        batch_size=BATCH,
        accumulate_grad_batches=ACCUMULATED,
        save_every_s=diary.save_every_s,
    )
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=EPOCHS,
        callbacks=[elastic],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **elastic.placement,
    )
    module = Module(diary, elastic)
    trainer.fit(module, elastic.loader(Points()), DataLoader(Points(), batch_size=10))
    diary.end(module.net, float(trainer.lr_scheduler_configs[0].scheduler.get_last_lr()[0]))


if __name__ == "__main__":
    main()
