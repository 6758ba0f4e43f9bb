"""Pages that `--help` prints: usage, the docstring, arguments and options with their meaning."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from boa.cli import markup
from boa.cli.console import has_styles
from boa.cli.declared import Argument, Option

WIDEST = 100
"""Columns: longer lines are hard to read."""
MOST_LEFT = 26
"""Columns for names; the meaning of a longer one begins on the next line."""
INDENT = 2

Rows = Sequence[tuple[str, str]]


def page(
    command: click.Command,
    ctx: click.Context,
    *,
    said: Mapping[str, Option | Argument] | None = None,
    panels: Mapping[str, Rows] | None = None,
) -> str:
    """`said`: of its parameters, in its signature; `panels`: the commands below it, by title."""
    colour = has_styles(sys.stdout.isatty())
    width = min(shutil.get_terminal_size((80, 24)).columns, WIDEST)
    return "\n".join(
        text.written(start, end, colour)
        for text in map(markup.styled, _lines(command, ctx, said or {}, panels or {}, width))
        for start, end in markup.lines(text.plain, width)
    )


def summary(command: click.Command) -> str:
    """The first paragraph, in one line."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _lines(
    command: click.Command,
    ctx: click.Context,
    said: Mapping[str, Option | Argument],
    panels: Mapping[str, Rows],
    width: int,
) -> Iterator[str]:
    words = " ".join(command.collect_usage_pieces(ctx))
    yield f"[bold]Usage:[/bold] {ctx.command_path} {markup.escape(words)}"
    yield ""
    yield summary(command)
    _, _, rest = (command.help or "").partition("\n\n")
    if rest:
        yield from ["", *rest.split("\n")]
    rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(ctx):
        about = said.get(parameter.name or "")
        if isinstance(parameter, click.Option):
            rows["Options"].append(_option(parameter, about))
        elif about is not None:
            rows["Arguments"].append((about.metavar, about.help))
    for title, named in {**rows, **panels}.items():
        if named:
            yield from ["", f"[bold]{title}[/bold]", *_columns(named, width)]


def _columns(rows: Rows, width: int) -> Iterator[str]:
    """Names on the left, meanings on the right."""
    sizes = [len(name) for name, _ in rows]
    left = max(size for size in (*sizes, 0) if size <= MOST_LEFT or size == 0)
    left = min(max(left, 1), MOST_LEFT)
    margin = INDENT + left + INDENT
    for name, meaning in rows:
        shown = f"[cyan]{markup.escape(name)}[/cyan]"
        told = [meaning[a:b] for a, b in markup.lines(meaning, max(width - margin, 20))]
        first = INDENT * " " + shown
        if len(name) > left:
            yield first
        else:
            yield (first + " " * (left - len(name) + INDENT) + markup.escape(told.pop(0))).rstrip()
        yield from (" " * margin + markup.escape(line) for line in told)


def _option(option: click.Option, said: Option | Argument | None) -> tuple[str, str]:
    names = sorted(option.opts, key=lambda name: name.startswith("--"))
    shown = ", ".join(names) + "".join(f" / {name}" for name in option.secondary_opts)
    if said is None:
        return shown, option.help or ""
    value = f" {said.metavar}" if said.metavar and not option.is_flag else ""
    return shown + value, f"{said.help}{_default(option.default)}"


def _default(value: Any) -> str:
    known = isinstance(value, str | int | float | Path) and not isinstance(value, bool)
    return f" [default: {value}]" if known else ""
