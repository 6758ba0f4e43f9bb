"""A script that breaks on more than one GPU, as a job of a real service that would widen it: the
job, its class, the terminal and the page."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import expect

from boa.client import Client
from boa.client.spawn import OwnService
from boa.model.job import ENDED
from browser.conftest import Window

SPEED = 60.0
PATIENCE_S = 300.0
SCRIPT = """\
import os, sys, time
from boa import train

if int(os.environ["WORLD_SIZE"]) > 1:
    time.sleep(0.2)
    raise RuntimeError("CUDA out of memory")
train.context()
at = train.resume()
for epoch in train.epochs():
    for step in range(at.step if epoch == at.epoch else 0, 100):
        time.sleep(0.05)
        train.report(samples=1)
        if train.stop_requested():
            with train.new_checkpoint():
                pass
            sys.exit(0)
"""


def test_a_job_that_only_works_on_one_gpu_succeeds_and_its_class_stays_there(
    tmp_path: Path, window: Window
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    config = {
        "budget_per_hour": 8.0,
        "speed": SPEED,
        "billing": "gpu",
        "gpu_types": {"T4": {"price": 1.0, "gpus_per_node": 4, "max_nodes": 1}},
        "local": {"provision_s": 0, "release_s": 0},
    }
    job = {
        "class": "net",
        "run": [sys.executable, "train.py"],
        "workdir": str(tmp_path),
        "gpus": {"min": 1, "max": 4},
        "epochs": 4,
        "retries": 0,
    }
    with OwnService(tmp_path / "service", config) as own, own.client() as client:
        first = client.submit(job)["id"]
        state, widths = watched(client, first)
        assert state == "succeeded", said(own, "show", first)
        assert widths[0] == 1
        assert max(widths) > 1, "it was never widened: the test shows nothing"
        retries = [e for e in client.history(job=first) if e["kind"] == "retry"]
        assert "goes back to 1×T4" in retries[0]["text"]
        assert "CUDA out of memory" in retries[0]["text"]
        state, widths = watched(client, client.submit(job)["id"])
        assert (state, set(widths)) == ("succeeded", {1})
        (found, *_) = client.job_class("net")["gpu_types"][0]["failed"]
        assert found["said"].endswith("RuntimeError: CUDA out of memory")
        assert {
            w for v in client.plan()["plan"]["classes"][0]["variants"] for w in v["widths"]
        } == {1}
        shown = " ".join(said(own, "show", "net").split())
        assert f"{found['width']}×T4 failed" in shown
        assert "RuntimeError: CUDA out of memory; not used" in shown
        page = window.open(f"{own.url}/#/classes/net")
        why = page.get_by_text(
            re.compile(rf"{found['width']}×T4 failed .*CUDA out of memory; not used")
        )
        expect(why).to_be_visible()
        assert "may be used again" in said(own, "class", "retry", "net")
        assert client.job_class("net")["gpu_types"][0]["failed"] == []
        page.reload()
        expect(page.get_by_role("heading", name="net")).to_be_visible()
        expect(why).to_have_count(0)


def watched(client: Client, job_id: str) -> tuple[str, list[int]]:
    """State of the job when it has ended, and the widths that it was started at."""
    deadline = time.monotonic() + PATIENCE_S
    while (job := client.job(job_id))["state"] not in ENDED:
        assert time.monotonic() < deadline, job
        time.sleep(0.2)
    starts = ("started", "rescaled", "restarted")
    events = client.history(job=job_id, limit=1000)
    return job["state"], [e["data"]["width"] for e in events if e["kind"] in starts]


def said(own: OwnService, *arguments: str) -> str:
    """What a user would see."""
    command = [sys.executable, "-m", "boa", *arguments]
    env = {**os.environ, "BOA_SERVER": own.url, "COLUMNS": "200"}
    found = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    return found.stdout
