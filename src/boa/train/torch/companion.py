"""Beside a training loop that somebody else owns: what all adapters to other libraries share.

The loop belongs to the library; data, reports, checkpoints and what all ranks agree on are here.
The total batch is the same at every width.
"""

import atexit
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from boa.train import session, stopping
from boa.train.checkpoints import Progress
from boa.train.torch import random
from boa.train.torch.arriving import Sums
from boa.train.torch.checkpoint import Checkpointer
from boa.train.torch.data import Cell, ElasticLoader, Position, cells
from boa.train.torch.elastic import Stopped
from boa.train.torch.exchange import Exchange
from boa.train.torch.parts import Parts, Patience
from boa.train.torch.ranks import Ranks

Optimizers = Iterable[torch.optim.Optimizer]


class Companion:
    """Called by all ranks in the same order: attach, load, then batch and stepped for every batch,
    and act wherever the loop can be left and entered again."""

    def __init__(self, ranks: Ranks, *, batch_size: int, seed: int, save_every_s: float) -> None:
        if batch_size < ranks.world_size:
            raise ValueError(
                f"batch_size: got {batch_size} on {ranks.world_size} processes; expected a sample "
                f"for each, or `gpus: {{max: {batch_size}}}` in the job's file"
            )
        self.ranks, self.batch_size, self._seed = ranks, batch_size, seed
        self._parts, self._saves = Parts(), Patience(save_every_s)
        self._exchange, self._losses = Exchange(ranks), Sums()
        self._checkpoints = Checkpointer(session.context().checkpoint_dir, ranks)
        self._data: ElasticLoader | None = None
        self._stream: Iterator[tuple[Cell, Any]] | None = None
        self._position = Position()
        self._random: dict[str, Any] | None = None
        self._model: nn.Module | None = None
        self._optimizers: Optimizers = ()
        self._loss: float | None = None
        self._stop = self._save_now = False
        self.cell: Cell | None = None
        """Of the batch in progress."""
        atexit.register(self._leave)

    # Data

    def attach(self, dataset: Any, *, passes: int, shuffle: bool, **options: Any) -> None:
        """The training data. `options` are DataLoader's."""
        if self.batch_size < self.ranks.world_size * (passes + 1):
            raise ValueError(
                f"batch_size: got {self.batch_size} on {self.ranks.world_size} processes, "
                f"accumulated in {passes + 1} batches each; expected a sample for every batch"
            )
        self._data = ElasticLoader(
            dataset,
            self.ranks,
            batch=self.batch_size,
            passes=passes,
            seed=self._seed,
            shuffle=shuffle,
            **options,
        )
        self._data.position = self._position  # of the checkpoint, if it is loaded already

    def batch(self) -> Any:
        """The next one of this rank, on the device; `cell` says what it counts for.

        The first one after a restart draws its random numbers as it would have without one.
        """
        if self._model is None:
            raise RuntimeError("a batch before resume(); expected loader, resume, epochs")
        if self.cell is not None:
            raise RuntimeError("a batch was left out; expected one step() for every batch")
        if self._stream is None:  # one for all epochs: it has fetched ahead
            self._stream = self._attached.stream()
        try:
            self.cell, batch = next(self._stream)
        except BaseException:
            self._stream = None
            raise
        if self._random is not None:
            random.restore(self._random)
            self._random = None
        return batch

    @property
    def length(self) -> int:
        """Batches of a whole pass over the data, on every rank."""
        data = self._attached
        whole, rest = divmod(data.samples, data.batch)
        row, world = np.arange(rest), self.ranks.world_size
        more = cells(row, 0, data.batch, data.passes, 0, world) if rest else []
        return whole * (data.passes + 1) + len(more)

    @property
    def position(self) -> Position:
        return self._attached.position

    @position.setter
    def position(self, position: Position) -> None:
        self.cell, self._attached.position = None, position

    @property
    def _attached(self) -> ElasticLoader:
        if self._data is None:
            raise RuntimeError("there is no loader; expected loader() before training")
        return self._data

    def stepped(self, loss: torch.Tensor) -> bool:
        """A batch is done, with this mean loss over its samples. True if the pass is over."""
        cell, self.cell = self.cell, None
        if cell is None:
            raise RuntimeError("step() without a batch; expected one call for every batch")
        self._losses.add(loss.detach() * (cell.weight / self.ranks.world_size))
        if not cell.last:
            return False
        self._losses.send()
        over = self._attached.advance()
        session.report(
            progress=1.0,
            step=session.session().at.step + 1,
            loss=self._loss,
            batch_size=cell.total,
            accumulation=self._attached.passes,
        )
        self._parts.stepped()
        self._hear(self._exchange.swap(self._offers()))
        return over

    # What all ranks agree on

    def _offers(self) -> list[float]:
        loss = self._losses.newest()
        return [
            float(stopping.stop_requested()),
            float(self.ranks.rank == 0 and self._saves.over()),
            0.0 if loss is None else 1.0,
            loss or 0.0,
        ]

    def _hear(self, sums: list[float] | None) -> None:
        if sums is None:
            return
        stop, save, losses, loss = sums
        self._stop, self._save_now = self._stop or stop > 0, self._save_now or save > 0
        if losses:
            # a rank whose loss has not arrived yet is left out, and the others stand for it
            self._loss = loss * self.ranks.world_size / losses

    def act(self, state: Callable[[], dict[str, Any]]) -> None:
        """Save if it is time; if the job is to stop, save and raise `Stopped`.

        `state`: what the loop needs to go on from here, for `load` to give back.
        """
        if self._stop:
            self._parts.stopping()
            self._exchange.settle()
            self._save(session.session().at, state(), wait=True)
            raise Stopped(0)
        if self._save_now:
            self._save_now = False
            self._saves.restart()
            self._save(session.session().at, state())

    def finish(self, epoch: int, state: dict[str, Any]) -> None:
        """Training is over after so many epochs."""
        self._exchange.settle()
        self._save(Progress(epoch, 0.0, session.session().at.step), state, wait=True)

    # Checkpoints

    def load(self, model: nn.Module, optimizers: Optimizers) -> dict[str, Any] | None:
        """Model, optimisers and data as they were; gives what `state` said then.

        None if there is no checkpoint.
        """
        self._model, self._optimizers = model, optimizers
        tensors = self._tensors() if self._checkpoints.exists() else {}
        found = self._checkpoints.load(tensors)
        if found is not None:
            set_state_dict(
                model,
                optimizers,
                model_state_dict=tensors["model"],
                optim_state_dict=tensors["optimizer"],
            )
            self._position = Position(*found.shared["position"])
            if self._data is not None:
                self._data.position = self._position
            fresh = random.fresh(self._seed, found.progress.step, self.ranks.rank)
            self._random = fresh if found.own is None else found.own
            session.resume_at(found.progress)
        self._parts.loaded({} if found is None else found.parts)
        return None if found is None else dict(found.shared["state"])

    def _save(self, progress: Progress, state: dict[str, Any], *, wait: bool = False) -> None:
        at = self.position
        self._checkpoints.save(
            tensors=self._tensors(),
            shared={"position": (at.number, at.cursor), "state": state},
            own=random.state(),
            progress=progress,
            parts=self._parts.so_far,
            wait=wait,
        )

    def _tensors(self) -> dict[str, Any]:
        assert self._model is not None
        model, optimizer = get_state_dict(self._model, self._optimizers)
        return {"model": model, "optimizer": optimizer}

    def _leave(self) -> None:
        self._checkpoints.close()
        if dist.is_initialized():
            dist.destroy_process_group()
