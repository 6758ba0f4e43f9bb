"""Arguments and options that several commands share, each read with one clear error."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

from boa.cli import parsers, shell
from boa.errors import FileError, InputError

if TYPE_CHECKING:
    from boa.model.workload import Billing, Workload
    from boa.solver.objective import Routing

SOLVERS = ("exact", "glue", "milp")
ROUTINGS = ("class", "epoch", "migrate")
BILLINGS = ("gpu", "node")
"""As in `boa.solver.planner` and `boa.model.workload`, which take a while to import."""
THREADS = "OPENBLAS_NUM_THREADS"

_T = TypeVar("_T")


WorkloadPath: TypeAlias = Annotated[
    Path,
    shell.Argument(
        metavar="WORKLOAD",
        help="Workload file, YAML or JSON (`boa schema workload` describes it).",
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
        parser=parsers.one_of("--routing", ROUTINGS),
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
        parser=parsers.one_of("--billing", BILLINGS),
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
