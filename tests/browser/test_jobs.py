"""The jobs: they come, run and end before one's eyes; any of them can be found, opened, stopped."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.conftest import Window
from browser.lab import Lab, until


@pytest.fixture
def page(window: Window, lab: Lab) -> Page:
    page = window.open(f"{lab.url}/#/jobs")
    expect(rows(page).first).to_be_visible()
    return page


def rows(page: Page) -> Locator:
    """Without the head."""
    return (
        page.get_by_role("table", name="Jobs")
        .get_by_role("row")
        .filter(has=page.get_by_role("cell"))
    )


def row(page: Page, name: str) -> Locator:
    return rows(page).filter(has_text=name)


def test_a_submitted_job_appears_runs_and_gets_on_by_itself(
    page: Page, lab: Lab, tmp_path: Path
) -> None:
    page.evaluate("window.neverReloaded = true")
    may_end = tmp_path / "may-end"
    command = f"until test -e '{may_end}'; do sleep 0.1; done"
    options = ["--class", "quick", "--name", "by-hand", "--launcher", "single"]
    subprocess.run(
        [sys.executable, "-m", "boa", "submit", *options, "--", "sh", "-c", command],
        env={**os.environ, "BOA_SERVER": lab.url},
        check=True,
        capture_output=True,
    )
    mine = row(page, "by-hand")
    expect(mine).to_contain_text("running")
    replayed = lab.submit("bert", "acted-out")["id"]
    expect(row(page, "acted-out")).to_contain_text("running")
    progress = row(page, "acted-out").get_by_role("progressbar")
    expect(progress).not_to_have_attribute("aria-valuenow", "0")
    may_end.touch()
    expect(mine).to_have_count(0)
    page.get_by_label("Show finished").check()
    expect(mine).to_contain_text("succeeded")
    assert page.evaluate("window.neverReloaded"), "it was the same page all the time"
    lab.client.stop(replayed)


def test_jobs_are_found_by_name_state_and_class_and_the_address_keeps_it(page: Page) -> None:
    page.get_by_label("Search jobs").fill("bert-2")
    expect(rows(page)).to_have_count(1)
    expect(row(page, "bert-2")).to_be_visible()
    expect(page).to_have_url(re.compile("search=bert-2"))
    page.reload()
    expect(rows(page)).to_have_count(1)
    page.get_by_label("Search jobs").fill("nobody has this name")
    expect(page.get_by_text("No job fits")).to_be_visible()
    page.get_by_label("Search jobs").fill("")
    page.get_by_label("Class").select_option("deepspeech2")
    expect(rows(page)).to_have_count(2)
    states = page.get_by_role("group", name="States to show")
    states.get_by_role("button", name="waiting").click()
    expect(rows(page)).to_have_count(0)
    states.get_by_role("button", name="running").click()
    expect(rows(page)).to_have_count(2)


def test_a_click_on_a_column_sorts_by_it(page: Page) -> None:
    page.get_by_role("columnheader", name="Name").get_by_role("button").click()
    expect(rows(page).first).to_contain_text("resnet18")
    page.get_by_role("columnheader", name="Name").get_by_role("button").click()
    expect(rows(page).first).to_contain_text("bert")
    expect(page.get_by_role("columnheader", name="Name")).to_have_attribute(
        "aria-sort", "ascending"
    )


def test_a_job_is_stopped_from_the_table_and_only_after_a_yes(page: Page, lab: Lab) -> None:
    job = lab.submit_talker("to-be-stopped")["id"]
    mine = row(page, "to-be-stopped")
    expect(mine).to_contain_text("running")
    stop = page.get_by_role("button", name=f"Stop job {job}", exact=True)
    stop.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("to-be-stopped")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert not lab.was_asked_to_stop(job)
    stop.click()
    dialog.get_by_role("button", name="Stop the job").click()
    expect(dialog).to_have_count(0)
    expect(mine).to_have_count(0)
    assert lab.state(job) == "stopped"
    page.get_by_label("Show finished").check()
    expect(mine).to_contain_text("stopped")


def test_a_job_s_page_tells_its_life(page: Page) -> None:
    row(page, "resnet18-1").get_by_role("link", name="resnet18-1").click()
    expect(page.get_by_role("heading", name="resnet18-1")).to_be_visible()
    for chart in ("GPUs over time", "Cost over time", "Throughput"):
        expect(page.get_by_role("figure", name=chart)).to_be_visible()
    happened = page.get_by_role("listitem").filter(has_text="→").first
    expect(happened).to_be_visible()
    page.get_by_role("link", name="← Jobs").click()
    expect(row(page, "resnet18-1")).to_be_visible()


def test_a_log_is_followed_as_it_grows(window: Window, lab: Lab, tmp_path: Path) -> None:
    job = lab.submit_talker("talks", words="line number")["id"]
    until("it runs", lambda: lab.state(job) == "running")
    page = window.open(f"{lab.url}/#/jobs/{job}")
    log = page.get_by_label("Log of worker 0")
    expect(log).to_contain_text("line number 1")
    seen = newest_line(log)
    expect(log).to_contain_text(f"line number {seen + 20}\n")
    assert log.evaluate("log => log.scrollHeight - log.scrollTop - log.clientHeight") < 40
    page.get_by_role("button", name="Pause log").click()
    expect(page.get_by_text("paused")).to_be_visible()
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Download whole log").click()
    whole = tmp_path / "log"
    downloaded.value.save_as(whole)
    lines = whole.read_text().splitlines()
    assert lines[:3] == [f"line number {n}" for n in (1, 2, 3)]
    assert len(lines) >= seen + 20
    page.get_by_role("button", name="Follow log").click()
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Stop the job").click()
    expect(page.get_by_text("the job has ended")).to_be_visible()
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)


def newest_line(log: Locator) -> int:
    return max(map(int, re.findall(r"line number (\d+)", log.inner_text())))


def test_a_job_that_is_not_there_is_told(window: Window, lab: Lab) -> None:
    window.expects("status of 404")
    page = window.open(f"{lab.url}/#/jobs/99999")
    expect(page.get_by_text("There is no job 99999")).to_be_visible()
