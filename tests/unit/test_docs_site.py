"""The documentation site: every page is in it and can be found, and it needs nobody else."""

import json
import re
from pathlib import Path

import pytest

from doc_links import PAGES, ROOT
from doc_site import CONFIG, build

ROOMS = ROOT / "src"
"""Pages that architecture.md leads to, and that the menu would drown in."""
DECISIONS = ROOT / "docs" / "decisions"
"""Likewise, from their README."""
FETCHES = re.compile(r"""(?:src=|url\(|@import |<link [^>]*href=)["']?(https?:[^"')> ]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"))


def test_the_menu_has_every_page() -> None:
    menu = set(re.findall(r": (\S+\.md)$", CONFIG.read_text("utf-8"), re.MULTILINE))
    wanted = {
        page.relative_to(ROOT).as_posix()
        for page in PAGES
        if not page.is_relative_to(ROOMS) and page.parent != DECISIONS
    }
    assert menu == {*wanted, "docs/decisions/README.md"}


def test_every_page_is_built(site: Path) -> None:
    built = {path.relative_to(site).with_suffix(".md") for path in site.rglob("*.html")}
    names = {path.parent / "README.md" if path.stem == "index" else path for path in built}
    assert {page.relative_to(ROOT) for page in PAGES} <= names


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*"):
        if path.suffix in (".html", ".css"):
            assert FETCHES.findall(path.read_text("utf-8")) == [], path


def test_the_search_knows_the_pages(site: Path) -> None:
    known = json.loads((site / "search.json").read_text("utf-8"))
    found = {item["location"].partition("#")[0] for item in known["items"]}
    assert {"docs/tutorial.html", "docs/reference/events.html", "docs/compare.html"} <= found


def test_a_link_that_leads_nowhere_fails_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / "tutorial.md"
    read = Path.read_text

    def with_a_bad_link(path: Path, *arguments: str) -> str:
        return read(path, *arguments) + ("\n[gone](cli.md#gone)\n" if path == page else "")

    monkeypatch.setattr(Path, "read_text", with_a_bad_link)
    with pytest.raises(SystemExit, match="1 issue"):
        build(tmp_path)
