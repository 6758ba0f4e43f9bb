"""Every view as it looks, light and dark, on a desk and on a phone; `make screenshots` keeps them.

What is shown is a lab of some hours; a quick run has a shorter story.
"""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from boa.api.answers import JobRow
from browser.conftest import DESKTOP, PHONE, Window, expect_to_fit
from browser.lab import Lab, until

BUDGET = 120.0
"""Scarce: many jobs, with few GPUs each."""
STORY_S = 270.0
"""Of the wall: what pictures that are kept have to tell."""
SHOWN = {"budget-desktop-dark", "jobs-phone-light"}
"""That the documents show beside every view on a desk, light."""
VIEWS = ("budget", "month", "jobs", "job", "cluster", "classes", "class", "what-if", "events")
POLICIES = ("boa", "sia-autoscale", "rubick-autoscale")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Lab]:
    kept = request.config.getoption("--screenshots") is not None
    folder = tmp_path_factory.mktemp("lab")
    with Lab(folder, times=2.0, busy=2.0, keep_warm_s=60, budget_per_hour=BUDGET).running() as lab:
        simulation = _ask_what_if(lab, kept)
        with lab.streaming():
            if kept:
                time.sleep(STORY_S)  # a story takes its time: there is nothing to wait for
            until("a simulation is done", lambda: _is_done(lab, simulation), patience_s=300.0)
            until("jobs run", lambda: len(lab.client.jobs(states=["running"])) >= 3)
            yield lab


def _ask_what_if(lab: Lab, whole: bool) -> str:
    trace = lab.client.what_if_traces()["traces"][0]
    policies, budgets = (POLICIES, trace["budgets"]) if whole else (POLICIES[:1], [100.0])
    return lab.client.what_if(trace["name"], policies=policies, budgets=budgets)["id"]


def _is_done(lab: Lab, simulation: str) -> bool:
    found = lab.client.simulation(simulation)
    assert found["state"] not in ("failed", "stopped"), found["error"]
    return found["state"] == "done"


def _interest(job: JobRow) -> tuple[bool, bool, float]:
    """How much there is to see of it; where all have just ended, of one that has."""
    return job["ended_at"] is None, job["rescalings"] > 0, job["left_s"] or 0.0


def _addresses(lab: Lab) -> dict[str, str]:
    told = max(lab.client.jobs(all=True), key=_interest)
    named = {view: f"#/{view}" for view in VIEWS}
    return {
        **named,
        "job": f"#/jobs/{told['id']}",
        "class": "#/classes/deepspeech2",
        "what-if": f"#/what-if/{lab.client.simulations()[0]['id']}",
    }


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_every_view_is_complete_and_fits(window: Window, lab: Lab, phone: bool, dark: bool) -> None:
    page = window.open(lab.url, viewport=PHONE if phone else DESKTOP, dark=dark, phone=phone)
    kind = f"{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}"
    for view, address in _addresses(lab).items():
        page.goto(f"{lab.url}/{address}")
        settle(page)
        expect_to_fit(page, view)
        if kind == "desktop-light" or f"{view}-{kind}" in SHOWN:
            window.keep(page, f"{view}-{kind}")


def settle(page: Page) -> None:
    """Until nothing is on its way any more."""
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    expect(page.get_by_text("Loading")).to_have_count(0)
    expect(page.get_by_text("asking…")).to_have_count(0)
    expect(page.get_by_role("main")).not_to_be_empty()
