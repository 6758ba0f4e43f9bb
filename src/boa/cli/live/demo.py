"""`boa demo`: the whole service on this machine, in compressed time, with nothing to prepare."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from boa.cli import shell
from boa.cli.console import console, emit_json, note, write_file
from boa.cli.options import Json
from boa.errors import FileError

if TYPE_CHECKING:
    from boa.plots.live import DemoOutcome

KINDS = (".png", ".svg")


def demo(
    folder: Annotated[
        Path, shell.Option("-o", "--output", metavar="DIR", help="Where the pictures go.")
    ] = Path("demo"),
    json: Json = False,
) -> None:
    """Run the service for a minute and a half: nothing to prepare, nothing paid.

    Starts `boa serve` with nodes that only exist on paper, submits a stream
    of jobs that replay the training of real models 120 times as fast, and
    one small job that really trains (NumPy). Shows them while they run, then
    what was planned against what was measured.

    [bold]Example[/bold]
    [dim]$[/dim] boa demo -o demo
    """
    from boa.cli.live.demo_run import Demo
    from boa.cli.live.demo_table import Watching, print_outcome

    _make(folder)
    with tempfile.TemporaryDirectory(prefix="boa-demo-") as scratch:
        story = Demo(Path(scratch))
        with story.running():
            note(f"while it runs, its dashboard is at {story.dashboard}")
            with Watching(story, quiet=json) as watching:
                story.play(watching)
            outcome = story.outcome()
    written = _draw(outcome, folder)
    if json:
        emit_json({**outcome.document(), "files": [str(path) for path in written]})
        return
    print_outcome(outcome)
    out = console()
    out.print("\n[bold]Picture[/bold]")
    for path in written:
        out.print(f"  {path}", wrap=False)
    note("Next: boa serve --help, boa submit --help; to plan ahead: boa plan --help")


def _draw(outcome: "DemoOutcome", folder: Path) -> list[Path]:
    from boa.plots.live import live_picture

    written = []
    for kind in KINDS:
        path = folder / f"demo{kind}"
        write_file(path, live_picture(outcome, kind), "--output")
        written.append(path)
    return written


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise FileError(f"--output {folder}", reason, "a folder that can be made") from None
