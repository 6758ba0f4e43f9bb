"""Batches: the iterable of an epoch in a script."""

from collections.abc import Callable, Iterator
from typing import Any


class Batches:
    """The batches that are left of the current epoch; every one is to be given to `step`."""

    def __init__(self, following: Callable[[], tuple[bool, Any]], left: Callable[[], int]) -> None:
        self._following, self._left = following, left

    def __iter__(self) -> Iterator[Any]:
        while (found := self._following())[0]:
            yield found[1]

    def __len__(self) -> int:
        """About: of this pass over the data, at the current batch size."""
        return self._left()
