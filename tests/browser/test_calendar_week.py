"""The week of a budget that changes by the hour, drawn on the Budget view."""

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from browser.conftest import DESKTOP, PHONE, Window, expect_to_fit
from browser.lab import STEADY, Lab
from browser.test_accessible import found_in

# All scaled, so that a week comes to the lab's budget.
WEEK = {
    "time_zone": "Europe/Berlin",
    "periods": [
        {
            "name": "day",
            "days": ["mon", "tue", "wed", "thu", "fri"],
            "hours": "08:00-20:00",
            "budget_per_hour": 10,
        },
        {"name": "sunday", "days": ["sun"], "budget_per_hour": 8},
        {"name": "night", "budget_per_hour": 12},
    ],
}
GREY = """() => [...document.querySelectorAll('.week-swatch')].map((each) => {
  const ink = document.createElement('canvas').getContext('2d')
  ink.fillStyle = getComputedStyle(each).backgroundColor
  ink.fillRect(0, 0, 1, 1)
  const [red, green, blue] = ink.getImageData(0, 0, 1, 1).data
  return 0.299 * red + 0.587 * green + 0.114 * blue
})"""
"""How light each period is without its colour: 0 to 255."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("week")
    with Lab(folder, calendar=WEEK, **STEADY).running() as lab:
        yield lab


def test_a_simulation_can_follow_the_service_s_own_calendar(window: Window, lab: Lab) -> None:
    page = window.open(f"{lab.url}/#/what-if")
    page.get_by_role("radio", name="steady-day").check()
    page.get_by_role("checkbox", name="By this service’s calendar: day, sunday, night").check()
    expect(page.get_by_label("pollux", exact=True)).to_be_disabled()
    page.get_by_label("Budgets in USD per hour").fill("110")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_text("by the week’s hours (day, sunday, night)")).to_be_visible()
    page.get_by_role("button", name="Stop simulation").click()
    expect(page.get_by_text("It was stopped before it was done")).to_be_visible()
    assert lab.client.simulations()[0].get("calendar") == ["day", "sunday", "night"]


def test_the_amount_that_is_set_is_the_average_of_a_week(window: Window, lab: Lab) -> None:
    page = window.open(f"{lab.url}/#/budget")
    expect(page.get_by_text("over a week, ")).to_contain_text("which holds now")
    page.get_by_label("Budget in USD per hour").fill("90")
    page.get_by_role("button", name="Set the budget to $90.00/h").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("from $75.00/h to $90.00/h on average over a week (+20 %)")
    expect(dialog).to_contain_text("All periods of the calendar are scaled alike")
    dialog.get_by_role("button", name="Cancel").click()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["1440", "390"])
def test_the_week_is_drawn_by_period_in_shades_that_grey_keeps_apart(
    window: Window, lab: Lab, screen: dict[str, int], dark: bool
) -> None:
    page = window.open(f"{lab.url}/#/budget", viewport=screen, dark=dark)
    days = page.get_by_role("list", name="Periods of the week").get_by_role("listitem")
    expect(days).to_have_count(7)
    expect(days.first).to_contain_text("Mon: night until 08:00, day until 20:00, night until 24:00")
    expect(days.last).to_contain_text("Sun: sunday until 24:00")
    legend = page.get_by_role("list", name="What the shades mean")
    expect(legend).to_contain_text(re.compile(r"night: \$\d+\.\d\d/h"))
    expect(legend).to_contain_text(re.compile(r"now: \w{3} \d\d:\d\d, Europe/Berlin"))
    expect(page.locator(".week-now")).to_have_count(1)
    light = sorted(page.evaluate(GREY))
    assert len(light) == 3
    assert min(more - less for less, more in pairwise(light)) > 20
    expect(page.get_by_text("Loading")).to_have_count(0)
    expect_to_fit(page, "budget")
    assert not found_in(page)
