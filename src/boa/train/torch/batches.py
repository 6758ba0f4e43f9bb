"""What a script iterates over in an epoch."""

from collections.abc import Callable, Iterator
from typing import Any

from boa.train.torch.data import Cell, ElasticLoader


class Batches:
    """The batches that are left of the current epoch; every one is to be given to `step`."""

    def __init__(
        self,
        data: ElasticLoader,
        begin: Callable[[], None],
        given: Callable[[Cell], None],
        over: Callable[[], bool],
    ) -> None:
        """`begin` is called before a batch is fetched, `given` before the script gets it."""
        self._data, self._begin, self._given, self._over = data, begin, given, over
        self._stream: Iterator[tuple[Cell, Any]] | None = None

    def __iter__(self) -> Iterator[Any]:
        while not self._over():
            self._begin()
            if self._stream is None:  # one for all epochs: it has fetched ahead
                self._stream = self._data.stream()
            try:
                cell, batch = next(self._stream)
            except BaseException:
                self._stream = None
                raise
            self._given(cell)
            yield batch

    def __len__(self) -> int:
        """About: of this pass over the data, at the current batch size."""
        left = self._data.samples - self._data.position.cursor
        return -(-left * (self._data.passes + 1) // self._data.batch)
