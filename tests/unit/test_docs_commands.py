"""Commands that any page shows are commands that there are, with options that they have."""

import re
import shlex
from collections.abc import Iterator
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

import pytest

from boa.cli import root
from doc_links import PAGES, ROOT
from shown_commands import blocks, shell

SHOWN = [page for page in PAGES if page.name != "CHANGELOG.md"]
PLANS = ("docs/teams.md", "docs/calendars.md")
"""Pages of files to plan with: they are run as they stand there."""
ENDS = ";|&<>()"
"""Signs of the shell that end a command."""


def shown(page: Path) -> Iterator[list[str]]:
    """Commands of ours in a page's blocks, in words, each alone."""
    for block in blocks(page.read_text("utf-8")):
        for line, _ in block.commands:
            yield from ours(line)


def ours(line: str) -> Iterator[list[str]]:
    """Commands `boa …` of a line, without what stands before and after them."""
    words = shlex.shlex(line, posix=True, punctuation_chars=ENDS)
    words.whitespace_split, words.commenters = True, "#"
    for ends, command in groupby(words, lambda word: set(word) <= set(ENDS)):
        said = [word for word in command if not re.match(r"[A-Z_]+=", word)]
        if not ends and said and said[0].rpartition("/")[2] == "boa":
            yield said[1:]


def unknown(words: list[str]) -> str | None:
    """A word that no command would understand; None: all are fine."""
    command: Any = root()
    context = command.make_context("boa", [], resilient_parsing=True)
    while words and hasattr(command, "list_commands"):
        inside = command.get_command(context, words[0])
        if inside is None:
            break
        context = inside.make_context(words[0], [], parent=context, resilient_parsing=True)
        command, words = inside, words[1:]
    if hasattr(command, "list_commands") and words and not words[0].startswith("-"):
        return words[0]
    known = {name for each in command.get_params(context) for name in each.opts}
    told = list(takewhile(lambda word: word != "--", words))
    names = [word.partition("=")[0] for word in told]
    options = (name for name in names if re.fullmatch(r"--?[a-z][\w-]*", name))
    return next((name for name in options if name not in known), None)


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_and_option_that_a_page_shows_is_there(page: Path) -> None:
    wrong = [(" ".join(said), word) for said in shown(page) if (word := unknown(said))]
    assert wrong == []


@pytest.mark.parametrize("page", PLANS)
def test_plans_that_a_page_shows_come_out_as_shown(page: str, tmp_path: Path) -> None:
    found = blocks((ROOT / page).read_text("utf-8"))
    assert any(block.word == "file" for block in found)
    with shell(tmp_path) as terminal:
        for block in found:
            terminal.run(block)


def test_pages_show_commands() -> None:
    assert sum(1 for page in SHOWN for _ in shown(page)) > 80


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("boa plan my.yaml --budget 3", None),
        ("BOA_TOKEN=x boa serve --budget=3", None),
        ("boa submit --class a -- python --anything", None),
        ("boa paln my.yaml", "paln"),
        ("boa plan my.yaml --bugdet 3", "--bugdet"),
        ("boa trace generate --job 3", "--job"),
    ],
)
def test_a_word_that_nobody_understands_is_found(line: str, word: str | None) -> None:
    (said,) = ours(line)
    assert unknown(said) == word
