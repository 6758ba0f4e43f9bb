"""Text with marks, and tables of it."""

import pytest
from rich.markup import escape as rich_escape
from rich.text import Text

from boa.cli.markup import columns, escape, lines, styled
from boa.cli.tables import Table


@pytest.mark.parametrize(
    "marked",
    [
        "plain",
        "[bold]a[/bold] and [dim]b[/dim]",
        "[bold green]x[/bold green]",
        "nested [bold]a [red]b[/red] c[/bold]",
        r"\[bold]no mark",
        r"a\\[bold]b[/bold]",
        "[1, 2] and [T4]",
        "[bold]left open",
        "a [dim]b[/] c",
    ],
)
def test_marks_mean_what_they_mean_to_rich(marked: str) -> None:
    assert styled(marked).plain == Text.from_markup(marked).plain


@pytest.mark.parametrize(
    "text", ["[bold]", "a[/b]c", r"\[bold]", "x\\", "[T4]", "[]", "[[bold]]", "a [b c=d] e"]
)
def test_what_is_escaped_comes_out_as_it_was(text: str) -> None:
    assert styled(f"[bold]{escape(text)}[/bold]").plain == text
    assert escape(text) == rich_escape(text)


def test_styles_are_written_for_a_terminal_alone() -> None:
    text = styled("a [bold]b [green]c[/green][/bold]")
    assert text.written(0, 5, colour=False) == "a b c"
    assert text.written(0, 5, colour=True) == "a \x1b[1mb \x1b[0m\x1b[1;32mc\x1b[0m"


@pytest.mark.parametrize(
    ("text", "wide"), [("abc", 3), ("4×T4 – …→", 9), ("日本", 4), ("e\u0301", 1), ("", 0)]
)
def test_width_is_counted_in_columns_of_a_terminal(text: str, wide: int) -> None:
    assert columns(text) == wide


def broken(text: str, width: int) -> list[str]:
    return [text[start:end] for start, end in lines(text, width)]


def test_lines_are_broken_between_words_and_inside_only_where_there_is_no_between() -> None:
    assert broken("one two three", 7) == ["one two", "three"]
    assert broken("one\ntwo", 80) == ["one", "two"]
    assert broken("abcdefgh ij", 3) == ["abc", "def", "gh", "ij"]
    assert broken("日本語 x", 4) == ["日本", "語 x"]
    assert broken("", 5) == [""]


def test_a_cell_is_wrapped_or_cut_to_the_room_there_is() -> None:
    table = Table()
    table.add_column("name", no_wrap=True, max_width=5)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("said")
    table.add_row("abcdefgh", "$1", "one two three\nfour")
    table.add_row("b", "$10", "[bold]x[/bold]")
    assert list(table.lines(20, colour=False)) == [
        "name   cost  said",
        "abcd…    $1  one two",
        "             three",
        "             four",
        "b       $10  x",
    ]
    assert "\x1b[1mx\x1b[0m" in "\n".join(table.lines(20, colour=True))
