"""What if: a simulation is asked for, watched, compared and saved."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Window
from browser.lab import Lab

LONG_MS = 180_000.0
"""Simulations leave the machine to everybody else, so a busy one takes its time."""
TRACE = "name,arrival_s,application,gpus\n" + "\n".join(
    f"job-{n},{n * 900},{'ncf' if n % 4 == 2 else 'cifar10'},2" for n in range(12)
)

WATCH_PROGRESS = """() => {
  window.sawProgress = false;
  new MutationObserver(() => {
    window.sawProgress ||= document.querySelector("[role=progressbar]") !== null;
  }).observe(document.body, { childList: true, subtree: true });
}"""
"""A simulation may be over before somebody outside of the page looks again."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """With nothing else to do."""
    with Lab(tmp_path_factory.mktemp("lab")).running() as lab:
        yield lab


@pytest.fixture
def page(window: Window, lab: Lab) -> Page:
    page = window.open(f"{lab.url}/#/what-if")
    expect(page.get_by_role("button", name="Simulate")).to_be_visible()
    return page


def ask(page: Page, policies: list[str], budgets: str, gpu: str) -> None:
    boxes = page.get_by_role("group", name="Policies").get_by_role("checkbox")
    for box in boxes.all():
        box.set_checked(False)
    for policy in policies:
        page.get_by_role("group", name="Policies").get_by_label(policy, exact=True).check()
    types = page.get_by_role("group", name="GPU types")
    for box in types.get_by_role("checkbox").all():
        box.set_checked(False)
    types.get_by_label(gpu, exact=True).check()
    page.get_by_label("Budgets in USD per hour").fill(budgets)
    page.get_by_role("button", name="Simulate").click()


def test_a_built_in_trace_is_simulated_to_its_end(page: Page, tmp_path: Path) -> None:
    page.get_by_role("radio", name="steady-day").check()
    page.evaluate(WATCH_PROGRESS)
    ask(page, ["boa", "reservation"], "110", "T4")
    chart = page.get_by_role("figure", name="Average JCT by bill")
    expect(chart).to_be_visible(timeout=LONG_MS)
    assert page.evaluate("window.sawProgress")
    points = page.get_by_role("region", name="Points of simulation")
    for policy in ("boa", "reservation"):
        row = points.get_by_role("row").filter(has=page.get_by_role("rowheader", name=policy))
        expect(row).to_contain_text("$")
    with page.expect_download() as download:
        page.get_by_role("button", name="Average JCT by bill as CSV").click()
    download.value.save_as(tmp_path / "bill.csv")
    assert "boa" in (tmp_path / "bill.csv").read_text("utf-8")


def test_a_trace_of_one_s_own_can_be_uploaded(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(TRACE)
    page.get_by_role("radio", name="a file").check()
    page.get_by_label("Trace file").set_input_files(file)
    expect(page.get_by_text("mine.csv is read")).to_be_visible()
    ask(page, ["boa"], "20, 40", "T4")
    expect(page.get_by_role("figure", name="Average JCT by bill")).to_be_visible(timeout=LONG_MS)
    expect(page.get_by_role("heading", name="mine.csv")).to_be_visible()


def test_a_simulation_can_be_stopped(page: Page, lab: Lab) -> None:
    page.get_by_role("radio", name="steady-day").check()
    ask(page, ["sia-autoscale"], "80, 90, 100, 110, 120, 130, 140, 150", "T4")
    page.get_by_role("button", name="Stop simulation").click()
    expect(page.get_by_text("It was stopped before it was done")).to_be_visible()
    assert lab.client.simulations()[0]["state"] == "stopped"


def test_a_question_that_makes_no_sense_is_not_sent(page: Page, lab: Lab) -> None:
    before = len(lab.client.simulations())
    ask(page, ["boa"], "much", "T4")
    expect(page.get_by_role("alert")).to_be_visible()
    assert len(lab.client.simulations()) == before
