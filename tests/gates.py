"""Points of a hand-over through memory where a test holds a process, to kill somebody meanwhile.

A gate is shut by a file, holds the first of rank 0's processes that comes there, and lets it go on
when the test says so. Writers are another process: `python -m gates FOLDER HOME KEEPER GENERATION`.
"""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from boa.train import checkpoints
from boa.train.keeper import pointer
from boa.train.keeper.client import KeeperClient
from boa.train.torch.memory import flushing, handing
from boa.train.torch.memory.pieces import PieceReader, PieceWriter
from keeping import until

T = TypeVar("T")
IN_RANKS: dict[str, tuple[Any, str, bool]] = {
    "reserving": (KeeperClient, "reserve", False),
    "copying": (PieceWriter, "write_data", True),
    "keeping": (KeeperClient, "keep", True),
    "publishing": (pointer, "written", False),
    "published": (pointer, "written", True),
    "loading": (PieceReader, "read_data", False),
}
EVERY_POINT = "BOA_EVERY_POINT"
"""Variable: whether hand-overs are interrupted at every point there is. That takes some minutes
more, so usually it is those that differ most."""


def points(every: Iterable[T], usual: Iterable[T]) -> list[T]:
    return list(every if os.environ.get(EVERY_POINT) else usual)


IN_WRITERS: dict[str, tuple[Any, str, bool]] = {
    "writing": (flushing, "_copy", True),
    "naming": (checkpoints, "publish", False),
    "named": (checkpoints, "publish", True),
}
"""By name of the point: the function, and whether it is after its call or before."""


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

    def stand(self, points: dict[str, tuple[Any, str, bool]]) -> None:
        for point, (owner, name, after) in points.items():
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


def stand_in_rank(folder: Path) -> None:
    """In rank 0, and in the writers that keepers start for it."""
    if os.environ["RANK"] != "0":
        return
    Gates(folder).stand(IN_RANKS)
    command = handing.Handing._command

    def gated(self: handing.Handing, generation: str) -> list[str]:
        python, _, _, *rest = command(self, generation)
        return [python, "-m", "gates", str(folder), *rest]

    handing.Handing._command = gated  # type: ignore[method-assign]


if __name__ == "__main__":
    Gates(Path(sys.argv[1])).stand(IN_WRITERS)
    flushing.write_out(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
