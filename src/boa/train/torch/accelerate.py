"""Hugging Face Accelerate on any width: the loop stays the user's.

    accelerator = Accelerator()
    run = ElasticRun(accelerator, batch_size=256)      # samples of a step, over all ranks
    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
    batches = run.loader(dataset)                      # not for prepare
    run.resume(model, optimizer, scheduler)
    for epoch in run.epochs():
        for images, labels in batches:
            with accelerator.accumulate(model):
                loss = cross_entropy(model(images), labels)
                accelerator.backward(run.weighted(loss))
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            run.step()

Batches per step are Accelerate's `gradient_accumulation_steps`, unless `max_batch` or
`local_batch` decide them. See `docs/migration.md`.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.scheduler import AcceleratedScheduler
from accelerate.state import GradientState
from torch import nn

from boa.train import session
from boa.train.torch import rates
from boa.train.torch.companion import SAVE_EVERY_S, Companion
from boa.train.torch.measuring import Measuring, scale_of
from boa.train.torch.noise import Statistics
from boa.train.torch.ranks import join


class ElasticRun:
    """The parts of a run that change with its width. `batch_size`: of all ranks together, at every
    width, unless `max_batch` allows more; that, `local_batch`, `learning_rate` and `noise` are as
    with `Elastic`."""

    def __init__(
        self,
        accelerator: Accelerator,
        *,
        batch_size: int,
        max_batch: int | None = None,
        local_batch: tuple[int, int] | None = None,
        learning_rate: rates.Rule = "none",
        noise: bool = True,
        seed: int = 0,
        save_every_s: float = SAVE_EVERY_S,
    ) -> None:
        ranks = replace(join(), device=accelerator.device)
        if accelerator.num_processes != ranks.world_size:
            raise RuntimeError(
                f"Accelerate runs as {accelerator.num_processes} process(es), the job as "
                f"{ranks.world_size}; on machines without GPUs give Accelerator(cpu=True)"
            )
        self._accelerator = accelerator
        self._measuring = Measuring(
            ranks,
            batch_size=batch_size,
            max_batch=max_batch,
            local_batch=local_batch,
            learning_rate=learning_rate,
            noise=noise,
        )
        self._sizes = self._measuring.sizes()
        accumulated = int(accelerator.gradient_accumulation_steps)
        if max_batch is None and local_batch is None:
            self._sizes = batch_size, accumulated - 1
        elif accumulated != 1:
            raise ValueError(
                f"gradient_accumulation_steps: got {accumulated} beside max_batch or local_batch, "
                "which decide it; expected 1"
            )
        self._companion = Companion(
            ranks,
            batch_size=batch_size,
            seed=seed,
            save_every_s=save_every_s,
            more=self._measuring,
        )
        self._backward = accelerator.backward
        accelerator.backward = self._propagate
        self._keeps: dict[str, Any] = {}
        self._epoch = 0
        self.over = False
        """Whether nothing is left of the current epoch."""
        self._loss: torch.Tensor | None = None

    def loader(
        self, dataset: Any, *, shuffle: bool | None = None, **options: Any
    ) -> "AccelerateBatches":
        """Batches of this rank, on its device, every sample once in an epoch.

        `options` are DataLoader's. `Accelerator.prepare` leaves it as it is.
        """
        batch, passes = self._sizes
        self._companion.attach(dataset, batch=batch, passes=passes, shuffle=shuffle, **options)
        return AccelerateBatches(self, self._companion, self._accelerator.gradient_state)

    def resume(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scheduler: Any = None,
        **keeps: Any,
    ) -> bool:
        """Go on from the newest checkpoint; False if there is none.

        Takes what `prepare` gave. Whatever else is given by name (anything with `state_dict` and
        `load_state_dict`) is kept in checkpoints as well.
        """
        if isinstance(scheduler, AcceleratedScheduler):
            scheduler.split_batches = True  # else it makes a step for every process
        named = {"scheduler": scheduler, "scaler": self._accelerator.scaler, **keeps}
        named["measuring"] = self._measuring
        self._keeps = {name: kept for name, kept in named.items() if kept is not None}
        plain = getattr(optimizer, "optimizer", optimizer)
        self._measuring.take(self._companion, model, plain)
        found = self._companion.load(model, [plain])
        if found is None:
            return False
        self._epoch, self.over = session.session().at.epoch, found["over"]
        for name, kept in self._keeps.items():
            if name in found["keeps"]:
                kept.load_state_dict(found["keeps"][name])
        self._measuring.resume()
        return True

    def epochs(self, total: int | None = None) -> Iterator[int]:
        """The epochs that are left, of as many as the job's spec says, or `total`."""
        last = session.context().epochs if total is None else total
        self._companion.plan(last, self._measuring.per_epoch())
        while self._epoch < last:
            session.epoch(self._epoch)
            self._measuring.interrupted()
            yield self._epoch
            self._epoch, self.over = self._epoch + 1, False
        self._companion.finish(self._epoch, self._state())

    @property
    def weight(self) -> float:
        """Weight of this batch's mean loss. 1 where all shares are equal."""
        cell = self._companion.cell
        if cell is None:
            return 1.0
        return cell.weight * int(self._accelerator.gradient_accumulation_steps)

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the gradient, as far as they are known."""
        return self._measuring.statistics

    def weighted(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss for `Accelerator.backward`, so that every sample of a step counts the same."""
        self._loss = loss.detach()
        return loss * self.weight

    def step(self) -> bool:
        """A batch is done; True if it was the last of its step.

        Whether to save or stop is agreed on here, and done before the next batch.
        """
        cell, loss, self._loss = self._companion.cell, self._loss, None
        if cell is None or loss is None:
            raise RuntimeError("step() without a batch and its loss; expected weighted, then step")
        if self._accelerator.sync_gradients != cell.last:
            raise RuntimeError("expected every batch within accelerator.accumulate(model)")
        if not cell.last:
            self._companion.stepped(loss)
            return False
        worth, metrics = self._measuring.stepped(cell)
        ends = self._measuring.adapts and self._measuring.ends_epoch(worth)
        pass_over = self._companion.stepped(loss, worth, **metrics)
        self.over = ends if self._measuring.adapts else pass_over
        return True

    def act(self) -> None:
        """Do what was agreed on: for `AccelerateBatches`, between two batches."""
        if self._companion.cell is None:
            self._companion.act(self._state)
        # what Accelerate divides the loss by; where a step ends `end_of_dataloader` tells it
        self._accelerator.gradient_accumulation_steps = self._companion.data.passes + 1

    def _propagate(self, loss: torch.Tensor, **options: Any) -> None:
        """Accelerate's backward, and a look at the gradient."""
        self._backward(loss, **options)
        if self._companion.cell is not None:
            self._measuring.propagated(self._companion.cell, scale_of(self._accelerator.scaler))

    def _state(self) -> dict[str, Any]:
        keeps = {name: kept.state_dict() for name, kept in self._keeps.items()}
        return {"over": self.over, "keeps": keeps}


class AccelerateBatches:
    """The rest of the current epoch. It tells Accelerate where a step ends, as Accelerate's own
    loaders tell it where the data end."""

    remainder = 0

    def __init__(self, run: ElasticRun, companion: Companion, state: GradientState) -> None:
        self._run, self._companion, self._state = run, companion, state

    def __iter__(self) -> Iterator[Any]:
        self._state.dataloader_references += [self]
        try:
            self._run.act()
            while not self._run.over:
                yield self._companion.batch()
                self._run.act()
        finally:
            others = [other for other in self._state.dataloader_references if other is not self]
            self._state.dataloader_references = others

    def __len__(self) -> int:
        """Batches of a whole epoch."""
        return self._companion.length

    @property
    def end_of_dataloader(self) -> bool:
        cell = self._companion.cell
        return cell is not None and cell.last
