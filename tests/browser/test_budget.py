"""The budget: drag it, see what that would buy, apply it, and see the jobs rescale."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.conftest import Window
from browser.lab import BUDGET, CAP, STEADY, Lab, until

MOVES = 40


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Where a budget alone says how wide every job is, and is planned with as it is set: by the
    GPU. What a budget does where whole nodes are paid for is told in test_bill.py."""
    with Lab(tmp_path_factory.mktemp("lab"), billing="gpu", **STEADY).running() as lab:
        lab.fill()
        yield lab


@pytest.fixture
def page(window: Window, lab: Lab) -> Page:
    restore_budget(lab)
    page = window.open(lab.url)
    expect(predicted(page, "average JCT")).to_contain_text(re.compile(r"\d"))
    expect(page.get_by_text("Loading")).to_have_count(0)
    return page


def restore_budget(lab: Lab) -> None:
    """Where a test has changed it; returns when it is planned with, so that no plan is still to
    come that would change the page while it is used."""
    found = lab.client.budget()
    if (found["budget_per_hour"], found["max_spend_per_hour"]) == (BUDGET, CAP):
        return
    before = lab.client.plan()["number"]
    lab.client.set_budget(BUDGET, CAP)

    def followed() -> bool:
        newest = lab.client.plan()
        planned = newest["plan"]["budget_per_hour"]
        return newest["number"] > before and abs(planned / BUDGET - 1) < 0.05

    until("a plan follows the budget", followed)


def predicted(page: Page, what: str) -> Locator:
    """The cell that says what the tried budget would come to."""
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=what))
    return row.get_by_role("cell").nth(1)


def amount(page: Page) -> Locator:
    return page.get_by_label("Budget in USD per hour", exact=True)


def button_for(page: Page, budget: float) -> Locator:
    return page.get_by_role("button", name=f"Set the budget to ${budget:.2f}/h")


def has_its_share(lab: Lab, job: str) -> bool:
    found = lab.client.job(job)
    wanted = found["wanted"]
    return found["state"] == "running" and wanted is not None and found["width"] == wanted["width"]


COUNT_PREVIEWS = """() => {
  const asked = (window.previews = { all: 0, open: 0, most: 0 });
  const before = window.fetch;
  window.fetch = async (...question) => {
    if (!String(question[0]).includes("/preview")) return before(...question);
    asked.all += 1;
    asked.open += 1;
    asked.most = Math.max(asked.most, asked.open);
    return before(...question).finally(() => (asked.open -= 1));
  };
}"""
"""Inside the page: what is told of its requests outside comes late when the machine is busy."""


def test_dragging_the_slider_shows_what_the_money_would_buy(page: Page, lab: Lab) -> None:
    before = predicted(page, "average JCT").inner_text()
    classes = page.get_by_role("region", name="Classes")
    expect(classes).to_contain_text("bert")
    page.evaluate(COUNT_PREVIEWS)
    plan = lab.client.plan()["number"]
    drag_to_the_left(page, page.get_by_role("slider", name="Try a budget"))
    expect(predicted(page, "average JCT")).not_to_have_text(before)
    tried = float(amount(page).input_value())
    assert tried < BUDGET
    expect(page.get_by_role("columnheader", name=f"at ${tried:.2f}/h")).to_be_visible()
    expect(button_for(page, tried)).to_be_enabled()
    expect(classes.get_by_role("heading")).to_contain_text(
        re.compile(r"\d of 3 classes would get other GPUs")
    )
    expect(classes.get_by_role("row").filter(has_text="bert")).to_contain_text("→")
    asked, replanned = page.evaluate("window.previews"), lab.client.plan()["number"] - plan
    assert 1 <= asked["all"] <= MOVES + 1 + replanned
    assert asked["most"] <= 2, "they wait for each other"
    assert lab.client.budget()["budget_per_hour"] == BUDGET, "looking changes nothing"


def drag_to_the_left(page: Page, slider: Locator) -> None:
    """By most of the way, in many small moves."""
    box = slider.bounding_box()
    assert box is not None
    part = float(slider.input_value()) / float(slider.get_attribute("max") or 1)
    slider.hover(position={"x": part * box["width"], "y": box["height"] / 2})
    page.mouse.down()
    y, left = box["y"] + box["height"] / 2, box["x"] + part * box["width"]
    for n in range(1, MOVES + 1):
        page.mouse.move(left - n / MOVES * 0.8 * part * box["width"], y)
    page.mouse.up()


def test_what_is_shown_is_what_the_service_says(page: Page, lab: Lab) -> None:
    amount(page).fill("100")
    expect(page.get_by_role("columnheader", name="at $100.00/h")).to_be_visible()
    expect(button_for(page, 100)).to_be_enabled()

    shown = re.fullmatch(r"(\d+) h(?: (\d+) min)?", predicted(page, "average JCT").inner_text())
    assert shown is not None
    minutes = 60 * int(shown[1]) + int(shown[2] or 0)
    said = lab.client.preview(100.0)["average_jct_s"] / 60
    assert minutes == pytest.approx(said, abs=1), "a minute is the least that is shown"
    expect(predicted(page, "average bill")).to_have_text("$100.00/h")


def test_at_todays_budget_nothing_changes(page: Page) -> None:
    for figure in ("average JCT", "average bill"):
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=figure))
        expect(row.get_by_role("cell").last).to_have_text("±0 %")
    classes = page.get_by_role("region", name="Classes")
    expect(classes.get_by_role("heading")).to_have_text("Classes at today’s budget")
    expect(classes).not_to_contain_text("→ ")


def test_a_wished_jct_finds_its_budget(page: Page, lab: Lab) -> None:
    page.get_by_label("I want jobs to take").fill("20")
    page.get_by_label("Unit of the time").select_option("hours")
    page.get_by_role("button", name="Find the budget").click()
    expect(page.get_by_role("button", name="Back to $75.00/h")).to_be_visible()
    found = float(amount(page).input_value())
    assert found == pytest.approx(lab.client.preview(jct_s=72_000.0)["budget_per_hour"], abs=0.02)
    expect(predicted(page, "average JCT")).to_contain_text(re.compile(r"^(19 h 59 min|20 h)$"))
    assert lab.client.budget()["budget_per_hour"] == BUDGET


def test_a_jct_that_no_money_buys_is_told(window: Window, page: Page) -> None:
    window.expects(r"status of 422")
    page.get_by_label("I want jobs to take").fill("1")
    page.get_by_label("Unit of the time").select_option("seconds")
    page.get_by_role("button", name="Find the budget").click()
    expect(page.get_by_role("alert")).to_contain_text("the fastest plan takes")


def test_a_budget_that_cannot_keep_up_is_told(page: Page, lab: Lab) -> None:
    amount(page).fill("20")
    told = page.get_by_role("alert").filter(has_text="Too small")

    shown = re.search(r"needs at least \$([\d.]+)/h", told.inner_text())
    assert shown is not None
    said = lab.client.frontier()["cheapest_per_hour"]
    assert float(shown[1]) == pytest.approx(said, abs=0.02)


def test_nothing_is_applied_without_a_yes(page: Page, lab: Lab) -> None:
    amount(page).fill("90")
    button_for(page, 90).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("$75.00/h to $90.00/h")
    expect(dialog).to_contain_text("active jobs may be rescaled")
    expect(dialog).to_contain_text(f"hard cap of ${CAP:.2f}/h stays")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert lab.client.budget()["budget_per_hour"] == BUDGET


def test_an_applied_budget_rescales_jobs_and_all_of_it_is_seen(page: Page, lab: Lab) -> None:
    job = lab.submit("bert", "to-be-rescaled")["id"]
    until("it has what is planned", lambda: has_its_share(lab, job))
    width = lab.client.job(job)["width"]
    amount(page).fill("52")
    button_for(page, 52).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Set it to $52.00/h").click()
    expect(dialog).to_have_count(0)
    note = page.get_by_role("status").filter(has_text="The budget is $52.00/h from now on")
    expect(note).to_contain_text("follows it")
    assert lab.client.budget()["budget_per_hour"] == 52.0
    page.get_by_role("link", name="Jobs", exact=True).click()
    row = page.get_by_role("row").filter(has_text="to-be-rescaled")
    expect(row).to_be_visible()
    expect(row).not_to_contain_text(f"{width}×A100")
    expect(row).to_contain_text(re.compile(r"running.*\d×A100"))
    assert lab.client.job(job)["width"] < width
    page.get_by_role("link", name="Events", exact=True).click()
    events = page.get_by_role("listitem")
    expect(events.filter(has_text="the budget is $52").first).to_be_visible()
    expect(events.filter(has_text=f"job {job} ").filter(has_text="→").first).to_be_visible()


def test_the_hard_cap_is_set_and_removed_with_a_yes(page: Page, lab: Lab) -> None:
    page.get_by_label("Never more than").fill("140")
    page.get_by_role("button", name="Change the cap").click()
    page.get_by_role("dialog").get_by_role("button", name="Cap it at $140.00/h").click()
    expect(page.get_by_text("never cost more than $140.00/h")).to_be_visible()
    assert lab.client.budget()["max_spend_per_hour"] == 140.0
    page.get_by_role("button", name="Remove the cap").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove the cap").click()
    expect(page.get_by_role("button", name="Set the cap")).to_be_visible()
    assert lab.client.budget()["max_spend_per_hour"] is None
