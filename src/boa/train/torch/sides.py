"""Second loaders: data that goes round beside the first, which makes the epochs."""

from collections.abc import Iterator
from typing import Any

from boa.train.torch.data import Cell, ElasticLoader, Position
from boa.train.torch.streams import StreamLoader


class Side:
    """A batch with every batch of the first loader, or several; passes follow one another.

    A batch that is drawn while the first loader has none out (`zip(second, first)`) is for its
    next one: it is given again if that never comes.
    """

    def __init__(self, data: ElasticLoader | StreamLoader, batch: int) -> None:
        self.data, self.batch = data, batch
        self._stream: Iterator[tuple[Cell | None, Any]] | None = None
        self._out: Any = None
        self._is_out = self._early = False
        self._before: dict[str, Any] | None = None  # a stream's state at an early draw

    def draw(self, *, during: bool) -> Any:
        """The next batch; `during`: while the first loader has one out."""
        if self._is_out and self._early and not during:
            return self._out
        self.done()
        if self._stream is None:
            self._stream = iter(self.data.stream())
        if not during and isinstance(self.data, StreamLoader):
            self._before = self.data.state()
        cell = None
        while cell is None:  # a pass of a stream is over, and the next begins
            cell, self._out = next(self._stream)
        self._is_out, self._early = True, not during
        return self._out

    def begun(self) -> None:
        """The first loader has a batch out."""
        self._early = False

    def done(self) -> None:
        """The batch that was drawn was trained on, unless it is for the next batch."""
        if self._is_out and not self._early:
            self.data.advance()
            self._is_out, self._out = False, None

    def state(self) -> dict[str, Any]:
        at = self.data.position
        state = None
        if isinstance(self.data, StreamLoader):
            state = self._before if self._is_out and self._early else self.data.state()
        return {"position": (at.number, at.cursor), "stream": state}

    def load(self, state: dict[str, Any]) -> None:
        self.data.position = Position(*state["position"])
        if isinstance(self.data, StreamLoader):
            self.data.load(state["stream"])
