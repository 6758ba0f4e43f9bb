"""A service that has just been set up, and words that somebody else has chosen."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from boa.client.spawn import OwnService
from browser.conftest import Window
from browser.lab import until

EMPTY = {
    "budget": "Nothing is planned yet",
    "jobs": "No job is active",
    "cluster": "Nothing is rented now",
    "classes": "No class yet",
    "what-if": "None yet",
    "events": "Nothing has happened yet",
}
NASTY = "<img src=x onerror=\"console.error('ran')\">"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnService]:
    config = {"gpu_types": {"T4": {"price": 1.0, "gpus_per_node": 4}}, "budget_per_hour": 8.0}
    with OwnService(tmp_path_factory.mktemp("service"), config) as service:
        yield service


@pytest.mark.parametrize("view", EMPTY)
def test_a_view_with_nothing_to_show_says_so(
    window: Window, service: OwnService, view: str
) -> None:
    page = window.open(f"{service.url}/#/{view}")
    expect(page.get_by_text(EMPTY[view])).to_be_visible()
    expect(page.get_by_text("Loading")).to_have_count(0)
    expect(page.get_by_text("NaN")).to_have_count(0)


def test_the_steps_to_a_first_job_work_as_they_stand_and_go_with_it(
    window: Window, service: OwnService, tmp_path: Path
) -> None:
    page = window.open(service.url)
    steps = page.get_by_text("Your first job, in three steps")
    expect(steps).to_be_visible()
    file, submit, _ = page.locator(".command pre").all_inner_texts()
    boa = f'boa() {{ {sys.executable} -m boa "$@"; }}'
    script = "\n".join([boa, file, submit])
    subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=True, capture_output=True)
    expect(steps).to_have_count(0)
    page.reload()
    expect(page.get_by_text("Spend now")).to_be_visible()
    expect(steps).to_have_count(0)


def test_a_name_is_shown_as_it_is_and_never_run(window: Window, service: OwnService) -> None:
    with service.client() as client:
        spec = {"class": "nasty", "name": NASTY, "run": ["true"], "launcher": "single"}
        job = client.submit(spec)["id"]
        until("it has ended", lambda: client.job(job)["ended_at"] is not None)
    page = window.open(f"{service.url}/#/jobs?ended=1")
    expect(page.get_by_role("link", name=NASTY)).to_be_visible()
    page.goto(f"{service.url}/#/jobs/{job}")
    expect(page.get_by_role("heading", name=NASTY)).to_be_visible()
    page.goto(f"{service.url}/#/events")
    expect(page.get_by_text(NASTY).first).to_be_visible()
    expect(page.locator("img[src=x]")).to_have_count(0)
