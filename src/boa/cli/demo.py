"""`boa demo`: a whole plan on a built-in example, with its pictures."""

from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from boa.cli.console import console, emit_json, note, working, write_file
from boa.cli.options import Json
from boa.errors import FileError
from boa.model.workload import Workload
from boa.plots.curve import Curve
from boa.solver.solution import Solution, as_document

EXAMPLE = "newtrace-hetero.yaml"
BUDGET = 120.0
KINDS = (".png", ".html")


def demo(
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where the pictures go.")
    ] = Path("demo"),
    json: Json = False,
) -> None:
    """Plan a built-in example and draw its pictures: nothing to prepare, nothing
    rented.

    Five kinds of training jobs (960 of them over two days) on three GPU
    types, for $120 an hour.

    [bold]Example[/bold]
    [dim]$[/dim] boa demo -o demo
    """
    from boa.solver.planner import frontier, plan

    _make(folder)
    example = example_path(EXAMPLE)
    with working("reading the example"):
        from boa.model.workload_file import load_workload

        workload = load_workload(example)
    with working("solving"):
        solution = plan(workload, BUDGET)
        found = frontier(workload)
    with working("Algorithm 1, for comparison") as progress:
        from boa.plots.curve import curve_of, glue_points

        curve = curve_of(workload, found, budget=BUDGET)
        curve = glue_points(curve, workload, progress=progress)
    with working("drawing"):
        written = draw(workload, solution, curve, folder)
    if json:
        emit_json({"files": [str(path) for path in written], "plan": as_document(solution)})
        return
    _print(workload, solution, written)


def example_path(name: str) -> Path:
    """A shipped example: inside the installed package, or beside it in a source tree."""
    import boa

    packaged = Path(str(resources.files("boa"))) / "examples" / name
    beside = Path(boa.__file__).resolve().parents[2] / "examples" / name
    for path in (packaged, beside):
        if path.is_file():
            return path
    raise FileError(str(packaged), "no such file", "the examples that ship with boa")


def draw(workload: Workload, solution: Solution, curve: Curve, folder: Path) -> list[Path]:
    from boa.plots.render import frontier_picture, width_picture

    pictures: dict[str, Any] = {}
    for kind in KINDS:
        pictures[f"frontier{kind}"] = frontier_picture(curve, kind)
        pictures[f"widths{kind}"] = width_picture(workload, solution, kind)
    for name, content in pictures.items():
        write_file(folder / name, content, "--output")
    return [folder / name for name in pictures]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise FileError(f"--output {folder}", reason, "a folder that can be made") from None


def _print(workload: Workload, solution: Solution, written: list[Path]) -> None:
    from boa.cli.plan_table import print_solution

    out = console()
    out.print(f"[bold]boa plan {EXAMPLE} --budget {BUDGET:g}[/bold]\n")
    print_solution(workload, solution)
    out.print("\n[bold]Pictures[/bold]")
    for path in written:
        out.print(f"  {path}", soft_wrap=True)
    note("Next: boa plan --help, boa simulate --help; your own workload: boa schema workload")
