"""Commands as functions: the signature declares arguments and options, click reads the words.

def frontier(points: Annotated[int, Option("--points", metavar="N", help="How many.")] = 20): ...

Typer reads such functions too, at three times the price (docs/decisions/0019-the-shell.md).
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union, get_args, get_origin

import click
from click import Context
from click.exceptions import Exit

from boa.cli import help as helping
from boa.errors import InputError

__all__ = ["Argument", "Command", "Context", "Entry", "Exit", "Group", "Lazy", "Option", "command"]

USAGE = 2
HELP = {"help_option_names": ["-h", "--help"]}
_F = TypeVar("_F", bound=Callable[..., Any])


class Option:
    """`parser` makes the value of the text; `metavar` stands for the text in the help."""

    def __init__(
        self,
        *names: str,
        metavar: str = "",
        help: str = "",
        parser: Callable[[Any], Any] | None = None,
        show_default: bool = True,
        min: int | None = None,
    ) -> None:
        self.names, self.metavar, self.help = names, metavar, help
        self.parser, self.show_default, self.min = parser, show_default, min


class Argument:
    """The same for a word that goes by its place."""

    def __init__(
        self,
        *,
        metavar: str,
        help: str = "",
        parser: Callable[[Any], Any] | None = None,
        show_default: bool = False,
    ) -> None:
        self.metavar, self.help, self.parser = metavar, help, parser
        self.show_default = show_default


if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType


class _Value(_ParamType):
    """The type of values that a parser makes of words; its errors are its own."""

    name = "value"

    def __init__(self, parser: Callable[[Any], Any]) -> None:
        self._parser = parser

    def convert(self, value: Any, param: click.Parameter | None, ctx: Context | None) -> Any:
        return self._parser(value)


class Command(click.Command):
    """A function's command."""

    said: Mapping[str, Option | Argument]
    """Parameters by name, as its signature declares them."""
    lists: Mapping[str, Any]
    """Parameters that are lists, and what they are where nothing is given."""

    def get_help(self, ctx: Context) -> str:
        return helping.page(self, ctx, said=self.said)

    def invoke(self, ctx: Context) -> Any:
        for name, default in self.lists.items():
            ctx.params[name] = list(ctx.params[name] or ()) or default
        return super().invoke(ctx)


def command(
    function: Callable[..., Any], name: str | None = None, cls: type[Command] = Command
) -> Command:
    """A function's command, as its signature has it."""
    declared = inspect.signature(function).parameters
    said = {p.name: get_args(p.annotation)[1] for p in declared.values() if _is_said(p)}
    kinds = {name: _kind(get_args(declared[name].annotation)[0]) for name in said}
    made = cls(
        name or function.__name__,
        callback=function if len(said) == len(declared) else click.pass_context(function),
        params=[_parameter(declared[name], *kinds[name], said[name]) for name in said],
        help=inspect.getdoc(function),
        context_settings=dict(HELP),
    )
    made.said = said
    made.lists = {
        name: None if declared[name].default is None else []
        for name, (_, is_list) in kinds.items()
        if is_list
    }
    return made


def _is_said(parameter: inspect.Parameter) -> bool:
    return parameter.annotation is not Context


def _kind(annotation: Any) -> tuple[Any, bool]:
    """The type of one value, and whether there may be several."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(one for one in get_args(annotation) if one is not type(None))
    is_list = get_origin(annotation) is list
    return (get_args(annotation)[0] if is_list else annotation), is_list


def _parameter(
    parameter: inspect.Parameter, kind: Any, is_list: bool, said: Option | Argument
) -> click.Parameter:
    required = parameter.default is inspect.Parameter.empty
    more: dict[str, Any] = {"required": required, "type": _type(kind, said)}
    if not required:
        more["default"] = parameter.default
    if isinstance(said, Argument):
        optional = not required and not said.metavar.startswith("[")
        metavar = f"[{said.metavar}]" if optional else said.metavar
        nargs = -1 if is_list else 1
        return click.Argument([parameter.name], metavar=metavar, nargs=nargs, **more)
    names = [parameter.name, *said.names]
    if kind is bool:
        return click.Option(names, is_flag=True, **more)
    return click.Option(names, metavar=said.metavar, multiple=is_list, **more)


def _type(kind: Any, said: Option | Argument) -> _ParamType:
    if said.parser is not None:
        return _Value(said.parser)
    if kind is bool:
        return click.BOOL
    least = said.min if isinstance(said, Option) else None
    name = said.names[0] if isinstance(said, Option) else said.metavar
    parsers: Mapping[Any, Callable[[Any], Any]] = {
        Path: Path,
        int: _whole(name, least),
        float: _number(name),
    }
    return _Value(parsers.get(kind, str))


def _whole(name: str, least: int | None) -> Callable[[Any], int]:
    expected = "a whole number" if least is None else f"a whole number >= {least}"

    def parse(text: Any) -> int:
        try:
            value = int(text)
        except ValueError:
            raise InputError(name, text, expected) from None
        if least is not None and value < least:
            raise InputError(name, text, expected)
        return value

    return parse


def _number(name: str) -> Callable[[Any], float]:
    def parse(text: Any) -> float:
        try:
            return float(text)
        except ValueError:
            raise InputError(name, text, "a number") from None

    return parse


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


def every(group: click.Group, ctx: Context) -> Iterator[tuple[str, click.Command]]:
    """All commands with their names, those under words of their own too."""
    for name in group.list_commands(ctx):
        found = group.get_command(ctx, name)
        if isinstance(found, click.Group):
            yield from ((f"{name} {word}", below) for word, below in every(found, ctx))
        elif found is not None:
            yield name, found
