"""The command `boa`: one file per command; errors end in one line and an exit code."""

import atexit
import errno
import gc
import os
import sys
from collections.abc import Sequence

import click

from boa._version import __version__
from boa.cli import shell
from boa.cli.commands import COMMANDS
from boa.cli.console import say_error
from boa.errors import BoaError

USAGE, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
MANY = 20_000
"""New objects between two looks for garbage; Python's own 700 is for small programs."""
COMPLETE = "_BOA_COMPLETE"
"""Variable that a shell sets to have a command line completed."""


class Root(shell.Lazy):
    """`boa` itself; without a command it shows its help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])


def _version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        print(f"boa {__version__}")
        ctx.exit()


HELP = """\
The shortest average job completion time that a GPU budget can buy.

Write down which training jobs arrive, how they speed up with GPUs and
what GPUs cost; name a budget; get the plan that finishes jobs soonest,
with the proof that no plan beats it.

Start with [bold]boa demo[/bold], or:

[dim]$[/dim] boa plan examples/newtrace-hetero.yaml --budget 120

To run jobs for real, start a service with [bold]boa serve[/bold] and
hand it jobs with [bold]boa submit[/bold].

Exit codes: 0 done, 2 bad input or usage, 3 no plan fits the budget, 4 no
server reachable, 1 anything else."""


def root() -> Root:
    version = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_version,
        help="Print the version.",
    )
    return Root("boa", COMMANDS, help=HELP, params=[version])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; without words given, as the program itself."""
    if arguments is None:
        _hurry()
    if asked := os.environ.get(COMPLETE):
        return shell.completions(root(), COMPLETE, asked)
    try:
        code = shell.run(root(), arguments)
        sys.stdout.flush()
        return code
    except BoaError as problem:
        return _fail(str(problem), problem.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.ClickException as problem:
        return _fail(_usage(problem), USAGE)
    except MemoryError:
        return _fail("out of memory: the input is too large for this machine", 1)
    except Exception as problem:
        if os.environ.get("BOA_DEBUG"):
            raise
        if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
            return _fail(f"nothing more can be written: {problem.strerror}", 1)
        kind = type(problem).__name__
        return _fail(
            f"unexpected {kind}: {problem}. This is a bug in boa; BOA_DEBUG=1 shows where.", 1
        )


def _hurry() -> None:
    """Look for garbage less often, and not at all at the end, when all of it goes anyway.

    That is a tenth of what a short command takes.
    """
    gc.set_threshold(MANY)
    atexit.register(gc.freeze)


def _usage(problem: click.ClickException) -> str:
    """The mistake in the command line, and where to read how it is meant."""
    said = " ".join(problem.format_message().split())
    context = getattr(problem, "ctx", None)
    where = context.command_path if context is not None else "boa"
    return f"{said if said.endswith('?') else said.rstrip('.') + '.'} See '{where} --help'."


def _fail(message: str, code: int) -> int:
    """Names out of files may have control characters in them, which are not for terminals."""
    say_error("".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in message))
    return code
