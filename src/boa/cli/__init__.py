"""The command `boa`: one file per command; errors end in one line and an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from boa._version import __version__
from boa.cli.console import say_error
from boa.cli.live import cost, demo, logs, nodes, ps, replay, serve, show, stop, submit
from boa.cli.plan import budget, evaluate, frontier, offers, plan, schema, workload
from boa.cli.simulate import compare, paper, simulate, trace
from boa.errors import BoaError

USAGE, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
LIVE = "A running service"

# Typer carries a click of its own since 0.2x; both versions derive BadParameter from it.
_ClickException: type[Exception] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="boa",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"boa {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _boa(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """The shortest average job completion time that a GPU budget can buy.

    Write down which training jobs arrive, how they speed up with GPUs and
    what GPUs cost; name a budget; get the plan that finishes jobs soonest,
    with the proof that no plan beats it.

    Start with [bold]boa demo[/bold], or:

    [dim]$[/dim] boa plan examples/newtrace-hetero.yaml --budget 120

    To run jobs for real, start a service with [bold]boa serve[/bold] and
    hand it jobs with [bold]boa submit[/bold].

    Exit codes: 0 done, 2 bad input or usage, 3 no plan fits the budget, 4 no
    server reachable, 1 anything else.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command("plan")(plan.plan)
app.command("evaluate")(evaluate.evaluate)
app.command("frontier")(frontier.frontier)
app.command("budget", cls=budget.BudgetCommand)(budget.budget)
app.add_typer(workload.app, name="workload")
app.add_typer(trace.app, name="trace")
app.command("simulate")(simulate.simulate)
app.command("compare")(compare.compare)
app.add_typer(paper.app, name="paper")
app.command("offers")(offers.offers)
app.command("schema")(schema.schema)
app.command("demo")(demo.demo)
app.command("serve", rich_help_panel=LIVE)(serve.serve)
app.add_typer(replay.app, name="replay", rich_help_panel=LIVE)
app.command("submit", rich_help_panel=LIVE)(submit.submit)
app.command("ps", rich_help_panel=LIVE)(ps.ps)
app.command("show", rich_help_panel=LIVE)(show.show)
app.command("logs", rich_help_panel=LIVE)(logs.logs)
app.command("stop", rich_help_panel=LIVE)(stop.stop)
app.command("nodes", rich_help_panel=LIVE)(nodes.nodes)
app.command("cost", rich_help_panel=LIVE)(cost.cost)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    given = None if arguments is None else list(arguments)
    try:
        code = typer.main.get_command(app).main(given, prog_name="boa", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BoaError as problem:
        return _fail(str(problem), problem.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except _ClickException as problem:
        said = _usage(problem)
        return _fail(said, USAGE) if said else USAGE  # without a word: help was printed instead
    except MemoryError:
        return _fail("out of memory: the input is too large for this machine", 1)
    except Exception as problem:
        if os.environ.get("BOA_DEBUG"):
            raise
        kind = type(problem).__name__
        return _fail(
            f"unexpected {kind}: {problem}. This is a bug in boa; BOA_DEBUG=1 shows where.", 1
        )


def _usage(problem: Exception) -> str:
    """What was wrong with the command line, and where to read how it is meant."""
    said = " ".join(getattr(problem, "format_message", problem.__str__)().split())
    context = getattr(problem, "ctx", None)
    where = context.command_path if context is not None else "boa"
    if not said:
        return ""
    return f"{said if said.endswith('?') else said.rstrip('.') + '.'} See '{where} --help'."


def _fail(message: str, code: int) -> int:
    say_error(message)
    return code
