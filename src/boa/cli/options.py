"""Arguments and options that several commands share, each read with one clear error."""

import math
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from boa.cli import shell
from boa.errors import FileError, InputError

if TYPE_CHECKING:
    from boa.model.workload import Billing, Workload
    from boa.solver.objective import Routing

SOLVERS = ("exact", "glue", "milp")
ROUTINGS = ("class", "epoch", "migrate")
BILLINGS = ("gpu", "node")
"""As in `boa.solver.planner` and `boa.model.workload`, which take a while to import."""
THREADS = "OPENBLAS_NUM_THREADS"
FIGURES = (".png", ".svg", ".pdf")
"""Pictures that do not move."""
PLOT_SUFFIXES = (*FIGURES, ".html")

_T = TypeVar("_T")


def number(option: str, expected: str, *, zero: bool = False) -> Callable[[Any], float]:
    """A parser of finite numbers > 0 (or >= 0)."""

    def parse(text: Any) -> float:
        try:
            value = float(text)
        except ValueError:
            raise InputError(option, text, expected) from None
        if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
            raise InputError(option, text, expected)
        return value

    return parse


def whole(option: str, least: int) -> Callable[[Any], int]:
    def parse(text: Any) -> int:
        expected = f"a whole number >= {least}"
        try:
            value = int(text)
        except ValueError:
            raise InputError(option, text, expected) from None
        if value < least:
            raise InputError(option, text, expected)
        return value

    return parse


def one_of(option: str, choices: Collection[str]) -> Callable[[Any], str]:
    def parse(text: Any) -> str:
        if text not in choices:
            raise InputError(option, text, f"one of {', '.join(choices)}")
        return str(text)

    return parse


def money(option: str) -> Callable[[Any], float]:
    return number(option, "a finite number of USD per hour > 0, such as 40")


def picture(option: str, suffixes: Collection[str] = PLOT_SUFFIXES) -> Callable[[Any], Path]:
    """A file whose suffix says which kind of picture it is to be."""

    def parse(text: Any) -> Path:
        path = Path(text)
        if path.suffix.lower() not in suffixes:
            raise InputError(option, str(text), f"a file ending in {', '.join(suffixes)}")
        return path

    return parse


WorkloadPath: TypeAlias = Annotated[
    Path,
    shell.Argument(
        metavar="WORKLOAD",
        help="Workload file, YAML or JSON (`boa schema workload` describes it).",
        show_default=False,
    ),
]
Json: TypeAlias = Annotated[
    bool,
    shell.Option(
        "--json", metavar="", help="Print one JSON document on stdout, and nothing else there."
    ),
]
NoRescaling: TypeAlias = Annotated[
    bool,
    shell.Option(
        "--no-rescaling",
        metavar="",
        help="Pretend that starting and changing GPUs takes no time (rescale_s = 0).",
    ),
]
RoutingOption: TypeAlias = Annotated[
    "Routing",
    shell.Option(
        "--routing",
        metavar="|".join(ROUTINGS),
        parser=one_of("--routing", ROUTINGS),
        help="class: a job keeps its GPU type. migrate: it may change type between epochs, at "
        "the cost of a rescaling. epoch: the type is drawn anew in every epoch (the paper's "
        "theorem; needs --no-rescaling).",
    ),
]
BillingOption: TypeAlias = Annotated[
    "Billing",
    shell.Option(
        "--billing",
        metavar="|".join(BILLINGS),
        parser=one_of("--billing", BILLINGS),
        help="gpu: pay for the GPUs used. node: pay for whole nodes (gpus_per_node).",
    ),
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
