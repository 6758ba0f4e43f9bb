"""Links and paths in the documentation lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from doc_links import ELSEWHERE, LINK, PAGES, ROOT, anchors, prose

QUOTED = re.compile(r"`[^`\n]*`")
WHOLE = re.compile(r"(?<![\w./-])(?:src/boa|tests|bench|docs|examples|web)/[\w./*-]*\w")
SHORT = re.compile(r"`((?!src/|tests/|bench/|docs/|examples/|web/)(?:\w+/)+\w+\.py)`")
BUILT = ("src/boa/server/static", "web/node_modules", "bench/out")
"""Folders that are made on the spot, and not in git."""
PLACEHOLDER = "NAME"

every_page = pytest.mark.parametrize(
    "page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES]
)


def broken(page: Path) -> Iterator[str]:
    for target in LINK.findall(QUOTED.sub("", prose(page))):
        if target.startswith(ELSEWHERE):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.exists():
            yield f"{target}: no such file"
        elif anchor and found.suffix == ".md" and anchor not in anchors(found):
            yield f"{target}: no such heading"


def missing(page: Path) -> Iterator[str]:
    """Paths in the text: `src/boa/…` and the like, and modules such as `solver/walk.py`."""
    text = page.read_text("utf-8")
    homes = (ROOT / "src", ROOT / "src" / "boa", page.parent)
    mentioned: list[tuple[str, tuple[Path, ...]]] = [
        (path, (ROOT,)) for path in WHOLE.findall(text)
    ]
    mentioned += [(path, homes) for path in SHORT.findall(text)]
    for path, where in mentioned:
        free = PLACEHOLDER in path or path.startswith(BUILT)
        if not free and not any(any(home.glob(path)) for home in where):
            yield path


@every_page
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert list(broken(page)) == []


@every_page
def test_every_path_that_is_mentioned_exists(page: Path) -> None:
    assert list(missing(page)) == []


def test_a_broken_link_a_missing_heading_and_a_missing_path_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One thing\n[a](gone.md) [b](#one-thing) [c](#two) `src/boa/gone.py`\n")
    assert list(broken(page)) == ["gone.md: no such file", "#two: no such heading"]
    assert list(missing(page)) == ["src/boa/gone.py"]
