"""How it looks and is reached: light and dark, by keyboard alone, on a phone."""

import re

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import PHONE, Window, expect_to_fit
from browser.lab import BUDGET, Lab

VIEWS = {
    "Budget": "What would more money buy?",
    "Jobs": "jobs shown",
    "Cluster": "GPUs rented",
    "Classes": "Planned GPUs",
    "What-if": "Simulate how jobs",
    "Events": "events shown",
    "Audit": "Every change that somebody asked for",
}


def background(page: Page) -> int:
    """How bright, 0 to 765."""
    color = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    return sum(map(int, re.findall(r"\d+", color)[:3]))


def colours(page: Page) -> str:
    return page.get_by_role("button", name=re.compile("^Colours")).get_attribute("title") or ""


def test_light_and_dark_follow_the_computer_until_somebody_chooses(
    window: Window, lab: Lab
) -> None:
    light, dark = window.open(lab.url), window.open(lab.url, dark=True)
    assert background(light) > 600
    assert background(dark) < 200
    change = light.get_by_role("button", name=re.compile("^Colours"))
    while "dark" not in colours(light):
        was = colours(light)
        change.click()
        expect(change).not_to_have_attribute("title", was)
    assert background(light) < 200
    light.reload()
    expect(light.get_by_text("Spend now")).to_be_visible()
    assert background(light) < 200, "it is kept"
    assert "dark" in colours(light)


def press_until(page: Page, selector: str, key: str = "Tab", most: int = 80) -> None:
    """Press a key until this has the focus, as somebody without a mouse would."""
    wanted = page.locator(selector).first
    expect(wanted).to_be_visible()
    for _ in range(most):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{selector} is not reached by {most} times {key}")


def test_every_view_is_reached_by_keyboard(page: Page) -> None:
    for name, words in VIEWS.items():
        press_until(page, f"nav a:text-is('{name}')")
        page.keyboard.press("Enter")
        expect(page.get_by_role("main")).to_contain_text(words)
        expect(page.locator("nav a[aria-current=page]")).to_have_text(name)


def test_what_has_the_focus_can_be_seen(page: Page) -> None:
    press_until(page, "nav a:text-is('Jobs')")
    shown = page.evaluate(
        """() => {
          const style = getComputedStyle(document.activeElement);
          return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
        }"""
    )
    assert shown


def test_a_job_is_opened_and_stopped_by_keyboard(window: Window, lab: Lab) -> None:
    job = lab.submit_talker("by-keyboard")["id"]
    page = window.open(f"{lab.url}/#/jobs?search=by-keyboard")
    press_until(page, ".table-row:has-text('by-keyboard')")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="by-keyboard")).to_be_visible()
    expect(page.locator("h1 + .badge")).to_have_text("running")
    press_until(page, "button:text-is('Stop')")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert not lab.was_asked_to_stop(job)
    press_until(page, "button:text-is('Stop')")
    page.keyboard.press("Enter")
    press_until(page, "dialog button:text-is('Stop the job')")
    page.keyboard.press("Enter")
    expect(page.locator("h1 + .badge")).to_have_text("stopped")
    assert lab.state(job) == "stopped"


def test_the_budget_is_changed_by_keyboard(page: Page) -> None:
    slider = page.get_by_role("slider")
    now = re.compile(rf"^\${BUDGET:.2f}/h: jobs take")
    expect(slider).to_have_attribute("aria-valuetext", now)
    press_until(page, "input[type=range]")
    page.keyboard.press("PageDown")
    expect(slider).not_to_have_attribute("aria-valuetext", now)
    expect(slider).to_have_attribute("aria-valuetext", re.compile("/h: jobs take"))


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_shows_every_view_without_scrolling_sideways(
    window: Window, lab: Lab, view: str
) -> None:
    page = window.open(lab.url, viewport=PHONE, phone=True)
    link = page.get_by_role("link", name=view, exact=True)
    link.scroll_into_view_if_needed()
    link.tap()
    expect(page.get_by_role("main")).to_contain_text(VIEWS[view])
    expect(page.get_by_text("Loading")).to_have_count(0)
    expect_to_fit(page, view)
