"""Field tables of the documentation, as Markdown, made from the declarations.

A page has them between `<!-- fields: job -->` and `<!-- end -->`. `config.classes` is what a field
of a format holds; `config without aws classes` leaves out what those fields hold.
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from boa.formats.kinds import KINDS
from boa.formats.shapes import LEFT_OUT, Field, Format, Shape

FormatOf = Callable[[str], Format[Any]]
_FIELDS = re.compile(r"(<!-- fields: ([\w.]+)(?: without ([\w ]+))? -->\n).*?(<!-- end -->)", re.S)
_KINDS = re.compile(r"(<!-- formats -->\n).*?(<!-- end -->)", re.S)


def refreshed(page: str, format_of: FormatOf) -> str:
    """The page with every table in it made anew."""

    def fields(found: re.Match[str]) -> str:
        kind, *way = found[2].split(".")
        shape: Shape[Any] = format_of(kind).shape
        for name in way:
            shape = next(field.shape for field in shape.fields if field.name == name)
        return found[1] + table(shape, (found[3] or "").split()) + found[4]

    kinds = _table("format", "what it is", rows=[(f"`{k}`", what) for k, what in KINDS.items()])
    return _KINDS.sub(lambda found: found[1] + kinds + found[2], _FIELDS.sub(fields, page))


def table(shape: Shape[Any], without: Collection[str] = ()) -> str:
    """A row for every field, and for every field that those hold."""
    rows = _rows(shape, "", without)
    return _table("field", "value", "default", "meaning", rows=list(rows))


def _rows(shape: Shape[Any], prefix: str, without: Collection[str]) -> Iterator[tuple[str, ...]]:
    for field in shape.fields:
        name = prefix + field.name
        yield f"`{name}`", field.shape.words, _default(field), field.meaning
        if name not in without:
            yield from _rows(field.shape, f"{name}{field.shape.step}.", without)


def _default(field: Field) -> str:
    if field.required or field.told:
        return "**needed**" if field.required else "not read"
    if field.default is LEFT_OUT:
        return field.otherwise
    if isinstance(field.default, float | int) and not isinstance(field.default, bool):
        return f"{field.default:g}"
    return f"`{str(field.default).lower() if field.default in (True, False) else field.default}`"


def _table(*heads: str, rows: Collection[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '¦') for cell in line)} |\n" for line in lines)
