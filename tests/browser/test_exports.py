"""Every chart can be taken away, as a picture and as figures."""

import csv
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Window
from browser.lab import Lab, until

AT_ONCE = 4
"""Charts: without somebody to ask, Chromium allows a page ten downloads."""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def told_of(lab: Lab) -> str:
    """A job that has reported something."""
    job = lab.client.jobs(search="bert-1")[0]["id"]
    until("it has points", lambda: len(lab.client.job_history(job)["points"]) >= 3)
    return job


@pytest.mark.parametrize(
    ("view", "least"), [("budget", 2), ("cluster", 3), ("classes/bert", 4), ("jobs/{job}", 3)]
)
def test_every_chart_of_a_view_can_be_saved(
    window: Window, lab: Lab, told_of: str, tmp_path: Path, view: str, least: int
) -> None:
    page = window.open(f"{lab.url}/#/{view.format(job=told_of)}")
    charts = page.get_by_role("figure")
    expect(charts.nth(least - 1)).to_be_visible()
    expect(page.get_by_text("Loading")).to_have_count(0)
    names = charts.evaluate_all("all => all.map(chart => chart.getAttribute('aria-label'))")
    assert len(names) >= least
    assert len(set(names)) == len(names), "each has a name of its own"
    for n, name in enumerate(names):
        if n % AT_ONCE == AT_ONCE - 1:
            page.reload()
        drawn = page.get_by_role("figure", name=name, exact=True).get_by_role("img")
        expect(drawn.locator("path, rect").first).to_be_attached()
        _check_picture(_saved(page, f"{name} as SVG", tmp_path / f"{n}.svg"))
        _check_figures(_saved(page, f"{name} as CSV", tmp_path / f"{n}.csv"))


def _saved(page: Page, button: str, path: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name=button, exact=True).click()
    assert download.value.suggested_filename.startswith("boa-")
    assert download.value.suggested_filename.endswith(path.suffix)
    download.value.save_as(path)
    return path


def _check_picture(path: Path) -> None:
    picture = ElementTree.parse(path).getroot()
    assert picture.tag == f"{SVG}svg"
    drawn = [part for part in picture.iter() if part.tag in (f"{SVG}path", f"{SVG}rect")]
    assert len(drawn) >= 2
    text = path.read_text("utf-8")
    assert "var(--" not in text, "a colour that only the page knows"
    assert "class=" not in text


def _check_figures(path: Path) -> None:
    head, *rows = csv.reader(path.read_text("utf-8").splitlines())
    assert len(head) >= 2
    assert rows
    assert all(len(row) == len(head) for row in rows)


def test_events_can_be_saved(window: Window, lab: Lab, tmp_path: Path) -> None:
    page = window.open(f"{lab.url}/#/events")
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile(r"Save .*as CSV")).click()
    download.value.save_as(tmp_path / "events.csv")
    _check_figures(tmp_path / "events.csv")
