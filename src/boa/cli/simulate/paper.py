"""`boa paper`: redo the paper's evaluation, each figure and table beside its claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from boa.cli import parsers, shell
from boa.cli.console import console, emit_json, note
from boa.cli.options import Json, Processes

if TYPE_CHECKING:
    from boa.paper.study import Scale, Study

app = shell.Group("paper", "Redo the paper's evaluation: every figure and table beside its claim.")
Output: TypeAlias = Annotated[
    Path,
    shell.Option(
        "-o",
        "--output",
        metavar="DIR",
        parser=parsers.folder("--output"),
        help="Pictures, tables and a summary go here; finished runs are kept in DIR/runs.",
    ),
]
DIR = Path("paper-results")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redoing:
    """Extent of the evaluation, and the folder of its results."""

    quick: Annotated[
        bool,
        shell.Option(
            "--quick", help="Minutes instead of an hour: one draw, few points, 6 hours of newTrace."
        ),
    ] = False
    output: Output = DIR
    data: Annotated[
        Path | None,
        shell.Option(
            "--data",
            metavar="DIR",
            parser=parsers.folder("--data"),
            help="Public traces and profiles; $BOA_PAPER_DATA, or ../shared/data.",
        ),
    ] = None
    jobs: Processes = None
    json: Json = False


@app.add("list")
def list_(json: Json = False) -> None:
    """Show every figure and table there is, with the paper's claim.

    [bold]Example[/bold]
    [dim]$[/dim] boa paper list
    """
    from boa.cli.markup import escape
    from boa.cli.tables import Table
    from boa.paper.registry import STUDIES

    entries = [{"name": s.name, "where": s.where, "claim": s.claim} for s in STUDIES.values()]
    if json:
        emit_json({"studies": entries})
        return
    table = Table(gap=3)
    table.add_column("name", no_wrap=True)
    table.add_column("in the paper", no_wrap=True)
    table.add_column("claim")
    for entry in entries:
        table.add_row(*(escape(entry[key]) for key in ("name", "where", "claim")))
    console().print(table)


@app.add("run")
def run(
    names: Annotated[
        list[str],
        shell.Argument(metavar="NAME...", help="Of `boa paper list`."),
    ],
    how: Redoing,
) -> None:
    """Redo some figures or tables. What was interrupted goes on where it stopped.

    Writes NAME.svg, NAME.png and NAME.csv, and prints the paper's claim
    beside what was measured. Results are the same on every machine.

    [bold]Examples[/bold]
    [dim]$[/dim] boa paper run frontier-rubick
    [dim]$[/dim] boa paper run implementation usage --quick -o results
    """
    _redo(names, how)


@app.add("all")
def all_(how: Redoing) -> None:
    """Redo everything: about an hour on two cores, or minutes with --quick.

    Studies of traces that are not there are left out, and named.

    [bold]Example[/bold]
    [dim]$[/dim] boa paper all --quick
    """
    from boa.paper.registry import STUDIES

    _redo(list(STUDIES), how, leave_out=True)


@app.add("report")
def report(output: Output = DIR) -> None:
    """Print the results so far as a Markdown table.

    [bold]Example[/bold]
    [dim]$[/dim] boa paper report -o results
    """
    from boa.paper.registry import STUDIES
    from boa.paper.results import markdown
    from boa.paper.summary import read_summary

    for line in markdown(read_summary(output), list(STUDIES)):
        print(line)


def _redo(names: Sequence[str], how: Redoing, *, leave_out: bool = False) -> None:
    """`leave_out`: studies of traces that are not there."""
    from boa.paper.data import find_data
    from boa.paper.place import check_files, held
    from boa.paper.registry import studies

    chosen, data = studies(names), find_data(how.data)
    with held(how.output):
        check_files(how.output, chosen)
        _redo_in(chosen, data, how, leave_out=leave_out)


def _redo_in(chosen: Sequence["Study"], data: Path, how: Redoing, *, leave_out: bool) -> None:
    """The same, in a folder that is ours."""
    from boa.paper.results import redo
    from boa.paper.study import FULL, QUICK
    from boa.sim.sweep import usual_jobs

    scale = QUICK if how.quick else FULL
    if leave_out:
        chosen = _with_traces(chosen, data, how.output, scale)
    summary = redo(
        chosen,
        how.output,
        data,
        scale,
        jobs=how.jobs or usual_jobs(),
        say=note,
        tell=(lambda entry: None) if how.json else _tell,
    )
    if how.json:
        emit_json(summary)
    made = len(chosen) - len(summary["not_made"])
    note(
        f"{made} results in {how.output} ({scale.name}: newTrace is {scale.newtrace}), "
        f"made in {summary['wall_s'] / 60:.1f} min"
    )
    if made < len(chosen):
        raise shell.Exit(1)


def _with_traces(
    chosen: Sequence["Study"], data: Path, output: Path, scale: "Scale"
) -> list["Study"]:
    """Studies whose traces are there; the others are named."""
    from boa.paper.pool import ResultStore
    from boa.paper.results import lacking
    from boa.paper.study import Evidence

    evidence = Evidence(ResultStore(output, data), scale, data)
    without = {study.name: lacking(study, evidence) for study in chosen}
    for name, file in without.items():
        if file is not None:
            note(f"{name} is left out: there is no {file}")
    return [study for study in chosen if without[study.name] is None]


def _tell(entry: Mapping[str, Any]) -> None:
    if entry["verdict"] == "ours":
        print(f"{entry['name']}: {entry['claim']}. {entry['measured']} ({entry['reason']}).")
        return
    print(
        f"{entry['name']}: the paper: {entry['claim']}. Measured: {entry['measured']}. "
        f"{entry['verdict'].capitalize()}: {entry['reason']}."
    )
