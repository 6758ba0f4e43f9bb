"""The page comes up by itself, on its own."""

from playwright.sync_api import Page, expect

from browser.conftest import PHONE, Window
from browser.lab import Lab, until

GIVE_BACK_MS = 11_000
SEEN = """(state) => {
  Object.defineProperty(document, "visibilityState", {value: state, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
"""Headless tabs are never hidden by others."""
BITS_PER_S, ROUND_TRIP_S = 1.6e6, 0.15
"""A phone far from its mast."""
SIZES = """() => [
  ...performance.getEntriesByType('navigation'),
  ...performance.getEntriesByType('resource').filter(({ name }) => !/api.v1.(?!budget)/.test(name)),
].map(({ transferSize }) => transferSize)"""
"""Bytes of what the page needs before it shows money: itself, and its first question."""
VIEWS = ["Budget", "Month", "Jobs", "Cluster", "Classes", "What-if", "Events", "Audit"]


def test_the_page_comes_up_and_is_live(page: Page) -> None:
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    links = page.get_by_role("navigation", name="Views").get_by_role("link")
    expect(links).to_have_text(VIEWS)


def test_everything_comes_from_the_service_itself(page: Page) -> None:
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    home = page.evaluate("location.origin")
    fetched = page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert fetched
    assert all(name.startswith(home) for name in fetched), fetched


def test_a_phone_on_a_slow_line_has_the_page_within_three_seconds(window: Window, lab: Lab) -> None:
    """By what goes over the line, as if nothing went at the same time: a busy machine is no slow
    line."""
    page = window.open(lab.url, viewport=PHONE, phone=True)
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    expect(page.get_by_text("Spend now")).to_be_visible()
    sizes: list[int] = page.evaluate(SIZES)
    assert sum(sizes) > 50_000, "the page itself is among them"
    line_s = (1 + len(sizes)) * ROUND_TRIP_S + 8 * sum(sizes) / BITS_PER_S
    assert line_s < 3.0, sizes


def test_many_tabs_can_be_open_since_those_behind_let_go(window: Window, lab: Lab) -> None:
    """A browser has six connections to a service, and every stream takes one."""
    context = window.open("about:blank").context
    pages = []
    for _ in range(8):
        page = context.new_page()
        page.clock.install()
        page.goto(f"{lab.url}#/jobs")
        expect(page.get_by_role("table", name="Jobs")).to_be_visible()  # all has been told once
        page.evaluate(SEEN, "hidden")
        page.clock.fast_forward(GIVE_BACK_MS)
        pages.append(page)
    job = lab.submit("bert", "came-meanwhile")["id"]
    until("it runs", lambda: lab.state(job) == "running")
    first = pages[0]
    expect(first.get_by_role("row").filter(has_text="came-meanwhile")).to_have_count(0)
    first.evaluate(SEEN, "visible")
    expect(first.get_by_role("row").filter(has_text="came-meanwhile")).to_be_visible()
