"""Every view as axe sees it, light and dark: nothing serious stands in anybody's way."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Window
from browser.lab import Lab

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = {
    "month": "Day by day",
    "budget": "What would more money buy?",
    "jobs": "jobs shown",
    "jobs/4": "Runs on",
    "cluster": "GPUs rented",
    "classes": "Planned GPUs",
    "classes/bert": "Why this many GPUs",
    "what-if": "Simulate how jobs",
    "events": "events shown",
    "audit": "Every change that somebody asked for",
}
RUN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ['violations'] });
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) => nodes.map((node) => `${id} (${help}): ${node.html}`));
}"""


def found_in(page: Page) -> list[str]:
    page.evaluate(AXE.read_text("utf-8"))
    found: list[str] = page.evaluate(RUN)
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_in_any_view(window: Window, lab: Lab, dark: bool) -> None:
    page = window.open("about:blank", dark=dark)
    found = []
    for view, words in VIEWS.items():
        page.goto(f"{lab.url}/#/{view}")
        expect(page.get_by_role("main")).to_contain_text(words)
        expect(page.get_by_text("Loading")).to_have_count(0)
        found += [f"{view}: {each}" for each in found_in(page)]
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()
    found += [f"search: {each}" for each in found_in(page)]
    assert not found, "\n".join(found)
