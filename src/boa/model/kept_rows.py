"""Rows kept from one decision to the next: found again by the identity of their objects."""

from collections.abc import Sequence
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
        self._ids = np.zeros(0, dtype=np.int64)

    def before(self, objects: Sequence[object]) -> Ints | None:
        """Where each was the last time, -1 for one that was not there; None: all as they were."""
        if len(objects) == len(self._shown) and all(map(is_, objects, self._shown)):
            return None
        had, ids = self._ids, np.fromiter(map(id, objects), np.int64, len(objects))
        self._shown, self._ids = tuple(objects), ids
        if not len(had):
            return np.full(len(ids), -1)
        order = had.argsort()
        found = order[np.searchsorted(had, ids, sorter=order).clip(max=len(had) - 1)]
        return np.where(had[found] == ids, found, -1)
