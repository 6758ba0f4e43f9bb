"""Rows kept from one decision to the next: found again by the identity of their objects."""

from collections.abc import Sequence
from itertools import repeat
from operator import is_
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]


class KeptRows:
    """Places of frozen objects when they were last shown: what was made of one then is right for
    the very same object now."""

    def __init__(self) -> None:
        self._shown: Sequence[object] = ()  # they live on: no other object can have their identity
        self._rows = dict[int, int]()
        """Places by identity."""

    def before(self, objects: Sequence[object]) -> Ints | None:
        """Where each was the last time, -1 for one that was not there; None: all as they were."""
        if len(objects) == len(self._shown) and all(map(is_, objects, self._shown)):
            return None
        had, count = self._rows, len(objects)
        found = np.fromiter(map(had.get, map(id, objects), repeat(-1)), np.int64, count)
        self._shown = tuple(objects)
        self._rows = dict(zip(map(id, objects), range(count), strict=True))
        return found
