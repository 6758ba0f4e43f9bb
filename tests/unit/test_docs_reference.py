"""The reference pages are as the code has it."""

import pytest

from reference_pages import FOLDER, PAGES, made


@pytest.mark.parametrize("page", PAGES)
def test_a_reference_page_is_what_the_code_says(page: str) -> None:
    assert (FOLDER / f"{page}.md").read_text("utf-8") == made(page), "make tables writes it anew"


def test_every_reference_page_is_made() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(PAGES)
