"""Arguments and options that several commands share, and how their files are read."""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

from boa.cli import parsers, shell
from boa.errors import FileError, InputError

if TYPE_CHECKING:
    from boa.model.workload import Workload

SOLVERS = ("exact", "glue", "milp")
ROUTINGS = ("class", "epoch", "migrate")
BILLINGS = ("gpu", "node")
"""As in `boa.solver.planner` and `boa.model.workload`, which take a while to import."""
SLOWDOWNS = ("sia", "none")
"""Per-model calibrations, as in `boa.catalogue`."""
THREADS = "OPENBLAS_NUM_THREADS"

_T = TypeVar("_T")


def choice(option: str, choices: Collection[str], help: str) -> shell.Option:
    parser = parsers.one_of(option, choices)
    return shell.Option(option, metavar="|".join(choices), parser=parser, help=help)


def count(option: str, metavar: str, least: int, help: str) -> shell.Option:
    return shell.Option(option, metavar=metavar, parser=parsers.whole(option, least), help=help)


def dollars(option: str, help: str) -> shell.Option:
    """USD per hour."""
    return shell.Option(option, metavar="USD", parser=parsers.money(option), help=help)


def plot(help: str, suffixes: Collection[str] = parsers.PLOT_SUFFIXES) -> shell.Option:
    parser = parsers.picture("--plot", suffixes)
    return shell.Option("--plot", metavar="FILE", parser=parser, help=help)


def seed(help: str) -> shell.Option:
    return count("--seed", "N", 0, help)


WORKLOAD = shell.Argument(
    metavar="WORKLOAD", help="Workload file, YAML or JSON (`boa schema workload` describes it)."
)
WorkloadPath: TypeAlias = Annotated[Path, WORKLOAD]
Json: TypeAlias = Annotated[
    bool,
    shell.Option("--json", help="Print one JSON document on stdout, and nothing else there."),
]
Profiles: TypeAlias = Annotated[
    Path | None,
    shell.Option(
        "--profiles",
        metavar="DIR",
        help="Folder of measurements (Sia, Pollux or Rubick). Without it the catalogue serves.",
    ),
]
Processes: TypeAlias = Annotated[
    int | None,
    count("--jobs", "N", 1, "Processes to simulate in; 2, where there are two cores."),
]


def read(load: Callable[[Path], _T], path: Path) -> _T:
    """Load a file; an error about a field says which file it is in."""
    try:
        return load(path)
    except FileError:
        raise
    except InputError as wrong:
        raise wrong.inside(str(path)) from None


@contextmanager
def solving(path: Path) -> Iterator[None]:
    """Name the file in errors that show only when a workload is solved (a cap, a missing type)."""
    try:
        yield
    except InputError as wrong:
        if not wrong.field.startswith("classes["):
            raise
        raise wrong.inside(str(path)) from None


def read_workload(path: Path) -> "Workload":
    load_numpy()
    from boa.formats.workload import load_workload

    return read(load_workload, path)


def load_numpy() -> None:
    """NumPy without threads for linear algebra: no plan has any, and to start them takes a while.

    The environment stays as it was, for whatever this process may start.
    """
    if THREADS in os.environ:
        return
    os.environ[THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[THREADS]
