"""Commands as functions: the signature declares arguments and options, click reads the words.

def frontier(points: Annotated[int, Option("--points", metavar="N", help="How many.")] = 20): ...

Options that several commands have, or that belong together, are the fields of a frozen dataclass:

def simulate(trace: TracePath, physics: Physics): ...

Typer reads such functions too, at three times the price (docs/decisions/0019-the-shell.md).
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import click
from click import Context
from click.exceptions import Exit

from boa.cli import help as helping
from boa.cli.declared import Argument, Option, Signature, signature_of
from boa.cli.parameters import parameter_of

__all__ = ["Argument", "Command", "Context", "Entry", "Exit", "Group", "Lazy", "Option", "command"]

USAGE = 2
HELP = {"help_option_names": ["-h", "--help"]}
_F = TypeVar("_F", bound=Callable[..., Any])


class Command(click.Command):
    """A function's command."""

    signature: Signature

    @property
    def said(self) -> Mapping[str, Option | Argument]:
        """Options and arguments by their parameters' names."""
        return {declared.name: declared.said for declared in self.signature.declared}

    def get_help(self, ctx: Context) -> str:
        return helping.page(self, ctx, said=self.said)

    def invoke(self, ctx: Context) -> Any:
        for declared in self.signature.declared:
            if declared.is_list:
                nothing: list[Any] | None = None if declared.default is None else []
                ctx.params[declared.name] = list(ctx.params[declared.name] or ()) or nothing
        self.signature.gather(ctx.params)
        return super().invoke(ctx)


def command(
    function: Callable[..., Any], name: str | None = None, cls: type[Command] = Command
) -> Command:
    """A function's command, as its signature has it."""
    signature = signature_of(function)
    made = cls(
        name or function.__name__,
        callback=click.pass_context(function) if signature.others else function,
        params=[parameter_of(declared) for declared in signature.declared],
        help=inspect.getdoc(function),
        context_settings=dict(HELP),
    )
    made.signature = signature
    return made


class Group(click.Group):
    """Commands under one word."""

    def __init__(self, name: str, help: str) -> None:
        super().__init__(name, help=help, context_settings=dict(HELP))

    def add(self, name: str) -> Callable[[_F], _F]:
        """The function stays what it is; the group has its command."""

        def added(function: _F) -> _F:
            self.add_command(command(function, name))
            return function

        return added

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            print(self.get_help(ctx))
            ctx.exit(USAGE)
        return super().parse_args(ctx, args)

    def get_help(self, ctx: Context) -> str:
        rows = [(name, helping.summary(found)) for name, found in self.commands.items()]
        return helping.page(self, ctx, panels={"Commands": rows})

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return _resolved(self, super().resolve_command, ctx, args)


class Entry(NamedTuple):
    """A command that is not loaded before it is asked for."""

    name: str
    where: str
    """Its module, and the function or the command in there."""
    summary: str
    """Its help in one line: the first paragraph of the whole."""
    panel: str = "Commands"


class Lazy(click.Group):
    """Commands of which only names and summaries are known until one of them is used."""

    def __init__(self, name: str, entries: Sequence[Entry], **settings: Any) -> None:
        super().__init__(name, context_settings=dict(HELP), **settings)
        self.entries = {entry.name: entry for entry in entries}

    def list_commands(self, ctx: Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        return None if entry is None else loaded(entry)

    def get_help(self, ctx: Context) -> str:
        panels: dict[str, list[tuple[str, str]]] = {}
        for entry in self.entries.values():
            panels.setdefault(entry.panel, []).append((entry.name, entry.summary))
        return helping.page(self, ctx, panels=panels)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return _resolved(self, super().resolve_command, ctx, args)


def loaded(entry: Entry) -> click.Command:
    module, _, name = entry.where.partition(":")
    found = getattr(import_module(module), name)
    return found if isinstance(found, click.Command) else command(found, entry.name)


_Resolved = tuple[str | None, click.Command | None, list[str]]


def _resolved(
    group: click.Group,
    resolve: Callable[[Context, list[str]], _Resolved],
    ctx: Context,
    args: list[str],
) -> _Resolved:
    """The command, or an error that knows which one was meant."""
    name, known = args[0], group.list_commands(ctx)
    if ctx.resilient_parsing or name in known or name.startswith("-"):
        return resolve(ctx, args)
    from difflib import get_close_matches

    meant = get_close_matches(name, known, 1)
    hint = f" Did you mean '{meant[0]}'?" if meant else ""
    raise click.UsageError(f"No such command '{name}'.{hint}", ctx)


def run(root: click.Command, words: Sequence[str] | None) -> int:
    """Run what the words ask for; the exit code."""
    name = root.name or ""
    asked = list(sys.argv[1:] if words is None else words)
    try:
        with root.make_context(name, asked) as context:
            root.invoke(context)
    except Exit as over:
        return over.exit_code
    return 0


def completions(root: click.Command, variable: str, instruction: str) -> int:
    """Answer a shell that completes words; `variable`: where it put what it wants to know."""
    from click.shell_completion import shell_complete

    return shell_complete(root, {}, root.name or "", variable, instruction)


def completion_source(for_shell: str, name: str, variable: str) -> str:
    """Script that has a shell ask for completions of a command."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(for_shell)
    assert found is not None
    made = found(click.Command(name), {}, name, variable)
    return made.source_template % made.source_vars()  # `source` asks which Bash there is


def every(group: click.Group, ctx: Context) -> Iterator[tuple[str, click.Command]]:
    """All commands with their names, those under words of their own too."""
    for name in group.list_commands(ctx):
        found = group.get_command(ctx, name)
        if isinstance(found, click.Group):
            yield from ((f"{name} {word}", below) for word, below in every(found, ctx))
        elif found is not None:
            yield name, found
