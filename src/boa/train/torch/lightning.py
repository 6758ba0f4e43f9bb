"""Lightning on any width: the module stays as it is.

    elastic = ElasticCallback(batch_size=256)          # samples of a step, over all ranks
    trainer = Trainer(max_epochs=30, callbacks=[elastic], **elastic.placement)
    trainer.fit(module, elastic.loader(dataset))

Make the callback before the Trainer. Batches per step are the Trainer's `accumulate_grad_batches`,
which the callback must know if it is not 1. See `docs/migration.md`.

With `max_batch` the batch size follows the width, as `Elastic` has it, in one batch per step; an
epoch is then as much progress as a pass over the data at `batch_size` makes.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import torch
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.pytorch import Callback, LightningModule, Trainer

from boa.train import session
from boa.train.torch import rates
from boa.train.torch.companion import SAVE_EVERY_S, Companion
from boa.train.torch.data import Position
from boa.train.torch.measuring import Measuring, scale_of
from boa.train.torch.noise import Statistics
from boa.train.torch.ranks import join

ENDLESS = 2**40
"""Batches of an epoch that nobody knows the end of yet: Lightning wants a number."""


class ElasticCallback(Callback):
    """The parts of a run that change with its width. `batch_size`: of all ranks together, at every
    width, unless `max_batch` allows more; that, `local_batch`, `learning_rate` and `noise` are as
    with `Elastic`."""

    def __init__(
        self,
        *,
        batch_size: int,
        accumulate_grad_batches: int = 1,
        max_batch: int | None = None,
        local_batch: tuple[int, int] | None = None,
        learning_rate: rates.Rule = "none",
        noise: bool = True,
        seed: int = 0,
        save_every_s: float = SAVE_EVERY_S,
    ) -> None:
        ranks = join()
        if max_batch is not None and accumulate_grad_batches != 1:
            raise ValueError(
                f"accumulate_grad_batches: got {accumulate_grad_batches} beside max_batch, with "
                "which a step is one batch; expected 1"
            )
        if max_batch is None and local_batch is not None:
            raise ValueError("local_batch: goes with max_batch; expected both, or neither")
        self._measuring = Measuring(
            ranks,
            batch_size=batch_size,
            max_batch=max_batch,
            local_batch=local_batch,
            learning_rate=learning_rate,
            noise=noise,
            one_pass=True,
        )
        self._companion = Companion(
            ranks,
            batch_size=batch_size,
            seed=seed,
            save_every_s=save_every_s,
            more=self._measuring,
        )
        self._accumulated = accumulate_grad_batches
        self._trainer: Trainer | None = None

    @property
    def placement(self) -> dict[str, Any]:
        """For the Trainer: the processes are there already, and which one this is."""
        ranks = self._companion.ranks
        if ranks.alone:
            return {"devices": 1, "accumulate_grad_batches": self._accumulated}
        return {
            "strategy": "ddp",
            "devices": int(os.environ.get("LOCAL_WORLD_SIZE", ranks.world_size)),
            "num_nodes": ranks.nodes,
            "plugins": [TorchElasticEnvironment()],
            "accumulate_grad_batches": self._accumulated,
        }

    def loader(
        self, dataset: Any, *, shuffle: bool | None = None, **options: Any
    ) -> "LightningBatches":
        """The training data: every sample once in an epoch. `options` are DataLoader's."""
        passes = self._accumulated - 1
        batch = self._measuring.sizes()[0]
        self._companion.attach(dataset, batch=batch, passes=passes, shuffle=shuffle, **options)
        return LightningBatches(self._companion, self._between, self._last, self._measuring.adapts)

    @property
    def weight(self) -> float:
        """Weight of this batch's mean loss. 1 where all shares are equal."""
        cell = self._companion.cell
        return 1.0 if cell is None else cell.weight * self._accumulated

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the gradient, as far as they are known."""
        return self._measuring.statistics

    # What Lightning calls

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage != "fit":
            return
        if trainer.world_size != self._companion.ranks.world_size:
            raise RuntimeError(
                f"Lightning runs as {trainer.world_size} process(es), the job as "
                f"{self._companion.ranks.world_size}; expected Trainer(**elastic.placement)"
            )
        if trainer.accumulate_grad_batches != self._accumulated:
            raise RuntimeError("give accumulate_grad_batches to ElasticCallback")
        if not pl_module.automatic_optimization:
            raise RuntimeError("ElasticCallback needs automatic optimisation")
        self._trainer = trainer
        # Its handler of SIGTERM talks to other ranks, which hangs if they are not listening; ours
        # only sets a flag.
        trainer._signal_connector.register_signal_handlers = _nothing  # type: ignore[method-assign]

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        model = trainer.strategy.model
        assert model is not None
        self._measuring.take(self._companion, model, *trainer.optimizers)
        if (total := self._total(trainer)) is not None:
            session.total(total)
        found = self._companion.load(model, trainer.optimizers)
        if found is not None:
            self._restore(trainer, found)
            self._measuring.resume()

    def _total(self, trainer: Trainer) -> float | None:
        """Iterations that the Trainer's limits leave, where they are known."""
        epochs, steps = trainer.max_epochs, trainer.max_steps
        per_epoch = self._measuring.per_epoch()
        known = [float(steps)] if steps > 0 and not self._measuring.adapts else []
        if epochs is not None and epochs > 0 and per_epoch is not None:
            known.append(epochs * per_epoch)
        return min(known, default=None)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        session.epoch(trainer.current_epoch)
        self._measuring.interrupted()

    def on_before_backward(
        self, trainer: Trainer, pl_module: LightningModule, loss: torch.Tensor
    ) -> None:
        if (weight := self.weight) != 1.0:
            loss.register_hook(lambda gradient: gradient * weight)

    def on_after_backward(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._companion.cell is not None:
            scaler = getattr(trainer.precision_plugin, "scaler", None)
            self._measuring.propagated(self._companion.cell, scale_of(scaler))

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        loss = (outputs or {}).get("loss", torch.zeros(()))  # a step may give none
        cell = self._companion.cell
        if cell is None or not cell.last:
            self._companion.stepped(loss * self._accumulated)
            return
        worth, metrics = self._measuring.stepped(cell)
        self._companion.stepped(loss * self._accumulated, worth, **metrics)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._companion.finish(trainer.current_epoch, self._state(trainer))

    # Between two batches, when all hooks of the first have run

    def _between(self) -> None:
        """Save or stop here if it is time; where an epoch begins, so does a pass over the data."""
        trainer, at = self._trainer, self._companion.position
        assert trainer is not None
        begins = trainer.fit_loop.batch_idx < 0
        if begins and at.cursor and not self._measuring.adapts:
            self._companion.position = Position(at.number + 1)  # the epoch before was cut short
        self._companion.act(lambda: self._state(trainer))

    def _last(self) -> bool:
        """Whether the batch that was drawn ends its epoch, where that is decided by its worth.

        Lightning counts batches, and has to be told the number by then.
        """
        trainer, cell = self._trainer, self._companion.cell
        assert trainer is not None
        assert cell is not None
        over = self._measuring.ends_epoch(self._measuring.worth(cell.total))
        loop = trainer.fit_loop
        drawn = loop.epoch_loop.batch_progress.current.ready + 1
        loop.max_batches = trainer.val_check_batch = drawn if over else ENDLESS
        if loop._data_fetcher is not None:
            loop._data_fetcher.length = drawn if over else ENDLESS
        return over

    def _state(self, trainer: Any) -> dict[str, Any]:
        own: dict[str, Any] = {}
        trainer.lightning_module.on_save_checkpoint(own)
        return {
            "loop": trainer.fit_loop.state_dict(),
            "schedulers": [each.scheduler.state_dict() for each in trainer.lr_scheduler_configs],
            "precision": trainer.precision_plugin.state_dict(),
            "measuring": self._measuring.state_dict(),
            "callbacks": {each.state_key: each.state_dict() for each in trainer.callbacks},
            "data": trainer.datamodule.state_dict() if trainer.datamodule else {},
            "module": own,
        }

    def _restore(self, trainer: Any, found: dict[str, Any]) -> None:
        trainer.fit_loop.load_state_dict(found["loop"])
        for each, state in zip(trainer.lr_scheduler_configs, found["schedulers"], strict=True):
            each.scheduler.load_state_dict(state)
        trainer.precision_plugin.load_state_dict(found["precision"])
        self._measuring.load_state_dict(found.get("measuring", {}))
        for callback in trainer.callbacks:
            if state := found["callbacks"].get(callback.state_key):
                callback.load_state_dict(state)
        if trainer.datamodule is not None and found["data"]:
            trainer.datamodule.load_state_dict(found["data"])
        trainer.lightning_module.on_load_checkpoint(found["module"])


class LightningBatches:
    """The rest of the current epoch. Lightning adds no sampler to it."""

    def __init__(
        self,
        companion: Companion,
        between: Callable[[], None],
        last: Callable[[], bool],
        adapts: bool,
    ) -> None:
        self._companion, self._between = companion, between
        self._last, self._adapts = last, adapts

    def __iter__(self) -> Iterator[Any]:
        self._between()
        number, over = self._companion.position.number, False
        while not over and (self._adapts or self._companion.position.number == number):
            batch = self._companion.batch()
            over = self._adapts and self._last()
            yield batch
            self._between()

    def __len__(self) -> int:
        """Batches of a whole epoch, if that is known."""
        return ENDLESS if self._adapts else self._companion.length

    def state_dict(self) -> dict[str, int]:
        """So that Lightning knows that it can go on in the middle of an epoch."""
        return asdict(self._companion.position)

    def load_state_dict(self, state: dict[str, int]) -> None:
        self._companion.position = Position(**state)


def _nothing() -> None:
    pass
