"""Hugging Face's Trainer on any width: one name in the script is another.

    from boa.train.torch.transformers import ElasticTrainer

    trainer = ElasticTrainer(model=model, args=args, train_dataset=dataset)
    trainer.train()

The arguments are those for one GPU: `per_device_train_batch_size` times
`gradient_accumulation_steps` is the batch of all GPUs together, at every width. Other trainers with
the same loop, TRL's say, become elastic by `elastic(SFTTrainer)`. See `docs/migration.md`.
"""

import json
import os
import tempfile
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.data import RandomSampler, SequentialSampler
from transformers import Trainer, TrainerState, TrainingArguments
from transformers import trainer as loop
from transformers.trainer_callback import ExportableState, TrainerControl

from boa.train import session
from boa.train.torch.companion import SAVE_EVERY_S, Companion
from boa.train.torch.data import Cell, Position
from boa.train.torch.measuring import Measuring, scale_of
from boa.train.torch.noise import Statistics
from boa.train.torch.ranks import join

IGNORED = -100
"""The label that losses leave out."""
NEEDED = ("_init_training_state", "_prepare_for_training", "_run_epoch", "_finalize_training")
"""Parts of the Trainer's loop that are taken over here."""


class ElasticTraining:
    """Before a Trainer among the bases of a class. `batch_size`: of all ranks together, where it is
    not what the arguments say; `noise`: whether the gradient's noise is measured."""

    accelerator: Any
    optimizer: Any
    lr_scheduler: Any
    state: Any
    callback_handler: Any
    model_accepts_loss_kwargs: Any
    compute_loss_func: Any
    loss_is_scaled_for_ga: Any
    current_gradient_accumulation_steps: int

    def __init__(
        self,
        *given: Any,
        batch_size: int | None = None,
        save_every_s: float = SAVE_EVERY_S,
        noise: bool = True,
        **named: Any,
    ) -> None:
        args = named.get("args") or next((g for g in given if _is_arguments(g)), None)
        if args is None:
            args = named["args"] = TrainingArguments()
        if missing := [name for name in NEEDED if not hasattr(Trainer, name)]:
            raise ImportError(
                f"this transformers has no Trainer.{missing[0]}; expected >= 5.22, < 6"
            )
        ranks = join()
        if args.world_size != ranks.world_size:
            raise RuntimeError(
                f"transformers runs as {args.world_size} process(es), the job as "
                f"{ranks.world_size}; on machines without GPUs give TrainingArguments(use_cpu=True)"
            )
        most = args.per_device_train_batch_size
        batch = batch_size or most * args.gradient_accumulation_steps
        if batch < 1:
            raise ValueError(f"batch_size: got {batch}; expected at least 1")
        # no GPU takes more than on one GPU, and no more passes than that needs
        passes = max(-(-batch // (most * ranks.world_size)), 1)
        args.gradient_accumulation_steps = passes
        args.per_device_train_batch_size = -(-batch // (passes * ranks.world_size))
        args.average_tokens_across_devices = True
        self._measuring = Measuring(ranks, batch_size=batch, noise=noise)
        self._companion = Companion(
            ranks,
            batch_size=batch,
            seed=args.seed if args.data_seed is None else args.data_seed,
            save_every_s=save_every_s,
            more=self._measuring,
        )
        self._passes = passes - 1
        self._cells: deque[Cell] = deque()
        self._prepared: tuple[nn.Module, Any] | None = None
        self._factor = 1.0
        super().__init__(*given, **named)

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the gradient, as far as they are known."""
        return self._measuring.statistics

    # Data

    def get_train_dataloader(self) -> "TransformersBatches":
        """The rest of the epoch, every sample once. What the Trainer makes of the data set (its
        columns, its collator, its sampler) stays."""
        prepare, self.accelerator.prepare = self.accelerator.prepare, lambda loader: loader
        try:
            made = super().get_train_dataloader()  # type: ignore[misc]
        finally:
            self.accelerator.prepare = prepare
        if self._companion.attached:
            return TransformersBatches(self, self._companion, made.dataset)
        options: dict[str, Any] = {
            "collate_fn": made.collate_fn,
            "num_workers": made.num_workers,
            "pin_memory": made.pin_memory,
            "drop_last": made.drop_last,
        }
        if made.num_workers:
            options["prefetch_factor"] = made.prefetch_factor
            options["persistent_workers"] = made.persistent_workers
        shuffle = None
        if isinstance(made.sampler, RandomSampler | SequentialSampler):
            shuffle = isinstance(made.sampler, RandomSampler)
        else:
            options["sampler"] = made.sampler
        self._companion.attach(made.dataset, passes=self._passes, shuffle=shuffle, **options)
        return TransformersBatches(self, self._companion, made.dataset)

    def drawn(self, batch: Any) -> Any:
        """The batch, for `TransformersBatches`, which fetches ahead: all of a step come before the
        first is trained on."""
        cell, self._companion.cell = self._companion.cell, None
        assert cell is not None
        self._cells.append(cell)
        if not cell.samples and self._counts_items and "labels" in batch:
            batch["labels"] = torch.full_like(batch["labels"], IGNORED)
        return batch

    @property
    def _counts_items(self) -> bool:
        """Whether the loss may be divided by the number of labels in all of the step."""
        return bool(self.model_accepts_loss_kwargs or self.compute_loss_func is not None)

    # The loop, where it begins, at every epoch, at every batch, and where it ends

    def train(self, resume_from_checkpoint: Any = None, *given: Any, **named: Any) -> Any:
        """Train to the end, from the newest checkpoint on, in the middle of an epoch too.

        Another checkpoint is taken only by who loads it into the model before: one that is given
        here is of an earlier attempt, and passed over.
        """
        has_own = self._companion.has_checkpoint
        if resume_from_checkpoint and not has_own and not session.context().job_id:
            raise ValueError(
                f"resume_from_checkpoint: got {resume_from_checkpoint!r}; expected none: "
                "BOA_CHECKPOINT_DIR says where an elastic training goes on from"
            )
        return super().train(None, *given, **named)  # type: ignore[misc]

    def _init_training_state(
        self, max_steps: int, updates: int, epochs: int, _checkpoint: Any, trial: Any
    ) -> tuple[int, int]:
        begin: tuple[int, int] = super()._init_training_state(  # type: ignore[misc]
            max_steps, updates, epochs, None, trial
        )
        batches = self.get_train_dataloader()
        self._prepared = super()._prepare_for_training(max_steps, batches, None)  # type: ignore[misc]
        model, plain = self._prepared[0], getattr(self.optimizer, "optimizer", self.optimizer)
        self._measuring.take(self._companion, model, plain)
        if not hasattr(self, "_backward"):
            self._backward = self.accelerator.backward
            self.accelerator.backward = self._propagate
        if not self._measuring.adapts:
            session.total(max_steps)
        found = self._companion.load(model, [plain])
        if found is None:
            return begin
        self._restore(found)
        self.state.init_training_references(self, max_steps, epochs, trial)
        at = self._companion.position
        return at.number, -(-at.cursor // self._companion.batch_size) * (self._passes + 1)

    def _prepare_for_training(self, *_given: Any) -> tuple[nn.Module, Any]:
        assert self._prepared is not None
        prepared, self._prepared = self._prepared, None
        return prepared

    @property
    def weight(self) -> float:
        """Weight of this batch's mean loss. 1 where all shares are equal."""
        cell = self._companion.cell
        return 1.0 if cell is None else cell.weight * (self._passes + 1)

    def _run_epoch(self, *, epoch: int, **given: Any) -> None:
        session.epoch(epoch)
        if self._companion.position.number < epoch:
            self._companion.position = Position(epoch)  # the one before was cut short
        # anything but None: the loop counts on from the batches that are done of this epoch
        given["resume_from_checkpoint"] = "boa"
        super()._run_epoch(epoch=epoch, **given)  # type: ignore[misc]

    def _load_rng_state(self, _checkpoint: Any) -> None:
        """Random numbers come with the first batch."""

    def training_step(
        self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        cell = self._companion.cell = self._cells.popleft()
        passes = self.current_gradient_accumulation_steps
        scaled = self.loss_is_scaled_for_ga
        if scaled is None:
            scaled = self._counts_items and (
                num_items_in_batch is not None or self.compute_loss_func is not None
            )
        # a loss over all labels of the step is whole already; a mean counts by its samples
        self._factor = (1.0 if cell.samples else 0.0) if scaled else cell.weight * passes
        loss: torch.Tensor = super().training_step(model, inputs, num_items_in_batch)  # type: ignore[misc]
        mean = loss / cell.weight if scaled and cell.samples else loss * (0.0 if scaled else passes)
        if cell.last:
            worth, metrics = self._measuring.stepped(cell)
            self._companion.stepped(mean, worth, **metrics)
        else:
            self._companion.stepped(mean)
        return loss

    def _propagate(self, loss: torch.Tensor, **options: Any) -> None:
        """Accelerate's backward, and a look at the gradient."""
        self._backward(loss if self._factor == 1.0 else loss * self._factor, **options)
        if self._companion.cell is not None:
            self._measuring.propagated(self._companion.cell, scale_of(self.accelerator.scaler))

    def act(self) -> None:
        """Save or stop here if it is time: for `TransformersBatches`, between two steps."""
        self._companion.act(self._state)

    def _finalize_training(self, *given: Any) -> Any:
        self._companion.finish(self._companion.position.number, self._state())
        return super()._finalize_training(*given)  # type: ignore[misc]

    def log(self, logs: dict[str, Any], *given: Any, **named: Any) -> None:
        """As ever; and told to the service."""
        super().log(logs, *given, **named)  # type: ignore[misc]
        session.report(**{n: v for n, v in logs.items() if n not in ("loss", "epoch", "step")})

    # What is kept of it

    def _state(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="boa-") as folder:
            path = os.path.join(folder, "state.json")
            self.state.save_to_json(path)
            with open(path, encoding="utf-8") as file:
                state = file.read()
        scaler = self.accelerator.scaler
        return {
            "state": state,
            "callbacks": json.dumps([each.state() for each in self._stateful()]),
            "scheduler": self.lr_scheduler.state_dict(),
            "scaler": None if scaler is None else scaler.state_dict(),
            "measuring": self._measuring.state_dict(),
        }

    def _restore(self, found: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory(prefix="boa-") as folder:
            path = os.path.join(folder, "state.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(found["state"])
            self.state = TrainerState.load_from_json(path)
        for callback, state in zip(self._stateful(), json.loads(found["callbacks"]), strict=False):
            for name, value in state.get("attributes", {}).items():
                setattr(callback, name, value)
        self.lr_scheduler.load_state_dict(found["scheduler"])
        if self.accelerator.scaler is not None and found["scaler"]:
            self.accelerator.scaler.load_state_dict(found["scaler"])
        self._measuring.load_state_dict(found["measuring"])

    def _stateful(self) -> list[Any]:
        """Callbacks with a state; what the loop is asked to do next is none."""
        found = self.callback_handler.callbacks
        return [
            each
            for each in found
            if isinstance(each, ExportableState) and not isinstance(each, TrainerControl)
        ]


class ElasticTrainer(ElasticTraining, Trainer):  # type: ignore[misc]
    """The Trainer, at any width."""


def elastic(base: type) -> type:
    """A Trainer of another library's, TRL's say, at any width: `elastic(SFTTrainer)(…)`.

    Those that draw their data in a way of their own (in reinforcement learning, say) are refused.
    """
    if not issubclass(base, Trainer):
        raise TypeError(
            f"elastic: got {base.__name__}; expected a subclass of transformers.Trainer"
        )
    own = [name for name in ("get_train_dataloader", *NEEDED) if name in _own(base)]
    if own:
        raise TypeError(
            f"elastic: {base.__name__} has a {own[0]} of its own; expected a trainer that leaves "
            "its data and its loop to transformers"
        )
    return type(f"Elastic{base.__name__}", (ElasticTraining, base), {})


class TransformersBatches:
    """The rest of the current epoch."""

    def __init__(self, trainer: ElasticTraining, companion: Companion, dataset: Any) -> None:
        self._trainer, self._companion, self.dataset = trainer, companion, dataset

    def __iter__(self) -> Iterator[Any]:
        number, begins = self._companion.position.number, True
        while self._companion.position.number == number:
            if begins:
                self._trainer.act()
            batch, cell = self._companion.batch(), self._companion.cell
            begins = cell is None or cell.last
            yield self._trainer.drawn(batch)

    def __len__(self) -> int:
        """Batches of a whole epoch."""
        return self._companion.length


def _skip_first_batches(dataloader: Any, num_batches: int = 0) -> Any:
    """Accelerate's; ours has passed over them already."""
    if isinstance(dataloader, TransformersBatches):
        return dataloader
    return _skipped(dataloader, num_batches)


_skipped = loop.skip_first_batches
loop.skip_first_batches = _skip_first_batches


def _is_arguments(value: object) -> bool:
    return isinstance(value, TrainingArguments)


def _own(base: type) -> set[str]:
    """Names that classes between it and the Trainer define."""
    between = [each for each in base.__mro__ if issubclass(each, Trainer) and each is not Trainer]
    return {name for each in between for name in vars(each)}
