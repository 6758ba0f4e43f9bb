"""Who has no token sees nothing but the question for it."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, expect

from browser.conftest import Window
from browser.lab import STEADY, Lab

TOKEN = "s3cret-of-the-lab"
REFUSED = r"status of 401"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One that wants a token."""
    with Lab(tmp_path_factory.mktemp("lab"), token=TOKEN, **STEADY).running() as lab:
        lab.submit("bert", "a-secret-name")
        yield lab


@pytest.fixture
def page(window: Window, lab: Lab) -> Page:
    window.expects(REFUSED)  # the browser itself says so on its console
    return window.open(lab.url)


def log_in(page: Page, token: str, remember: bool = False) -> None:
    page.get_by_label("Token").fill(token)
    if remember:
        page.get_by_label("Stay logged in").check()
    page.get_by_role("button", name="Log in").click()


def expect_to_be_in(page: Page) -> None:
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    expect(page.get_by_text("Spend now")).to_be_visible()


def expect_to_be_out(page: Page) -> None:
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    expect(page.get_by_role("navigation")).to_have_count(0)
    expect(page.locator("body")).not_to_contain_text(re.compile(r"\$\d"))
    expect(page.locator("body")).not_to_contain_text("a-secret-name")


@pytest.mark.parametrize("view", ["", "#/jobs", "#/jobs/1", "#/cluster", "#/events"])
def test_without_a_token_every_address_shows_the_login_alone(
    window: Window, lab: Lab, view: str
) -> None:
    window.expects(REFUSED)
    page = window.open(f"{lab.url}/{view}")
    expect_to_be_out(page)


def test_a_wrong_token_is_told_and_asked_for_again(page: Page) -> None:
    log_in(page, "not-it")
    expect(page.get_by_role("alert")).to_contain_text("does not know this token")
    expect_to_be_out(page)
    log_in(page, TOKEN)
    expect_to_be_in(page)


def test_the_right_token_opens_everything_and_is_never_in_an_address(
    window: Window, lab: Lab
) -> None:
    window.expects(REFUSED)
    page = window.open(lab.url)
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    log_in(page, TOKEN)
    expect_to_be_in(page)
    page.get_by_role("link", name="Jobs").click()
    expect(page.get_by_role("row").filter(has_text="a-secret-name")).to_be_visible()
    assert asked
    assert not [request.url for request in asked if TOKEN in request.url]
    assert TOKEN not in page.url


def test_a_token_lasts_as_long_as_the_tab_unless_more_is_wished(page: Page) -> None:
    log_in(page, TOKEN)
    expect_to_be_in(page)
    page.reload()
    expect_to_be_in(page)
    url = page.url
    other = page.context.new_page()
    other.goto(url)
    expect_to_be_out(other)
    log_in(other, TOKEN, remember=True)
    expect_to_be_in(other)
    third = page.context.new_page()
    third.goto(url)
    expect_to_be_in(third)


def test_who_logs_out_sees_nothing_more(page: Page) -> None:
    log_in(page, TOKEN)
    expect_to_be_in(page)
    page.get_by_role("button", name="Log out").click()
    expect_to_be_out(page)
    page.reload()
    expect_to_be_out(page)
