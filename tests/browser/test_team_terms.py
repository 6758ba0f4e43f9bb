"""Terms of teams: money for a time, hard caps, and own money only, in plain words."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.conftest import DESKTOP, PHONE, Window, expect_to_fit
from browser.lab import STEADY, Lab
from browser.test_accessible import found_in
from browser.test_teams import CUT

PARTS = {
    "vision": {"budget_per_month": 9000, "rolls_over": True, "classes": ["resnet18"]},
    "thesis": {"budget_total": 15e6, "until": "2099-03-31", "borrows": False, "classes": ["bert"]},
    "speech": {"budget_per_hour": 6, "max_spend_per_hour": 8, "classes": ["deepspeech2"]},
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("terms"), parts=PARTS, **STEADY).running() as lab:
        yield lab


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["1440", "390"])
def test_terms_are_said_in_plain_words_uncut_and_axe_is_content(
    window: Window, lab: Lab, screen: dict[str, int]
) -> None:
    page = window.open(f"{lab.url}/#/teams", viewport=screen)
    teams = page.get_by_role("table", name="Teams").get_by_role("row")
    money = r"\$[\d,]+\.\d\d"
    expect(teams.filter(has_text="vision")).to_contain_text(
        re.compile(rf"{money} left of {money} until ")
    )
    expect(teams.filter(has_text="speech")).to_contain_text("never above $8.00/h at any moment")
    expect(teams.filter(has_text="thesis")).to_contain_text("spends its own money only")
    said = {
        "vision": rf"It has {money} for this month .*left until .*goes into the next month",
        "thesis": rf"It has {money} in total: {money} is spent, {money} left until ",
        "speech": r"Hard cap: its jobs never hold more than \$8\.00/h",
    }
    found: list[str] = []
    for view in ("teams", *(f"teams/{name}" for name in said)):
        page.goto(f"{lab.url}/#/{view}")
        expect(page.get_by_role("img", name=re.compile("guaranteed")).first).to_be_visible()
        expect(page.get_by_text("Loading")).to_have_count(0)
        if "/" in view:
            words = re.compile(said[view.removeprefix("teams/")])
            expect(page.get_by_role("main")).to_contain_text(words)
        expect_to_fit(page, view)
        found += [f"{view}: cut: {words}" for words in page.evaluate(CUT)]
        found += [f"{view}: {each}" for each in found_in(page)]
    assert not found, "\n".join(found)
