"""Beside a training loop: data, reports, checkpoints, and what all ranks agree on.

The loop itself is `Elastic`'s, or that of another library with an adapter.
"""

import atexit
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from boa.train import session, stopping
from boa.train.checkpoints import Progress
from boa.train.torch import random, states
from boa.train.torch.arriving import Sums
from boa.train.torch.checkpoint import Checkpointer, swept
from boa.train.torch.circle import Failed
from boa.train.torch.data import Cell, ElasticLoader, Position
from boa.train.torch.exchange import Exchange
from boa.train.torch.parts import Parts, Patience
from boa.train.torch.ranks import Ranks
from boa.train.torch.sides import Side
from boa.train.torch.streams import StreamLoader, is_stream

Optimizers = Iterable[torch.optim.Optimizer]
SAVE_EVERY_S = 300.0
RESERVE_AFTER = 3
"""Steps of a run before there is memory to leave its state in: then it has all its tensors."""
_begun: set[int] = set()
"""Processes that train: a forked one is another."""


class Stopped(SystemExit):
    """Asked to stop, and everything is saved. Not caught, the process ends with code 0."""


class More:
    """Further values that ranks agree on, in the same exchange."""

    def offers(self) -> list[float]:
        """This rank's values, always as many."""
        return []

    def hear(self, sums: list[float]) -> None:
        """Their sums over all ranks, after the same step on each."""


class Companion:
    """Called by all ranks in the same order: attach, load, then batch and stepped for every batch,
    and act wherever the loop can be left and entered again."""

    def __init__(
        self,
        ranks: Ranks,
        *,
        batch_size: int,
        seed: int,
        save_every_s: float,
        more: More | None = None,
    ) -> None:
        _only_once()
        self.ranks, self.batch_size, self._seed = ranks, batch_size, seed
        self.dealt = ranks
        """Ranks as far as samples and random numbers are dealt out to them: those that split the
        layers of a model are one."""
        self._more = more or More()
        self._parts, self._saves = Parts(), Patience(save_every_s)
        self._exchange, self._losses = Exchange(ranks), Sums()
        job = session.context()
        self._checkpoints = Checkpointer(job.checkpoint_dir, ranks, job.keeper)
        self._reserve_at = RESERVE_AFTER
        self._data: ElasticLoader | StreamLoader | None = None
        self._stream: Iterator[tuple[Cell | None, Any]] | None = None
        self._sides: list[Side] = []
        self._side_states: list[dict[str, Any]] = []
        self._position = Position()
        self._random: dict[str, Any] | None = None
        self._model: nn.Module | None = None
        self._optimizers: tuple[torch.optim.Optimizer, ...] = ()
        self.loss: float | None = None
        """Mean over all ranks, of a step or two ago: nobody waited for it."""
        self._stop = self._save_now = False
        self.cell: Cell | None = None
        """The cell of the batch in progress."""
        atexit.register(self._leave)

    # Data

    def attach(
        self,
        dataset: Any,
        *,
        passes: int,
        shuffle: bool | None = None,
        batch: int | None = None,
        streams: bool = False,
        **options: Any,
    ) -> None:
        """The training data, `batch` samples of all ranks in a step. `options` are DataLoader's.

        `streams`: whether it need not be map-style; `batch()` then tells that a pass is over.
        """
        if self._data is not None:
            raise RuntimeError("a second loader(); expected one, and a DataLoader to evaluate with")
        if is_stream(dataset) and not streams:
            raise TypeError(
                f"loader: got a {type(dataset).__name__}; expected a map-style data set "
                "(__getitem__ and __len__): streams are for Elastic"
            )
        self._data = self._made(dataset, batch or self.batch_size, passes, shuffle, options)
        self._data.position = self._position  # of the checkpoint, if it is loaded already

    def attach_side(
        self, dataset: Any, *, batch: int, shuffle: bool | None = None, **options: Any
    ) -> Side:
        """Data beside the first: `batch` samples of all ranks with every batch of a rank."""
        side = Side(self._made(dataset, batch, 0, shuffle, options), batch)
        if len(self._sides) < len(self._side_states):
            side.load(self._side_states[len(self._sides)])
        self._sides.append(side)
        return side

    def _made(
        self, dataset: Any, batch: int, passes: int, shuffle: bool | None, options: dict[str, Any]
    ) -> ElasticLoader | StreamLoader:
        world = self.dealt.world_size
        if batch < world * (passes + 1):
            accumulated = f", accumulated in {passes + 1} batches each" if passes else ""
            raise ValueError(
                f"batch_size: got {batch} on {world} processes{accumulated}; expected a sample for "
                f"each, or `gpus: {{max: {batch // (passes + 1)}}}` in the job's file"
            )
        kind = StreamLoader if is_stream(dataset) else ElasticLoader
        return kind(
            dataset,
            self.dealt,
            batch=batch,
            passes=passes,
            seed=self._seed + len(self._sides),
            shuffle=shuffle,
            **options,
        )

    @property
    def attached(self) -> bool:
        return self._data is not None

    def batch(self) -> Any:
        """The next one of this rank, on the device; `cell` says what it counts for, and is None
        where a pass of a stream is over.

        The first one after a restart draws its random numbers as it would have without one.
        """
        if self._model is None:
            raise RuntimeError("a batch before resume(); expected loader, resume, epochs")
        if self.cell is not None:
            raise RuntimeError("a batch was left out; expected one step() for every batch")
        if self._stream is None:  # one for all epochs: it has fetched ahead
            self._stream = self.data.stream()
        try:
            self.cell, batch = next(self._stream)
        except BaseException:
            self._stream = None
            raise
        for side in self._sides if self.cell is not None else ():
            side.begun()
        if self._random is not None:
            random.restore(self._random)
            self._random = None
        return batch

    @property
    def length(self) -> int:
        """Batches of a whole pass over the data, on every rank."""
        return self.data.length

    @property
    def position(self) -> Position:
        return self.data.position

    @position.setter
    def position(self, position: Position) -> None:
        self.cell, self.data.position = None, position

    @property
    def data(self) -> ElasticLoader | StreamLoader:
        if self._data is None:
            raise RuntimeError("there is no loader; expected loader() before training")
        return self._data

    def stepped(
        self, loss: torch.Tensor | None, progress: float = 1.0, **metrics: float | None
    ) -> bool:
        """A batch is done, with this mean loss over its samples, if any. True if the pass is over.

        `progress`: what the iteration was worth, if the batch was its last.
        """
        cell, self.cell = self.cell, None
        if cell is None:
            raise RuntimeError("step() without a batch; expected one call for every batch")
        if loss is not None:
            self._losses.add(loss.detach() * (cell.weight / self.ranks.world_size))
        for side in self._sides:
            side.done()
        if not cell.last:
            return False
        self._losses.send()
        over = self.data.advance()
        session.report(
            progress=progress,
            step=session.session().at.step + 1,
            loss=self.loss,
            batch_size=cell.total,
            accumulation=self.data.passes,
            **metrics,
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
            *self._more.offers(),
        ]

    def _hear(self, sums: list[float] | None) -> None:
        if sums is None:
            return
        stop, save, losses, loss, *more = sums
        self._stop, self._save_now = self._stop or stop > 0, self._save_now or save > 0
        if losses:
            # a rank whose loss has not arrived yet is left out, and the others stand for it
            self.loss = loss * self.ranks.world_size / losses
        self._more.hear(more)

    def act(self, state: Callable[[], dict[str, Any]]) -> None:
        """Save if it is time; if the job is to stop, save and raise `Stopped`.

        `state`: what the loop needs to go on from here, for `load` to give back.
        """
        if self._stop:
            self._parts.stopping()
            self._exchange.settle()
            self._save(session.session().at, state(), leaving=True)
            self._leave()
            raise Stopped(0)
        if self._reserve_at == 0:
            self._checkpoints.reserve(self.tensors, state)
        self._reserve_at -= 1
        if self._save_now:
            self._save_now = False
            self._saves.restart()
            self._save(session.session().at, state())

    def finish(self, epoch: int, state: dict[str, Any]) -> None:
        """Training is over after so many epochs. A full disk does not undo that."""
        self._exchange.settle()
        try:
            self._save(Progress(epoch, 0.0, session.session().at.step), state, wait=True)
        except Failed as problem:
            if self.ranks.rank == 0:
                print(f"boa: the last checkpoint was not saved ({problem})", file=sys.stderr)
        swept()  # no run follows that would
        session.done()

    def plan(self, epochs: int, per_epoch: float | None) -> None:
        """Report the total, where the units of an epoch are known."""
        if per_epoch is not None:
            session.total(epochs * per_epoch)

    @property
    def iterations(self) -> int | None:
        """Iterations of a pass over the data at the present batch size; None: unknown."""
        samples = self.data.samples
        return None if samples is None else -(-samples // self.data.batch)

    # Checkpoints

    def load(self, model: nn.Module, optimizers: Optimizers) -> dict[str, Any] | None:
        """Model, optimisers and data as they were; gives what `state` said then.

        None if there is no checkpoint.
        """
        self._model, self._optimizers = model, tuple(optimizers)
        # asking an optimiser for its state makes it one, so only if there is one to load
        tensors = states.asked(model, self._optimizers) if self._checkpoints.exists() else {}
        found = self._checkpoints.load(tensors)
        if found is not None:
            states.give(model, self._optimizers, tensors)
            self._position = Position(*found.shared["position"])
            if self._data is not None:
                self._data.position = self._position
            if isinstance(self._data, StreamLoader):
                self._data.load(found.shared.get("stream"))
            self._side_states = found.shared.get("sides", [])
            for side, state in zip(self._sides, self._side_states, strict=False):
                side.load(state)
            fresh = random.fresh(self._seed, found.progress.step, self.dealt.rank)
            alike = found.shared.get("dealt", found.world_size) == self.dealt.world_size
            self._random = found.own if found.own is not None and alike else fresh
            session.resume_at(found.progress)
            session.session().saved_s = 0.0
        session.saves()
        self._parts.loaded({} if found is None else found.parts)
        return None if found is None else dict(found.shared["state"])

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is one to go on from."""
        return self._checkpoints.exists()

    def _save(
        self,
        progress: Progress,
        state: dict[str, Any],
        *,
        wait: bool = False,
        leaving: bool = False,
    ) -> None:
        at, sides = self.position, [side.state() for side in self._sides]
        stream = self.data.state() if isinstance(self.data, StreamLoader) else None
        place = {"position": (at.number, at.cursor), "stream": stream, "sides": sides}
        began = session.session().age()
        self._checkpoints.save(
            tensors=self.tensors(),
            shared={**place, "dealt": self.dealt.world_size, "state": state},
            own=random.state(),
            progress=progress,
            parts=self._parts.so_far,
            wait=wait,
            leaving=leaving,
            safe=lambda: session.saved(session.session().age() - began),
        )

    def tensors(self) -> dict[str, Any]:
        """Model and optimisers as checkpoints have them. All ranks must ask."""
        assert self._model is not None
        return states.taken(self._model, self._optimizers)

    @property
    def has_memory(self) -> bool:
        """Whether there is memory to leave this rank's state in."""
        return self._checkpoints.has_memory

    @property
    def stall_s(self) -> float:
        """How long the last save kept training waiting."""
        return self._checkpoints.stall_s

    def _leave(self) -> None:
        self._checkpoints.close()
        if dist.is_initialized():
            dist.destroy_process_group()


def _only_once() -> None:
    """Reports and checkpoints are those of the process."""
    if os.getpid() in _begun:
        raise RuntimeError("a second elastic training in one process; expected one")
    _begun.add(os.getpid())
