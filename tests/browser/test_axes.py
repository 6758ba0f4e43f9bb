"""Words beside the axes of every chart: inside it, apart from each other, and no two the same."""

from contextlib import suppress
from typing import TypedDict

import pytest
from playwright.sync_api import Error, Page, Route, expect

from browser.conftest import Window
from browser.lab import Lab, until

WIDTHS = (1440, 1024, 390)
LEAST = {"budget": 2, "cluster": 3, "classes/bert": 4, "jobs/{job}": 3}
"""Charts of each view."""
AXES = """least => {
  const box = (element) => {
    const { left, top, right, bottom } = element.getBoundingClientRect();
    return { left, top, right, bottom, text: element.textContent };
  };
  const charts = [...document.querySelectorAll('figure.chart:has(.chart-body)')]
    .filter((chart) => chart.checkVisibility());
  const drawn = charts.filter((chart) => chart.querySelector('.axes text'));
  if (drawn.length < least || drawn.length < charts.length) return null;
  return charts.map((chart) => {
    const svg = chart.querySelector('svg:has(.axes)');
    const all = (what) => [...svg.querySelectorAll(what)].filter((each) => each.textContent);
    return {
      name: chart.getAttribute('aria-label'),
      svg: box(svg),
      words: all('.axes text').map(box),
      x: all('.axes > text:not(.axis-label)').map((each) => each.textContent),
      y: all('.axes > g > text').map((each) => each.textContent),
    };
  });
}"""
"""Every chart that is to be seen, once all are drawn: where its words are, what its ticks say."""
HAIR = 0.5
"""Pixels: less is no overlap that anybody sees."""
FRACTION = 4e-4
"""Of a dollar's price: a job then costs cents and less."""


class Box(TypedDict):
    left: float
    top: float
    right: float
    bottom: float
    text: str


class Chart(TypedDict):
    name: str
    svg: Box
    words: list[Box]
    x: list[str]
    y: list[str]


@pytest.fixture(scope="module")
def told_of(lab: Lab) -> str:
    """A job that has reported something."""
    job = lab.client.jobs(search="bert-1")[0]["id"]
    until("it has points", lambda: len(lab.client.job_history(job)["points"]) >= 3)
    return job


def _outside(chart: Chart) -> list[str]:
    frame = chart["svg"]
    return [
        f"{chart['name']}: {word['text']!r} is cut off"
        for word in chart["words"]
        if word["left"] < frame["left"] - HAIR
        or word["right"] > frame["right"] + HAIR
        or word["top"] < frame["top"] - HAIR
        or word["bottom"] > frame["bottom"] + HAIR
    ]


def _overlap(one: Box, other: Box) -> bool:
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    return across > HAIR and down > HAIR


def problems(chart: Chart) -> list[str]:
    words, name = chart["words"], chart["name"]
    overlaps = [
        f"{name}: {one['text']!r} lies on {other['text']!r}"
        for n, one in enumerate(words)
        for other in words[n + 1 :]
        if _overlap(one, other)
    ]
    twice = [
        f"{name}: two ticks say the same: {ticks}"
        for ticks in (chart["x"], chart["y"])
        if len(set(ticks)) < len(ticks)
    ]
    return _outside(chart) + overlaps + twice


def look(page: Page, view: str, least: int) -> list[str]:
    expect(page.get_by_text("Loading")).to_have_count(0)
    charts: list[Chart] = page.wait_for_function(AXES, arg=least).json_value()
    assert all(chart["x"] or chart["y"] for chart in charts), "axes without ticks"
    return [f"{view}: {problem}" for chart in charts for problem in problems(chart)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_words_of_every_axis_can_be_read(
    window: Window, lab: Lab, told_of: str, width: int, dark: bool
) -> None:
    page = window.open("about:blank", viewport={"width": width, "height": 900}, dark=dark)
    found = []
    for view, least in LEAST.items():
        page.goto(f"{lab.url}/#/{view.format(job=told_of)}")
        found += look(page, view, least)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("times", [FRACTION, 4000.0], ids=["cents", "fortunes"])
def test_so_can_those_of_a_lab_of_another_size(
    window: Window, lab: Lab, told_of: str, width: int, times: float
) -> None:
    """The same answers of the service, with other prices."""

    def repriced(route: Route) -> None:
        with suppress(Error):  # a page that has gone on asks for it no more
            answer = route.fetch()
            route.fulfill(response=answer, json=_scaled(answer.json(), times))

    page = window.open("about:blank", viewport={"width": width, "height": 900})
    for path in ("frontier", "cost", "history", "preview", "jobs/*/history"):
        page.route(f"**/api/v1/{path}*", repriced)
    found = []
    for view in ("budget", "jobs/{job}"):
        page.goto(f"{lab.url}/#/{view.format(job=told_of)}")
        found += look(page, view, LEAST[view])
    assert not found, "\n".join(found)


def _scaled(answer: object, times: float, key: str = "") -> object:
    """Every figure whose name says that it is money, so many times as large."""
    if isinstance(answer, dict):
        return {name: _scaled(value, times, name) for name, value in answer.items()}
    if isinstance(answer, list):
        return [_scaled(value, times, key) for value in answer]
    money = "usd" in key or "price" in key or key.endswith("per_hour")
    return answer * times if money and isinstance(answer, int | float) else answer
