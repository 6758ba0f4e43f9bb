"""Data that cannot be begun anywhere: iterable data sets, and loaders that know where they are.

Every rank goes through the whole of it and takes its own share of every batch, so that all ranks
are at the same place, and that place means the same at every width. What a stream draws from
`random`, `numpy.random` and `torch` depends on the seed and the pass alone.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, default_collate

from boa.train.torch import random
from boa.train.torch.data import Cell, Position, cells, moved
from boa.train.torch.orders import turn_to
from boa.train.torch.ranks import Ranks
from boa.train.torch.seeding import own_randomness, reseed
from boa.train.torch.workers import guarded, no_stop


def is_stream(dataset: object) -> bool:
    """Whether it is read from its beginning on, and not by index."""
    if isinstance(dataset, IterableDataset | DataLoader):
        return True
    return hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__")


class StreamLoader:
    """Batches of this rank. The same calls must be made on all ranks.

    A source with `state_dict` and `load_state_dict` (itself, or its iterator) goes on from its
    state after a restart; any other is read again up to there.
    """

    def __init__(
        self,
        source: Any,
        ranks: Ranks,
        *,
        batch: int,
        passes: int = 0,
        seed: int = 0,
        shuffle: bool | None = None,
        drop_last: bool = False,
        **options: Any,
    ) -> None:
        if shuffle:
            raise ValueError("shuffle: got True for a stream; expected one that shuffles itself")
        self._ranks, self._seed, self._drop_last = ranks, seed, drop_last
        self._batch, self._passes = batch, passes
        self._source, self._made, self._collate = _source(source, batch, options)
        self._iterator: Any = None
        self._position = Position()
        self._loaded: dict[str, Any] | None = None  # the state to go on from
        self._random: dict[str, Any] | None = None
        self._cell: Cell | None = None

    @property
    def samples(self) -> int | None:
        """Samples of a pass; None if nobody knows."""
        try:
            count = len(self._source)
        except TypeError:
            return None
        return count * self._batch if self._made else count

    @property
    def length(self) -> int:
        """Batches of a pass, about."""
        if self.samples is None:
            raise TypeError(f"{type(self._source).__name__} does not say how long it is")
        return -(-self.samples // self._batch) * (self._passes + 1)

    @property
    def batch(self) -> int:
        return self._batch

    @property
    def passes(self) -> int:
        return self._passes

    def set_batch(self, batch: int, passes: int) -> None:
        """From the next iteration on."""
        if self._made and batch != self._batch:
            raise ValueError("max_batch: the loader's batches come made; expected its data set")
        self._batch, self._passes = batch, passes

    @property
    def position(self) -> Position:
        return self._position

    @position.setter
    def position(self, position: Position) -> None:
        self._position, self._iterator, self._cell = position, None, None

    def state(self) -> dict[str, Any] | None:
        """The place where the next iteration begins, for `load`; None at the start of a pass."""
        if not self._position.cursor:
            return None
        if self._iterator is None:
            return self._loaded
        keeper = self._keeper()
        own = None if keeper is None else deepcopy(keeper.state_dict())
        return {"source": own, "random": self._random}

    def load(self, state: dict[str, Any] | None) -> None:
        """Go on from there, at `position`."""
        self._loaded, self._iterator = state, None

    def advance(self) -> bool:
        """The iteration is done. Never True: that a pass is over is seen when nothing comes."""
        assert self._cell is not None
        at = self._position
        self._position = Position(at.number, at.cursor + self._cell.total)
        self._cell = None
        return False

    def stream(self) -> Iterator[tuple[Cell | None, Any]]:
        """Cells with their batches on the device, endlessly; (None, None) where a pass is over."""
        rank, world = self._ranks.rank, self._ranks.world_size
        while True:
            taken, total = self._take()
            if not total:
                if not self._position.cursor:
                    raise ValueError(f"{type(self._source).__name__} has no samples")
                self._position, self._iterator = Position(self._position.number + 1), None
                yield None, None
                continue
            row = np.arange(total)
            for cell in cells(row, 0, self._batch, self._passes, rank, world, total):
                self._cell = cell
                yield cell, moved(self._share(taken, cell), self._ranks.device)

    def _take(self) -> tuple[Any, int]:
        """The next batch of all ranks, and how many samples it has."""
        with own_randomness():
            if self._iterator is None:
                self._begin()
            elif self._random is not None:
                random.restore(self._random)
            if self._made:
                taken = next(self._iterator, None)
                total = 0 if taken is None else size(taken)
            else:
                taken = list(islice(self._iterator, self._batch))
                total = len(taken)
            self._random = random.state()
            self._random.pop("cuda", None)
        whole = self._batch if not self._made else getattr(self._source, "batch_size", None)
        return taken, 0 if self._drop_last and total < (whole or 0) else total

    def _begin(self) -> None:
        at, state, self._loaded = self._position, self._loaded, None
        reseed(self._seed, at.number)
        sampling = [getattr(self._source, name, None) for name in ("sampler", "batch_sampler")]
        turn_to(at.number, self._seed, self._source, *sampling)
        own = None if state is None or not at.cursor else state["source"]
        keeps_itself = _has_state(self._source)
        if own is not None and keeps_itself:
            self._source.load_state_dict(deepcopy(own))
        with no_stop():
            self._iterator = iter(self._source)
        if own is not None and not keeps_itself:
            self._iterator.load_state_dict(deepcopy(own))
        if state is not None and at.cursor and own is not None:
            random.restore(state["random"])
        elif at.cursor:
            self._skip(at.cursor)

    def _skip(self, count: int) -> None:
        """Read so many samples again, where nobody kept the place."""
        if not self._made:
            next(islice(self._iterator, count - 1, count), None)
            return
        while count > 0 and (batch := next(self._iterator, None)) is not None:
            count -= size(batch)

    def _keeper(self) -> Any:
        return next((each for each in (self._source, self._iterator) if _has_state(each)), None)

    def _share(self, taken: Any, cell: Cell) -> Any:
        start, end = cell.indices[0], cell.indices[-1] + 1
        return part(taken, start, end) if self._made else self._collate(taken[start:end])


def size(batch: Any) -> int:
    """Samples of a batch that was made by a loader."""
    if isinstance(batch, torch.Tensor | np.ndarray):
        return len(batch) if batch.ndim else 1
    if isinstance(batch, Mapping):
        return size(next(iter(batch.values())))
    if isinstance(batch, list | tuple) and batch:
        return len(batch) if isinstance(batch[0], str | bytes | int | float) else size(batch[0])
    kind = type(batch).__name__
    raise TypeError(f"a batch is a {kind}; expected tensors, or lists, tuples, mappings of them")


def part(batch: Any, start: int, end: int) -> Any:
    """Samples `start` to `end` of a batch that was made by a loader."""
    if isinstance(batch, torch.Tensor | np.ndarray):
        return batch[start:end]
    if isinstance(batch, Mapping):
        return {key: part(value, start, end) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(part(value, start, end) for value in batch))
    if isinstance(batch, list | tuple):
        if batch and isinstance(batch[0], str | bytes | int | float):
            return batch[start:end]
        return type(batch)(part(value, start, end) for value in batch)
    return batch


def _source(source: Any, batch: int, options: dict[str, Any]) -> tuple[Any, bool, Any]:
    """The iterable, whether it makes batches, and the function that makes them if it does not."""
    workers = options.get("num_workers", 0)
    if isinstance(source, DataLoader):
        if options:
            raise ValueError(f"{sorted(options)[0]}: expected it as an option of the loader itself")
        _check_loader(source, batch)
        if source.num_workers:
            source.worker_init_fn = guarded(source, source.worker_init_fn)
        return source, True, None
    if workers:
        try:
            from torchdata.stateful_dataloader import StatefulDataLoader
        except ImportError:
            raise ValueError(
                f"num_workers: got {workers} for a stream; expected 0, or torchdata installed, "
                "which knows how far workers are"
            ) from None
        made = StatefulDataLoader(source, batch_size=batch, **options)
        made.worker_init_fn = guarded(made, options.get("worker_init_fn"))
        return made, True, None
    collate = options.pop("collate_fn", None) or default_collate
    for name in ("num_workers", "pin_memory"):
        options.pop(name, None)
    for name in sorted(options):
        raise ValueError(f"{name} is not an option for a stream that is read without workers")
    return source, False, collate


def _check_loader(loader: DataLoader[Any], batch: int) -> None:
    if not _has_state(loader):
        raise TypeError(
            "loader: got a DataLoader, which does not know where it is; expected its data set "
            "(run.loader(dataset, num_workers=…)), or a StatefulDataLoader of torchdata's"
        )
    if isinstance(getattr(loader, "sampler", None), DistributedSampler):
        raise TypeError("loader: its DistributedSampler takes one rank's share; expected none")
    if loader.batch_size is not None and loader.batch_size != batch:
        raise ValueError(
            f"loader: its batch_size is {loader.batch_size}; expected that of all ranks together, "
            f"{batch}"
        )


def _has_state(part: object) -> bool:
    return all(callable(getattr(part, name, None)) for name in ("state_dict", "load_state_dict"))
