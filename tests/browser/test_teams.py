"""Teams that share the budget: who spends what, who pays for what, and an address for each."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import DESKTOP, PHONE, Window, expect_to_fit
from browser.lab import STEADY, Lab, until
from browser.test_accessible import found_in

TABLET = {"width": 1024, "height": 800}
PARTS = {
    "vision": {"budget_per_hour": 30, "max_per_hour": 60, "classes": ["resnet18"]},
    "language": {"budget_per_hour": 25, "parts": {"eve": {"classes": ["bert"]}}},
    "speech": {"budget_per_hour": 10, "lends": False, "classes": ["deepspeech2"]},
}
TEAMS = ["vision", "language", "eve", "speech"]
CUT = """() => [...document.querySelectorAll('main :is(th, td, .stat-value, .stat-note, li)')]
  .filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1)
  .filter((each) => getComputedStyle(each).display !== 'inline')
  .map((each) => each.textContent)"""
"""Words that their place is too narrow for."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("teams"), parts=PARTS, **STEADY).running() as lab:
        lab.fill()
        yield lab


OUTSIDE = """() => [...document.querySelectorAll('main table')]
  .filter((each) => each.checkVisibility() && !each.closest('.scroll-x'))
  .filter((each) => each.getBoundingClientRect().right >
    each.closest('.card').getBoundingClientRect().right)
  .map((each) => each.textContent)"""
"""Tables that are wider than their card and do not scroll by themselves."""


def spends(page: Page, team: str) -> float:
    row = page.get_by_role("table", name="Teams").get_by_role("row")
    mine = row.filter(has=page.get_by_role("rowheader", name=re.compile(rf"^{team}\b")))
    words = mine.locator("[data-label='Spends now']").inner_text()
    return float(re.sub(r"[^\d.]", "", words))


def told(lab: Lab) -> dict[str, float]:
    return {part["name"]: part["spend_now_per_hour"] for part in lab.client.budget()["parts"]}


def test_every_team_shows_what_the_service_says_that_it_spends(page: Page, lab: Lab) -> None:
    page.get_by_role("link", name="Teams", exact=True).click()

    def agrees() -> bool:
        now = told(lab)
        return all(spends(page, team) == pytest.approx(now[team], abs=0.02) for team in TEAMS)

    until("every team spends what is told of it", agrees)
    assert spends(page, "language") == spends(page, "eve"), "a part's spend is its team's"


def test_the_budget_says_who_shares_it_and_leads_to_a_team_and_back(page: Page) -> None:
    expect(page.get_by_role("heading", name="Who shares it")).to_be_visible()
    page.get_by_role("table", name="Teams").get_by_role("link", name="eve").click()
    expect(page).to_have_url(re.compile("#/teams/eve$"))
    expect(page.get_by_role("heading", name="eve", level=1)).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("A part of language")
    page.get_by_role("link", name="bert-1").click()
    expect(page.get_by_role("main")).to_contain_text("Paid for by")
    page.get_by_role("main").get_by_role("link", name="eve").click()
    expect(page).to_have_url(re.compile("#/teams/eve$"))
    page.go_back()
    expect(page.get_by_role("heading", name="bert-1", level=1)).to_be_visible()
    page.go_back()
    page.go_back()
    expect(page.get_by_role("heading", name="Who shares it")).to_be_visible()


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["1440", "390"])
def test_a_month_says_what_of_its_budget_is_spent_by_which_part_and_which_project(
    window: Window, lab: Lab, screen: dict[str, int]
) -> None:
    tagged = lab.submit("bert", "tagged", tags={"project": "zoo"})["id"]
    until("it has cost something", lambda: lab.client.job(tagged)["cost_usd"] > 0.05)
    page = window.open(f"{lab.url}/#/month", viewport=screen)
    main = page.get_by_role("main")
    expect(main).to_contain_text(re.compile(r"\d % of \$[\d,.]+( for [^:]+)? is spent: "))
    expect(page.get_by_role("list", name="Alerts")).to_contain_text("100 %: not reached")
    payers = page.locator(".card").filter(has=page.get_by_role("heading", name="By payer"))
    mine = payers.get_by_role("row").filter(has_text="language")
    expect(mine).to_contain_text(re.compile(r"\$[\d,]+\.\d\d: [\d.]+ % spent"))
    tags = page.locator(".card").filter(has=page.get_by_role("heading", name="By tag: project"))
    expect(tags.get_by_role("row").filter(has_text="zoo")).to_contain_text("$")
    assert page.locator(".month-axis").inner_text().startswith("$0")
    expect(page.get_by_text("Loading")).to_have_count(0)
    expect_to_fit(page, "month")
    assert not found_in(page)
    lab.client.stop(tagged)


def test_tables_that_are_wider_than_a_phone_scroll_by_themselves(window: Window, lab: Lab) -> None:
    page = window.open(lab.url, viewport=PHONE)
    job = lab.client.jobs(states=["running"])[0]["id"]
    for view in ("budget", "month", "teams/vision", f"jobs/{job}", "classes/bert"):
        page.goto(f"{lab.url}/#/{view}")
        expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
        expect(page.get_by_text("Loading")).to_have_count(0)
        expect_to_fit(page, view)
        assert page.evaluate(OUTSIDE) == [], view


def test_a_class_names_its_payer_and_the_search_finds_teams(window: Window, lab: Lab) -> None:
    page = window.open(f"{lab.url}/#/classes/deepspeech2")
    expect(page.get_by_role("main")).to_contain_text("paid for by team speech")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("vision")
    expect(page.get_by_role("option", name=re.compile("vision")).first).to_contain_text("team")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/teams/vision$"))
    page.reload()
    expect(page.get_by_role("heading", name="vision", level=1)).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, TABLET, PHONE], ids=["1440", "1024", "390"])
def test_teams_fit_every_screen_uncut_and_axe_is_content(
    window: Window, lab: Lab, screen: dict[str, int], dark: bool
) -> None:
    page = window.open("about:blank", viewport=screen, dark=dark)
    found: list[str] = []
    for view in ("budget", "teams", "teams/language", "teams/vision"):
        page.goto(f"{lab.url}/#/{view}")
        expect(page.get_by_role("img", name=re.compile("guaranteed")).first).to_be_visible()
        expect(page.get_by_text("Loading")).to_have_count(0)
        expect_to_fit(page, view)
        if view == "teams" and screen is DESKTOP and not dark:
            window.keep(page, "teams-desktop-light")
        found += [f"{view}: cut: {words}" for words in page.evaluate(CUT)]
        found += [f"{view}: {each}" for each in found_in(page)]
    assert not found, "\n".join(found)


HIDDEN = """() => [...document.querySelectorAll('main .scroll-x')]
  .filter((each) => each.scrollWidth > each.clientWidth + 1)
  .map((each) => each.textContent)"""
"""Tables of which a part is out of sight."""


def test_the_month_shows_whole_tables_on_a_desktop(page: Page, lab: Lab) -> None:
    page.goto(f"{lab.url}/#/month")
    expect(page.get_by_role("group", name="By payer")).to_be_visible()
    assert page.evaluate(HIDDEN) == []
