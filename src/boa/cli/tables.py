"""Tables of plain columns: no lines, a bold head, cut or wrapped to the width that there is."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from boa.cli.markup import Styled, columns, cut, lines, styled

GAP = 2
"""Blanks between two columns."""
NARROW = 8
"""Characters that a name keeps, if whole columns have to go for them."""
LEAST = 4
"""Characters that any column keeps."""
MORE = "…"


class Column:
    """Its cells are wrapped where there is too little room, or cut if it may not wrap."""

    def __init__(
        self, name: str, justify: Literal["left", "right"], no_wrap: bool, max_width: int | None
    ) -> None:
        self.name, self.justify = name, justify
        self.no_wrap, self.max_width = no_wrap, max_width


class Table:
    """Cells are text with marks; `gap`: blanks between two columns."""

    def __init__(self, gap: int = GAP) -> None:
        self.gap = gap
        self.columns: list[Column] = []
        self._rows: list[list[Styled]] = []

    def add_column(
        self,
        name: str,
        *,
        justify: Literal["left", "right"] = "left",
        no_wrap: bool = False,
        max_width: int | None = None,
    ) -> None:
        self.columns.append(Column(name, justify, no_wrap, max_width))

    def add_row(self, *cells: str, style: str | None = None) -> None:
        self._rows.append(
            [styled(f"[{style}]{cell}[/{style}]" if style else cell) for cell in cells]
        )

    def lines(self, width: int, colour: bool) -> Iterator[str]:
        """As it is printed on a terminal of so many columns."""
        head = [styled(f"[bold]{column.name}[/bold]") for column in self.columns]
        widths = self._widths([head, *self._rows], width)
        for row in (head, *self._rows):
            blocks = [
                list(_cell(cell, column, room, colour))
                for cell, column, room in zip(row, self.columns, widths, strict=True)
            ]
            for n in range(max(map(len, blocks), default=0)):
                parts = (
                    block[n] if n < len(block) else " " * room
                    for block, room in zip(blocks, widths, strict=True)
                )
                yield (" " * self.gap).join(parts).rstrip()

    def _widths(self, rows: Sequence[Sequence[Styled]], width: int) -> list[int]:
        """Columns' widths: what their cells take, or less where all together take too much."""
        found = []
        for n, column in enumerate(self.columns):
            needed = max(columns(line) for row in rows for line in row[n].plain.split("\n"))
            found.append(min(needed, column.max_width or needed))
        over = sum(found) + self.gap * (len(found) - 1) - width
        for may_wrap in (True, False):
            while over > 0:
                open_ = [n for n, c in enumerate(self.columns) if c.no_wrap is not may_wrap]
                widest = max(open_, key=lambda n: found[n], default=None)
                if widest is None or found[widest] <= LEAST:
                    break
                found[widest] -= 1
                over -= 1
        return found


def _cell(cell: Styled, column: Column, room: int, colour: bool) -> Iterator[str]:
    spans = _whole(cell.plain) if column.no_wrap else lines(cell.plain, room)
    for start, end in spans:
        size = columns(cell.plain[start:end])
        if size > room:
            end = start + cut(cell.plain[start:end], room - 1)
            text = cell.written(start, end, colour) + MORE
            size = columns(cell.plain[start:end]) + 1
        else:
            text = cell.written(start, end, colour)
        blanks = " " * (room - size)
        yield blanks + text if column.justify == "right" else text + blanks


def _whole(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.split("\n"):
        yield start, start + len(line)
        start += len(line) + 1


def table(*names: str, right: Collection[str] = ()) -> Table:
    made = Table()
    for name in names:
        made.add_column(name, justify="right" if name in right else "left", no_wrap=True)
    return made


def listing(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    right: Collection[str] = (),
    cut: Collection[str] = (),
    drop: Sequence[str] = (),
    without: Collection[str] = (),
) -> Table:
    """A table no wider than this, of rows with marks.

    What is too long is taken from the columns in `cut`; where those get too narrow, the ones in
    `drop` are left out, in this order. All others are shown whole, but for those in `without`.
    """
    by_column = {
        name: [row[n] for row in rows] for n, name in enumerate(names) if name not in without
    }
    needed = {
        name: max(columns(styled(cell).plain) for cell in (name, *cells))
        for name, cells in by_column.items()
    }
    least = {name: min(size, NARROW) if name in cut else size for name, size in needed.items()}
    for name in drop:
        if _with_gaps(least) > width:
            least.pop(name, None)
    made = table(*least, right=right)
    left = width - _with_gaps({name: 0 if name in cut else size for name, size in least.items()})
    shortest_first = sorted((name for name in least if name in cut), key=lambda name: needed[name])
    for n, name in enumerate(shortest_first):
        fair = max(left // (len(shortest_first) - n), 1)
        given = min(needed[name], fair)
        made.columns[list(least).index(name)].max_width = given
        left -= given
    for row in zip(*(by_column[name] for name in least), strict=True):
        made.add_row(*row)
    return made


def _with_gaps(sizes: Mapping[str, int]) -> int:
    return sum(sizes.values()) + GAP * (len(sizes) - 1)
