"""In which order a pass goes through the data: the same on every rank and after every restart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DistributedSampler

from boa.train.torch.seeding import number_of, own_randomness, reseed

Order: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One pass."""

    indices: Order
    unique: bool
    """Whether no sample comes twice."""
    ends: Order | None = None
    """Where iterations end, if that is not every so many samples."""

    def __len__(self) -> int:
        return len(self.indices)

    def total(self, cursor: int, batch: int) -> int:
        """Samples of the iteration that begins at the cursor."""
        if self.ends is None:
            return min(batch, len(self.indices) - cursor)
        return int(self.ends[np.searchsorted(self.ends, cursor, side="right")]) - cursor

    def totals(self) -> list[int]:
        """Samples of its iterations, where batches are made by a batch sampler."""
        return [] if self.ends is None else np.diff(self.ends, prepend=0).tolist()


def order(samples: int, seed: int, number: int, shuffle: bool) -> Order:
    """In which order pass `number` goes through the data: the same wherever it is asked for."""
    row = np.arange(samples, dtype=np.int64)
    if shuffle:
        # NumPy keeps RandomState's streams as they are for good; those of Generator may change.
        bits = np.random.MT19937(np.random.SeedSequence([seed, number]))
        np.random.RandomState(bits).shuffle(row)
    return row


class Orders:
    """Passes by number. A sampler is asked once for every pass, with random numbers of that pass:
    whatever it draws from, its own generator included, it draws the same on every rank."""

    def __init__(
        self,
        samples: int,
        seed: int,
        *,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        multiple: int = 1,
    ) -> None:
        self._samples, self._seed, self._multiple = samples, seed, multiple
        self._shuffle = shuffle is None or shuffle
        self._sampler, self._made = sampler, batch_sampler
        for name, given in (("sampler", sampler), ("batch_sampler", batch_sampler)):
            if given is not None:
                _check(name, given)
                if shuffle is not None:
                    raise ValueError(f"shuffle: got {shuffle} beside {name}, which says the order")
        if batch_sampler is not None and (sampler is not None or multiple > 1):
            other = "drop_last" if sampler is None else "sampler"
            raise ValueError(f"{other}: got one beside batch_sampler; expected one of the two")
        self._rows: dict[int, Row] = {}

    def row(self, number: int) -> Row:
        if number not in self._rows:
            made = self._make(number)
            if not len(made):
                raise ValueError(f"pass {number} over the data has no samples; {self._why}")
            self._rows = {**dict(list(self._rows.items())[-1:]), number: made}  # and the one before
        return self._rows[number]

    @property
    def _why(self) -> str:
        if self._multiple > 1:
            return f"drop_last leaves out less than a batch of {self._multiple}"
        return "expected some from the sampler"

    def _make(self, number: int) -> Row:
        if self._made is not None:
            batches = [_numbers("batch_sampler", each) for each in self._draw(self._made, number)]
            batches = [each for each in batches if len(each)]
            ends = np.cumsum([len(each) for each in batches], dtype=np.int64)
            return Row(np.concatenate(batches) if batches else ends, unique=False, ends=ends)
        if self._sampler is not None:
            drawn = _numbers("sampler", self._draw(self._sampler, number))
            return Row(self._cut(drawn), unique=False)
        return Row(self._cut(order(self._samples, self._seed, number, self._shuffle)), unique=True)

    def _cut(self, row: Order) -> Order:
        return row[: len(row) // self._multiple * self._multiple]

    def _draw(self, sampler: Any, number: int) -> list[Any]:
        with own_randomness():
            reseed(self._seed, number)
            turn_to(number, self._seed, sampler, getattr(sampler, "sampler", None))
            return list(sampler)


def turn_to(number: int, seed: int, *parts: Any) -> None:
    """Have those that have an epoch or a generator of their own begin this pass."""
    for part in parts:
        if callable(getattr(part, "set_epoch", None)):
            part.set_epoch(number)
        if isinstance(generator := getattr(part, "generator", None), torch.Generator):
            generator.manual_seed(number_of(seed, number))


def _check(name: str, sampler: Any) -> None:
    for each in (sampler, getattr(sampler, "sampler", None)):
        if isinstance(each, DistributedSampler):
            raise TypeError(
                f"{name}: got a {type(each).__name__}, which takes one rank's share; expected one "
                "over all samples: the loader gives each rank its share"
            )
    if not hasattr(sampler, "__len__") or not hasattr(sampler, "__iter__"):
        raise TypeError(
            f"{name}: got a {type(sampler).__name__}; expected an iterable of a known length "
            "(__iter__, __len__): a pass has to end"
        )


def _numbers(name: str, drawn: Sequence[int]) -> Order:
    try:
        found = np.asarray([int(each) for each in drawn], dtype=np.int64)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: gives no whole numbers; expected indices") from None
    return found
