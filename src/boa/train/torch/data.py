"""Data: every sample of a pass is trained on once, whatever the widths, batch sizes and crashes.

A pass is one order of all samples, the same on every rank, and a cursor into it. An iteration takes
the next `batch` samples, cut into cells: one per rank and forward pass. The cursor moves when the
iteration is done, and only it is kept: whoever goes on, at whatever width, begins there. What was
fetched ahead and not trained on is simply fetched again.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Subset, get_worker_info

from boa.train.torch.orders import Order, Orders, order
from boa.train.torch.ranks import Ranks
from boa.train.torch.seeding import number_of, own_randomness, reseed
from boa.train.torch.workers import guarded, no_stop

__all__ = ["Cell", "ElasticLoader", "Order", "Position", "cells", "moved", "order"]

INSTEAD = {
    "batch_size": "it is said once, as the batch_size of all ranks together",
    "generator": "give seed=, from which all that is random here follows",
    "in_order": "which samples were trained on is known only if they come in order; leave it out",
}
"""Options of DataLoader that are decided here, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far training is in the data: what a checkpoint keeps."""

    number: int = 0
    """The pass's number."""
    cursor: int = 0
    """Samples of it that were trained on."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Samples that one rank takes in one forward and backward pass."""

    indices: tuple[int, ...]
    """Never empty: a rank for which nothing is left gets one sample that counts for nothing."""
    samples: int
    """Samples that count."""
    weight: float
    """Times the mean loss: then DDP's mean over ranks, summed over the forward passes, is the
    gradient of the mean over all samples of the iteration."""
    total: int
    """Samples of the iteration, over all ranks and forward passes."""
    last: bool
    """Whether it is its iteration's last: here gradients are synchronised and the optimiser
    steps."""
    start: int = field(default=0, compare=False)
    """Place of its first sample in the pass."""


def cells(
    order: Order,
    cursor: int,
    batch: int,
    passes: int,
    rank: int,
    world: int,
    total: int | None = None,
) -> list[Cell]:
    """One iteration of one rank: the next `batch` samples over `passes` + 1 cells per rank.

    `total`: samples of the iteration, where that is not `batch` or what is left. Cells differ by
    one sample at most. What is left at the end of a pass goes into no more cells than are needed to
    keep them as small as ever; all ranks have the same number of them.
    """
    total = min(batch, len(order) - cursor) if total is None else total
    rounds = passes + 1
    if total != batch:
        rounds = -(-total // (world * -(-batch // (world * rounds))))
    rounds = min(rounds, -(-total // world))
    size, larger = divmod(total, rounds * world)
    found = []
    for turn in range(rounds):
        at = turn * world + rank
        count = size + (at < larger)
        start = cursor + at * size + min(at, larger)
        start, end = (start, start + count) if count else (cursor, cursor + 1)
        indices, last = tuple(order[start:end].tolist()), turn == rounds - 1
        found.append(Cell(indices, count, count * world / total, total, last, start))
    return found


class ElasticLoader:
    """Batches of this rank, from `position` on. The same calls must be made on all ranks.

    What `random`, `numpy.random` and `torch` draw while a sample is made depends on the seed, the
    pass and the sample alone: augmentation is the same at every width and after every restart.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        ranks: Ranks,
        *,
        batch: int,
        passes: int = 0,
        seed: int = 0,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        drop_last: bool = False,
        **options: Any,
    ) -> None:
        for name in sorted(INSTEAD.keys() & options.keys()):
            raise ValueError(f"{name} is not an option of an elastic loader: {INSTEAD[name]}")
        if seed < 0:
            raise ValueError(f"seed is {seed}; it must be 0 or more")
        self._batch, self._passes = _sizes(batch, passes)
        self._orders = Orders(
            _length(dataset),
            seed,
            shuffle=shuffle,
            sampler=sampler,
            batch_sampler=batch_sampler,
            multiple=batch if drop_last else 1,
        )
        self._ranks = ranks
        self._position = Position()
        self._ahead = _Ahead(self._orders, ranks)
        self._generator = torch.Generator()  # so that beginning draws nothing from the global one
        self._seed = seed
        self._options = {"pin_memory": ranks.device.type == "cuda", **options}
        if self._options.get("num_workers", 0) > 0:
            self._options.setdefault("persistent_workers", True)
            init = options.get("worker_init_fn")
            self._options["worker_init_fn"] = guarded(self, init, inner=True)
        self._fetched: DataLoader[Any] = DataLoader(
            _Samples(dataset, seed),
            batch_sampler=self._ahead,
            generator=self._generator,
            **self._options,
        )
        self._stream: object = None  # the newest: DataLoader serves one at a time
        self._stale = False  # what is being fetched is no longer what comes next
        self._cell: Cell | None = None  # the newest of the iteration in progress

    @property
    def samples(self) -> int:
        """Samples of this pass."""
        return len(self._orders.row(self._position.number))

    @property
    def length(self) -> int:
        """Batches of this pass, on every rank."""
        row, world = self._orders.row(self._position.number), self._ranks.world_size
        whole, rest = divmod(len(row), self._batch)
        totals = [rest] if row.ends is None else row.totals()
        found = 0 if row.ends is not None else whole * (self._passes + 1)
        for total in filter(None, totals):
            place = np.arange(total)
            found += len(cells(place, 0, self._batch, self._passes, 0, world, total))
        return found

    @property
    def position(self) -> Position:
        return self._position

    @position.setter
    def position(self, position: Position) -> None:
        """Go on from there. An iteration in progress is dropped."""
        samples = len(self._orders.row(max(position.number, 0)))
        if position.number < 0 or not 0 <= position.cursor < samples:
            raise ValueError(
                f"{position} is not in a data set of {samples} samples: "
                "is it the one that the checkpoint was made with?"
            )
        self._position, self._cell, self._stale = position, None, True

    @property
    def batch(self) -> int:
        return self._batch

    @property
    def passes(self) -> int:
        return self._passes

    def set_batch(self, batch: int, passes: int) -> None:
        """From the next iteration on: one that has begun ends as it began."""
        if (batch, passes) != (self._batch, self._passes):
            self._batch, self._passes = _sizes(batch, passes)
            self._stale = True

    def advance(self) -> bool:
        """The iteration is done. True if the pass is over: `position` is the start of the next."""
        if self._cell is None or not self._cell.last:
            raise RuntimeError("advance() comes after the last cell of an iteration, once")
        cursor = self._position.cursor + self._cell.total
        over = cursor == self.samples
        number = self._position.number
        self._position = Position(number + 1, 0) if over else Position(number, cursor)
        self._cell = None
        return over

    def stream(self) -> Iterator[tuple[Cell, Any]]:
        """Cells with their batches on the device, endlessly. Call `advance` after each last one."""
        self._stream = mine = object()
        self._cell = None
        while True:
            batches = self._begin()
            while self._cell is not None or not self._stale:
                if self._stream is not mine:
                    raise RuntimeError("a newer stream of this loader has begun; use that one")
                if self._cell is not None and self._cell.last:
                    raise RuntimeError("call advance() before going on to the next iteration")
                batch = next(batches)
                self._cell = self._ahead.sent.popleft()
                yield self._cell, moved(batch, self._ranks.device)

    def _begin(self) -> Iterator[Any]:
        """Fetch from `position` on. Workers that are there already are kept."""
        self._stale = False
        self._ahead.start(self._position, self._batch, self._passes)
        at = self._position
        self._generator.manual_seed(number_of(self._seed, at.number, at.cursor))
        if not self._fetched.num_workers:
            return iter(self._fetched)
        with no_stop():
            return iter(self._fetched)


def moved(batch: Any, device: torch.device) -> Any:
    """`batch` with its tensors on the device; it does not wait for copies from pinned memory."""
    if hasattr(batch, "to"):  # tensors, packed sequences, encodings of tokenizers, graphs
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return {key: moved(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(moved(value, device) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(moved(value, device) for value in batch)
    return batch


class _Ahead:
    """Batch sampler of DataLoader: endless, and it remembers what was asked for."""

    def __init__(self, orders: Orders, ranks: Ranks) -> None:
        self._orders, self._ranks = orders, ranks
        self.sent: deque[Cell] = deque()

    def start(self, position: Position, batch: int, passes: int) -> None:
        self._from = position, batch, passes

    def __iter__(self) -> Iterator[Any]:
        self.sent.clear()
        return self._cells(*self._from)

    def _cells(self, position: Position, batch: int, passes: int) -> Iterator[Any]:
        number, cursor = position.number, position.cursor
        rank, world = self._ranks.rank, self._ranks.world_size
        while True:
            row = self._orders.row(number)
            while cursor < len(row):
                total = row.total(cursor, batch)
                for cell in cells(row.indices, cursor, batch, passes, rank, world, total):
                    self.sent.append(cell)
                    yield number, cell.indices, None if row.unique else cell.start
                cursor += total
            number, cursor = number + 1, 0


class _Samples(Dataset[Any]):
    """The user's data set, with random numbers that depend on nothing but pass and sample."""

    def __init__(self, dataset: Dataset[Any], seed: int) -> None:
        self.dataset, self._seed = dataset, seed
        root: Any = dataset
        while type(root) is Subset:  # it reads many at once even if what it is of does not
            root = root.dataset
        self._many = hasattr(root, "__getitems__")

    def __getitems__(self, asked: tuple[int, Sequence[int], int | None]) -> Sequence[Any]:
        if get_worker_info() is not None:
            return self._read(*asked)
        with own_randomness():
            return self._read(*asked)

    def _read(self, number: int, indices: Sequence[int], start: int | None) -> Sequence[Any]:
        # a sample that comes twice in a pass (`start` is its place there) is not augmented alike
        places = (
            [()] * len(indices) if start is None else [(start + n,) for n in range(len(indices))]
        )
        if self._many:
            reseed(self._seed, number, indices[0], *places[0])
            found: Sequence[Any] = self.dataset.__getitems__(list(indices))  # type: ignore[attr-defined]
            return found
        return [self._one(number, *each) for each in zip(indices, places, strict=True)]

    def _one(self, number: int, index: int, place: tuple[int, ...]) -> Any:
        reseed(self._seed, number, index, *place)
        return self.dataset[index]


def _length(dataset: Any) -> int:
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise TypeError(
            f"{type(dataset).__name__} is no data set; expected __getitem__ and __len__, or an "
            "IterableDataset"
        )
    if not len(dataset):
        raise ValueError("the data set is empty")
    return len(dataset)


def _sizes(batch: int, passes: int) -> tuple[int, int]:
    if batch < 1 or passes < 0:
        raise ValueError(f"batch {batch} and passes {passes}: at least 1 and 0 are needed")
    return batch, passes
