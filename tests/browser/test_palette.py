"""The search over everything, by keyboard alone; what it opens is there after a reload."""

import re

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import PHONE, Window, expect_to_fit
from browser.lab import Lab


def search(page: Page, key: str, text: str) -> None:
    page.keyboard.press(key)
    expect(page.get_by_role("dialog", name="Search")).to_be_visible()
    expect(page.get_by_role("combobox", name=re.compile("^Search jobs"))).to_be_focused()
    page.keyboard.type(text)


@pytest.mark.parametrize(
    ("key", "text", "address", "heading"),
    [
        ("/", "bert-1", "#/jobs/", "bert-1"),
        ("Control+k", "class bert", "#/classes/bert", "bert"),
        ("Control+k", "node", "#/cluster/", "Cluster"),
        ("/", "what-if", "#/what-if", "What if"),
    ],
)
def test_what_is_found_is_opened_by_enter_and_is_there_after_a_reload(
    page: Page, key: str, text: str, address: str, heading: str
) -> None:
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    search(page, key, text)
    named = re.compile(text.split()[-1], re.IGNORECASE)
    expect(page.get_by_role("option", name=named).first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).to_have_url(re.compile(re.escape(address)))
    expect(page.get_by_role("heading", name=heading, exact=True, level=1)).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name=heading, exact=True, level=1)).to_be_visible()


def test_arrows_choose_and_escape_gives_the_focus_back(page: Page) -> None:
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    link = page.get_by_role("link", name="Jobs", exact=True)
    link.focus()
    search(page, "/", "bert")
    chosen = page.locator("[role=option][aria-selected=true]")
    expect(chosen).to_have_count(1)
    first = chosen.inner_text()
    page.keyboard.press("ArrowDown")
    expect(chosen).not_to_have_text(first)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(link).to_be_focused()


def test_a_slash_that_somebody_writes_opens_nothing(window: Window, lab: Lab) -> None:
    page = window.open(f"{lab.url}/#/jobs")
    field = page.get_by_role("searchbox").or_(page.get_by_placeholder(re.compile("name"))).first
    field.fill("a")
    field.press("/")
    expect(field).to_have_value("a/")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_phone_has_a_button_for_it(window: Window, lab: Lab) -> None:
    page = window.open(lab.url, viewport=PHONE, phone=True)
    page.get_by_role("button", name=re.compile("^Search")).tap()
    page.get_by_role("combobox", name=re.compile("^Search jobs")).fill("zzz")
    expect(page.get_by_text("Nothing is named so.")).to_be_visible()
    expect_to_fit(page, "the search")
