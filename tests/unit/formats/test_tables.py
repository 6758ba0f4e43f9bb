"""The documentation's field tables are those that the formats declare."""

from pathlib import Path

import pytest

from boa.formats.kinds import KINDS
from field_tables import DOCS, PAGES, as_declared


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_field_tables_are_as_the_formats_declare_them(page: Path) -> None:
    text = page.read_text("utf-8")
    assert as_declared(text) == text, "make tables writes them anew"


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_has_its_fields_in_the_documentation(kind: str) -> None:
    pages = [page.read_text("utf-8") for page in PAGES]
    assert any(f"<!-- fields: {kind} " in page for page in pages)
    assert f"| `{kind}` |" in (DOCS / "cli.md").read_text("utf-8")


def test_a_page_without_tables_stays_as_it_is() -> None:
    assert as_declared("# Nothing\n") == "# Nothing\n"


def test_what_a_field_holds_follows_it_with_its_path() -> None:
    made = as_declared("<!-- fields: job -->\n<!-- end -->\n")
    assert "| `gpus.min` | whole number 1 to 1,024 | 1 | The fewest GPUs it can run on. |" in made
    assert "`gpus.min`" not in as_declared("<!-- fields: job without gpus -->\n<!-- end -->\n")
