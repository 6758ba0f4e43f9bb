"""Points of a hand-over through memory where a test holds a process, to kill somebody meanwhile.

A gate is shut by a file, holds the first of rank 0's processes that comes there, and lets it go on
when the test says so. Writers are another process: see forked_writers.py.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

from forked_writers import command as forked
from keeping import until

T = TypeVar("T")
IN_RANKS = {
    "reserving": ("boa.train.keeper.client:KeeperClient", "reserve", False),
    "copying": ("boa.train.torch.memory.pieces:PieceWriter", "write_data", True),
    "keeping": ("boa.train.keeper.client:KeeperClient", "keep", True),
    "publishing": ("boa.train.keeper.pointer", "written", False),
    "published": ("boa.train.keeper.pointer", "written", True),
    "loading": ("boa.train.torch.memory.pieces:PieceReader", "read_data", False),
}
IN_WRITERS = {
    "writing": ("boa.train.torch.memory.flushing", "_copy", True),
    "naming": ("boa.train.checkpoints", "publish", False),
    "named": ("boa.train.checkpoints", "publish", True),
}
"""By name of the point: who has the function (by name: tests that hold others need no torch), the
function, and whether it is after its call or before."""
EVERY_POINT = "BOA_EVERY_POINT"
"""Variable: whether hand-overs are interrupted at every point there is. That takes some minutes
more, so usually it is those that differ most."""


def points(every: Iterable[T], usual: Iterable[T]) -> list[T]:
    return list(every if os.environ.get(EVERY_POINT) else usual)


class Gates:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # The test's side

    def shut(self, point: str) -> None:
        (self.folder / f"{point}.shut").touch()

    def is_held(self, point: str) -> bool:
        return (self.folder / f"{point}.held").exists()

    def held(self, point: str) -> int:
        """Wait until somebody stands there; gives its process id."""
        found = self.folder / f"{point}.held"
        until(found.exists)
        return int(found.read_text())

    def open(self, point: str) -> None:
        (self.folder / f"{point}.open").touch()

    # The side of who is held

    def stand(self, points: dict[str, tuple[str, str, bool]]) -> None:
        for point, (where, name, after) in points.items():
            owner = resolve_name(where)
            setattr(owner, name, self._held(point, getattr(owner, name), after))

    def _held(self, point: str, function: Callable[..., Any], after: bool) -> Callable[..., Any]:
        def passing(*given: Any, **named: Any) -> Any:
            if not after:
                self._wait(point)
            found = function(*given, **named)
            if after:
                self._wait(point)
            return found

        return passing

    def _wait(self, point: str) -> None:
        try:
            (self.folder / f"{point}.shut").unlink()
        except FileNotFoundError:  # it is open, or somebody has been held already
            return
        told = self.folder / f"{point}.tell"
        told.write_text(str(os.getpid()))
        told.rename(self.folder / f"{point}.held")
        until((self.folder / f"{point}.open").exists)


def stand_in_rank(folder: Path, writers: str) -> None:
    """In rank 0, and in the writers that keepers start for it; `writers`: where those are asked
    for."""
    from boa.train.torch.memory import handing

    if os.environ["RANK"] != "0":
        return
    Gates(folder).stand(IN_RANKS)
    command = handing.Handing._command

    def gated(self: handing.Handing, generation: str) -> list[str]:
        python, _, _, *rest = command(self, generation)
        return forked(python, writers, str(folder), *rest)

    handing.Handing._command = gated  # type: ignore[method-assign]


def write(folder: str, home: str, keeper: str, generation: str) -> None:
    """What a writer does."""
    from boa.train.torch.memory import flushing

    Gates(Path(folder)).stand(IN_WRITERS)
    flushing.write_out(Path(home), Path(keeper), generation)
