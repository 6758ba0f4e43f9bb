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
from boa.formats.machine import machine, slot_words
from integration.runner import Boa


@contextmanager
def serving(
    folder: Path, *flags: str, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address it says it listens on. `variables`: of its environment."""
    command = [sys.executable, "-m", "boa", "serve", "--port", "0", "--json", *flags]
    env = {key: value for key, value in os.environ.items() if not key.startswith("BOA_")}
    process = subprocess.Popen(
        [*command, "--data", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**env, **variables},
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
        assert httpx.get(f"{url}/api/v1/health", timeout=300.0).status_code == 200
        command = ["sh", "-c", "echo hello from $BOA_JOB_ID; exit 3"]
        said = run("submit", "--class", "a", "--retries", 0, "--wait", "--", *command, code=3)
        assert said == "1\nhello from 1\n"
        (job,) = run.json("ps", "--all")["jobs"]
        assert (job["state"], job["exit_code"]) == ("failed", 3)
        assert run.json("nodes")["nodes"][0]["state"] == "ready"
        run("budget", "set", 20, "--max-spend", 30)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=300) == 0
        assert process.stderr is not None
        first, *more = process.stderr.read().splitlines()
        assert first == f"boa: serving on {url}, budget $14.00/h, engine local, cloud local"
        slots = slot_words(*machine())
        assert more == ([] if slots is None else [f"boa: {slots}"])
    with serving(tmp_path, "--budget", "14") as (process, url):
        monkeypatch.setenv("BOA_SERVER", url)
        assert run.json("budget", "show")["budget_per_hour"] == 20
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(4 if slots else 3)]
        logged = [json.loads(line) for line in lines[-2:]]
        assert [line["level"] for line in logged] == ["warning", "warning"]
        assert logged[0]["message"].startswith("budget $20.00/h, set at run time on 20")
        assert logged[1]["message"].endswith("`boa budget set --max-spend none` goes back")
        assert [job["id"] for job in run.json("ps", "--all")["jobs"]] == ["1"]


def test_a_service_whose_database_was_taken_over_ends_with_1_to_be_started_again(
    run: Boa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    with serving(tmp_path, "--budget", "14") as (process, url):
        monkeypatch.setenv("BOA_SERVER", url)
        with closing(sqlite3.connect(tmp_path / "boa.db", timeout=300)) as other:
            other.execute("UPDATE writer SET opened = opened + 1")
            other.commit()
        refused = main(["budget", "set", "20"])
        said = run.capsys.readouterr().err
        # or it is gone by now: it may have had something to write of its own
        assert "nothing was changed" in said if refused == 1 else refused == 4, said
        assert process.wait(timeout=300) == 1
        assert process.stderr is not None
        said = process.stderr.read().splitlines()[-1]
        assert said.startswith("error: the database has changed under this service")
    with serving(tmp_path, "--budget", "14") as (process, url):
        monkeypatch.setenv("BOA_SERVER", url)
        assert run.json("budget", "show")["budget_per_hour"] == 14


def test_a_fresh_service_wants_its_own_token_which_commands_find_by_themselves(
    run: Boa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    with (
        serving(tmp_path / "a", "--budget", "14") as (process, url),
        serving(tmp_path / "b", "--budget", "15") as (_, other),
    ):
        assert httpx.get(f"{url}/api/v1/health", timeout=300.0).status_code == 200
        assert httpx.get(f"{url}/api/v1/jobs", timeout=300.0).status_code == 401
        token = (tmp_path / "a" / "token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{url}/api/v1/jobs", headers=headers, timeout=300.0).status_code == 200
        assert httpx.get(f"{other}/api/v1/jobs", headers=headers, timeout=300.0).status_code == 401
        for address, budget in ((url, 14), (other, 15)):
            monkeypatch.setenv("BOA_SERVER", address)
            assert run.json("budget", "show")["budget_per_hour"] == budget
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=300) == 0
        assert process.stderr is not None
        assert token not in process.stderr.read(), "only a terminal is told"
    with serving(tmp_path / "a") as (_, url):
        assert httpx.get(f"{url}/api/v1/jobs", headers=headers, timeout=300.0).status_code == 200
        assert (tmp_path / "a" / "token").read_text().strip() == token


def test_a_token_in_the_environment_wins_on_both_sides_and_is_told_to_nobody(
    run: Boa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    token = "w7Fq-2kT7pQzX9vLmN4c"
    with serving(tmp_path, BOA_TOKEN=token) as (_, url):
        monkeypatch.setenv("BOA_SERVER", url)
        run("ps", code=2)
        assert "BOA_TOKEN" in run.err
        monkeypatch.setenv("BOA_TOKEN", token)
        run("ps")
        assert not (tmp_path / "token").exists()


def test_with_no_token_this_machine_may_ask_without(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-token") as (_, url):
        assert httpx.get(f"{url}/api/v1/jobs", timeout=300.0).status_code == 200
        assert not (tmp_path / "token").exists()


def test_where_no_home_can_be_written_the_service_starts_and_says_where_its_token_is(
    run: Boa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    nowhere = str(tmp_path / "file" / "none")
    variables = {"HOME": nowhere, "XDG_STATE_HOME": nowhere, "XDG_RUNTIME_DIR": nowhere}
    with serving(tmp_path / "data", **variables) as (process, url):
        monkeypatch.setenv("BOA_SERVER", url)
        run("ps", code=2)
        monkeypatch.setenv("BOA_TOKEN", (tmp_path / "data" / "token").read_text().strip())
        run("ps")
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=300)
        assert process.stderr is not None
        said = process.stderr.read()
        assert f"export BOA_TOKEN=$(cat {tmp_path / 'data' / 'token'})" in said


def test_a_token_file_is_taken_if_it_is_private_and_its_token_hard_to_guess(
    run: Boa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    monkeypatch.setenv("BOA_HOME", str(tmp_path / "home"))
    file = tmp_path / "mine"
    for content, mode, words in (
        (None, 0o600, "no such file"),
        ("s3cret", 0o600, "too short"),
        ("w7Fq-2kT7pQzX9vLmN4c", 0o644, "open to other users"),
    ):
        if content is not None:
            file.write_text(content)
            file.chmod(mode)
        run("serve", "--port", 0, "--token-file", file, code=2)
        assert words in run.err
        assert content is None or content not in run.err
    run("serve", "--port", 0, "--token-file", file, "--no-token", code=2)
    file.chmod(0o600)
    with serving(tmp_path / "data", "--token-file", str(file)) as (_, url):
        headers = {"Authorization": "Bearer w7Fq-2kT7pQzX9vLmN4c"}
        assert httpx.get(f"{url}/api/v1/jobs", headers=headers, timeout=300.0).status_code == 200
        monkeypatch.setenv("BOA_SERVER", url)
        run("ps")


def test_a_weak_token_is_refused_before_anything_is_begun(
    run: Boa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOA_HOME", str(tmp_path / "home"))
    for token in ("secret", "a" * 40):
        monkeypatch.setenv("BOA_TOKEN", token)
        run("serve", "--port", 0, code=2)
        assert "BOA_TOKEN" in run.err
        assert "openssl rand" in run.err
        assert token not in run.err
    assert not (tmp_path / "home").exists()
