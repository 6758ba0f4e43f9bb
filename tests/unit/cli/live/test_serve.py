"""`boa serve` as a process of its own: up, used, ended, up again."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from boa.cli import main
from integration.runner import Boa


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address it says it listens on."""
    command = [sys.executable, "-m", "boa", "serve", "--port", "0", "--json", *flags]
    env = {key: value for key, value in os.environ.items() if not key.startswith("BOA_")}
    process = subprocess.Popen(
        [*command, "--data", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    with process:
        assert process.stdout is not None
        said = ""
        while not said.endswith("}\n"):
            line = process.stdout.readline()
            assert line, process.stderr and process.stderr.read()
            said += line
        document = json.loads(said)
        assert document["pid"] == process.pid
        try:
            yield process, document["url"]
        finally:
            process.kill()


def test_a_service_runs_a_job_remembers_its_budget_and_ends_when_told(
    run: Boa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    with serving(tmp_path, "--budget", "14", "--billing", "gpu") as (process, url):
        monkeypatch.setenv("BOA_SERVER", url)
        assert httpx.get(f"{url}/api/v1/health").status_code == 200
        command = ["sh", "-c", "echo hello from $BOA_JOB_ID; exit 3"]
        said = run("submit", "--class", "a", "--retries", 0, "--wait", "--", *command, code=3)
        assert said == "1\nhello from 1\n"
        (job,) = run.json("ps", "--all")["jobs"]
        assert (job["state"], job["exit_code"]) == ("failed", 3)
        assert run.json("nodes")["nodes"][0]["state"] == "ready"
        run("budget", "set", 20)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == (
            f"boa: serving on {url}, budget $14/h, engine local, cloud local\n"
        )
    with serving(tmp_path, "--budget", "14") as (process, url):
        monkeypatch.setenv("BOA_SERVER", url)
        assert run.json("budget", "show")["budget_per_hour"] == 20
        assert [job["id"] for job in run.json("ps", "--all")["jobs"]] == ["1"]


def test_a_service_whose_database_was_taken_over_ends_with_1_to_be_started_again(
    run: Boa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    with serving(tmp_path, "--budget", "14") as (process, url):
        monkeypatch.setenv("BOA_SERVER", url)
        with closing(sqlite3.connect(tmp_path / "boa.db", timeout=10)) as other:
            other.execute("UPDATE writer SET opened = opened + 1")
            other.commit()
        refused = main(["budget", "set", "20"])
        said = run.capsys.readouterr().err
        # or it is gone by now: it may have had something to write of its own
        assert "nothing was changed" in said if refused == 1 else refused == 4, said
        assert process.wait(timeout=60) == 1
        assert process.stderr is not None
        said = process.stderr.read().splitlines()[-1]
        assert said.startswith("error: the database has changed under this service")
    with serving(tmp_path, "--budget", "14") as (process, url):
        monkeypatch.setenv("BOA_SERVER", url)
        assert run.json("budget", "show")["budget_per_hour"] == 14
