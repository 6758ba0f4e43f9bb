"""Data: every sample of a pass is trained on once, whatever the widths, batch sizes and crashes.

A pass is one order of all samples, the same on every rank, and a cursor into it. An iteration takes
the next `batch` samples, cut into cells: one per rank and forward pass. The cursor moves when the
iteration is done, and only it is kept: whoever goes on, at whatever width, begins there. What was
fetched ahead and not trained on is simply fetched again.
"""

import ctypes
import hashlib
import os
import random
import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawValue
from multiprocessing.util import Finalize
from types import FrameType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, get_worker_info

from boa.train.torch.ranks import Ranks

Order = NDArray[np.int64]

INSTEAD = {
    "batch_size": "it is said once, as the batch_size of all ranks together",
    "sampler": "the loader gives each rank its share; give shuffle= and seed=",
    "batch_sampler": "the loader gives each rank its share; give shuffle= and seed=",
    "drop_last": "the last iteration of a pass is smaller, and weighted so; a data set of a "
    "multiple of the batch size has none",
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


def order(samples: int, seed: int, number: int, shuffle: bool) -> Order:
    """In which order pass `number` goes through the data: the same wherever it is asked for."""
    row = np.arange(samples, dtype=np.int64)
    if shuffle:
        # NumPy keeps RandomState's streams as they are for good; those of Generator may change.
        bits = np.random.MT19937(np.random.SeedSequence([seed, number]))
        np.random.RandomState(bits).shuffle(row)
    return row


def cells(order: Order, cursor: int, batch: int, passes: int, rank: int, world: int) -> list[Cell]:
    """One iteration of one rank: the next `batch` samples over `passes` + 1 cells per rank.

    Cells differ by one sample at most. What is left at the end of a pass goes into no more cells
    than are needed to keep them as small as ever; all ranks have the same number of them.
    """
    total = min(batch, len(order) - cursor)
    rounds = passes + 1
    if total < batch:
        rounds = -(-total // (world * -(-batch // (world * rounds))))
    rounds = min(rounds, -(-total // world))
    size, larger = divmod(total, rounds * world)
    found = []
    for turn in range(rounds):
        at = turn * world + rank
        count = size + (at < larger)
        start = cursor + at * size + min(at, larger)
        taken = order[start : start + count] if count else order[cursor : cursor + 1]
        indices = tuple(taken.tolist())
        found.append(Cell(indices, count, count * world / total, total, turn == rounds - 1))
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
        shuffle: bool = True,
        **options: Any,
    ) -> None:
        for name in sorted(INSTEAD.keys() & options.keys()):
            raise ValueError(f"{name} is not an option of an elastic loader: {INSTEAD[name]}")
        if seed < 0:
            raise ValueError(f"seed is {seed}; it must be 0 or more")
        self.samples = _length(dataset)
        self._ranks = ranks
        self._position = Position()
        self._batch, self._passes = _sizes(batch, passes)
        self._ahead = _Ahead(self.samples, seed, shuffle, ranks)
        self._generator = torch.Generator()  # so that beginning draws nothing from the global one
        self._seed = seed
        self._options = {"pin_memory": ranks.device.type == "cuda", **options}
        if self._options.get("num_workers", 0) > 0:
            self._options.setdefault("persistent_workers", True)
            self._options["worker_init_fn"] = self._guard(options.get("worker_init_fn"))
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
    def position(self) -> Position:
        return self._position

    @position.setter
    def position(self, position: Position) -> None:
        """Go on from there. An iteration in progress is dropped."""
        if position.number < 0 or not 0 <= position.cursor < self.samples:
            raise ValueError(
                f"{position} is not in a data set of {self.samples} samples: "
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
        self._generator.manual_seed(_number(self._seed, at.number, at.cursor))
        if not self._fetched.num_workers:
            return iter(self._fetched)
        with _no_stop():
            return iter(self._fetched)

    def _guard(self, then: Callable[[int], None] | None) -> "_WorkerStart":
        closing = RawValue(ctypes.c_bool, False)
        # Before multiprocessing ends its children with SIGTERM and waits for them.
        Finalize(self, _set, (closing,), exitpriority=100)
        return _WorkerStart(closing, then)


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

    def __init__(self, samples: int, seed: int, shuffle: bool, ranks: Ranks) -> None:
        self._data = samples, seed, shuffle
        self._ranks = ranks
        self.sent: deque[Cell] = deque()

    def start(self, position: Position, batch: int, passes: int) -> None:
        self._from = position, batch, passes

    def __iter__(self) -> Iterator[Any]:
        self.sent.clear()
        return self._cells(*self._from)

    def _cells(self, position: Position, batch: int, passes: int) -> Iterator[Any]:
        samples, seed, shuffle = self._data
        number, cursor = position.number, position.cursor
        while True:
            row = order(samples, seed, number, shuffle)
            for start in range(cursor, samples, batch):
                rank, world = self._ranks.rank, self._ranks.world_size
                for cell in cells(row, start, batch, passes, rank, world):
                    self.sent.append(cell)
                    yield number, cell.indices
            number, cursor = number + 1, 0


class _Samples(Dataset[Any]):
    """The user's data set, with random numbers that depend on nothing but pass and sample."""

    def __init__(self, dataset: Dataset[Any], seed: int) -> None:
        self.dataset, self._seed = dataset, seed
        root: Any = dataset
        while type(root) is Subset:  # it reads many at once even if what it is of does not
            root = root.dataset
        self._many = hasattr(root, "__getitems__")

    def __getitems__(self, asked: tuple[int, Sequence[int]]) -> Sequence[Any]:
        if get_worker_info() is not None:
            return self._read(*asked)
        with _own_randomness():
            return self._read(*asked)

    def _read(self, number: int, indices: Sequence[int]) -> Sequence[Any]:
        if self._many:
            _reseed(self._seed, number, indices[0])
            found: Sequence[Any] = self.dataset.__getitems__(list(indices))  # type: ignore[attr-defined]
            return found
        return [self._one(number, index) for index in indices]

    def _one(self, number: int, index: int) -> Any:
        _reseed(self._seed, number, index)
        return self.dataset[index]


def _number(*parts: int) -> int:
    """64 bits that depend on all parts: cheaper than SeedSequence, which is 10 µs per sample."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big")


def _reseed(*parts: int) -> None:
    number = _number(*parts)
    random.seed(number)
    np.random.seed(number & 0xFFFFFFFF)
    torch.default_generator.manual_seed(number)


@contextmanager
def _own_randomness() -> Iterator[None]:
    """Leave the training process's random numbers as they were."""
    before = random.getstate(), np.random.get_state(), torch.default_generator.get_state()
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.default_generator.set_state(before[2])


@dataclass(frozen=True, slots=True)
class _WorkerStart:
    """First thing in a worker process: outlive the SIGTERM that asks the whole job to stop.

    The last iteration and the checkpoint come after it, and PyTorch raises an error in a rank whose
    worker died. The rank ends its workers itself, when it ends or lets go of the loader.
    """

    closing: Any  # a shared bool
    then: Callable[[int], None] | None

    def __call__(self, worker: int) -> None:
        parent = os.getppid()

        def on_stop(number: int, frame: FrameType | None) -> None:
            if self.closing.value or os.getppid() != parent:
                os._exit(0)

        signal.signal(signal.SIGTERM, on_stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        info: Any = get_worker_info()
        object.__setattr__(info, "dataset", info.dataset.dataset)  # the user's own, for `then`
        if self.then is not None:
            self.then(worker)


@contextmanager
def _no_stop() -> Iterator[None]:
    """Hold SIGTERM back while workers begin: they are born with it blocked, until they are safe."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _set(flag: Any) -> None:
    flag.value = True


def _length(dataset: Any) -> int:
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
        raise ValueError(
            f"{type(dataset).__name__} is not a map-style data set: an elastic loader must be able "
            "to begin anywhere, so it needs __getitem__ and __len__"
        )
    if not hasattr(dataset, "__len__"):
        raise ValueError(f"{type(dataset).__name__} has no __len__: when a pass ends is not known")
    if not len(dataset):
        raise ValueError("the data set is empty")
    return len(dataset)


def _sizes(batch: int, passes: int) -> tuple[int, int]:
    if batch < 1 or passes < 0:
        raise ValueError(f"batch {batch} and passes {passes}: at least 1 and 0 are needed")
    return batch, passes
