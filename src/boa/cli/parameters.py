"""Parameters that click reads, made of what a signature declares."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boa.cli import parsers
from boa.cli.declared import REQUIRED, Argument, Declared, Option
from boa.errors import InputError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType

_WORD = re.compile(r"[a-z][a-z0-9-]*")
"""Words that a metavar says literally, as in `bash|zsh|fish` or `USD|none`."""


class _Value(_ParamType):
    """The type of values that a parser makes of words; its errors are its own."""

    name = "value"

    def __init__(self, parser: Callable[[Any], Any], metavar: str, *, is_number: bool) -> None:
        self._parser, self._is_number = parser, is_number
        self._words = [word for word in metavar.strip("[]").split("|") if _WORD.fullmatch(word)]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._parser(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Words that the metavar says, else files: a shell that asks us offers none by itself."""
        from click.shell_completion import CompletionItem

        if self._words or self._is_number:
            return [CompletionItem(word) for word in self._words if word.startswith(incomplete)]
        return [CompletionItem(incomplete, type="file")]


def parameter_of(declared: Declared) -> click.Parameter:
    name, kind, is_list, said, default = declared
    required = default is REQUIRED
    more: dict[str, Any] = {"required": required, "type": _type(kind, said)}
    if not required:
        more["default"] = default
    if isinstance(said, Argument):
        optional = not required and not said.metavar.startswith("[")
        metavar = f"[{said.metavar}]" if optional else said.metavar
        return click.Argument([name], metavar=metavar, nargs=-1 if is_list else 1, **more)
    names = [name, *said.names]
    if kind is bool:
        return click.Option(names, is_flag=True, **more)
    return click.Option(names, metavar=said.metavar, multiple=is_list, **more)


def _type(kind: Any, said: Option | Argument) -> _ParamType:
    if kind is bool:
        return click.BOOL
    is_number = kind in (int, float)
    if said.parser is not None:
        return _Value(said.parser, said.metavar, is_number=is_number)
    least = said.min if isinstance(said, Option) else None
    name = said.names[0] if isinstance(said, Option) else said.metavar
    by_kind: Mapping[Any, Callable[[Any], Any]] = {
        Path: Path,
        int: parsers.whole(name, least),
        float: _number(name),
    }
    return _Value(by_kind.get(kind, str), said.metavar, is_number=is_number)


def _number(name: str) -> Callable[[Any], float]:
    def parse(text: Any) -> float:
        try:
            return float(text)
        except ValueError:
            raise InputError(name, text, "a number") from None

    return parse
