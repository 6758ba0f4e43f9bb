"""Jobs from the command line: listed, shown, stopped, submitted, waited for."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.cli.submit import mirrored
from boa.model.cluster import Share
from fakes import FakeService, locked
from integration.runner import Boa
from unit.test_server_jobs import CONTRACT as JOB_KEYS


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Boa:
    return Boa(capsys)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeService]:
    service = FakeService(tmp_path / "service")
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    with service.serving() as url:
        monkeypatch.setenv("BOA_SERVER", url)
        yield service


def test_ps_json_has_exactly_the_keys_of_the_contract(run: Boa, service: FakeService) -> None:
    service.submit(name="first")
    service.control.run("1")
    service.submit()
    service.control.end("2", "stopped", exit_code=0)
    document = run.json("ps")
    assert set(document) == {"jobs"}
    (job,) = document["jobs"]
    assert set(job) == JOB_KEYS
    assert (job["id"], job["name"], job["state"], job["width"]) == ("1", "first", "running", 2)
    assert [job["id"] for job in run.json("ps", "--all")["jobs"]] == ["2", "1"]
    assert run.json("ps", "--class", "bert")["jobs"] == []
    assert run.err == ""


def test_ps_shows_jobs_as_a_table(run: Boa, service: FakeService) -> None:
    assert "no active jobs" in run("ps")
    service.submit(name="[bold]x[/bold]")
    service.control.run("1", gpus=3)
    service.control.clock += 240
    said = run("ps")
    assert "[bold]x[/bold]" in said, "names are no markup"
    assert "3×T4" in said
    assert "4 min ago" in said
    assert "$3.20" in said
    service.control.end("1", "failed", exit_code=3)
    assert "failed (3)" in run("ps", "--all")


def test_ps_says_when_there_are_more(run: Boa, service: FakeService) -> None:
    for _ in range(3):
        service.submit()
    assert "older ones" in run("ps", "--limit", 2)
    assert "older ones" not in run("ps", "--limit", 3)


def test_ps_watches_only_on_a_terminal(run: Boa, service: FakeService) -> None:
    run("ps", "--watch", code=2)
    assert "--watch needs a terminal" in run.err


def test_ps_watches_until_it_is_interrupted(service: FakeService) -> None:
    service.submit(name="watched")
    terminal, inside = pty.openpty()
    script = "import sys, boa.cli; sys.exit(boa.cli.main())"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "ps", "--watch"],
        stdout=inside,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        preexec_fn=listen,
    )
    os.close(inside)
    with process, os.fdopen(terminal, "rb", buffering=0) as screen:
        seen = b""
        while b"watched" not in seen:
            seen += screen.read(4096)
        service.submit(name="another")
        while b"another" not in seen:
            seen += screen.read(4096)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_show_tells_all_about_a_job(run: Boa, service: FakeService) -> None:
    service.submit(run="python train.py --lr 0.1", epochs=90)
    record = service.control.run("1")
    service.control.put(
        replace(record, share=Share("A100", 8), reason="A100 are short", epoch=2, loss=2.5, step=40)
    )
    said = run("show", 1)
    for words in (
        "running: A100 are short",
        "2×T4 on node 1; the plan has 8×A100 for it",
        "epoch 3 of 90",
        "loss 2.5",
        "python train.py --lr 0.1",
        "submitted",
    ):
        assert words in said
    document = run.json("show", 1)
    assert set(document) == {"job", "events"}
    assert set(document["job"]) > JOB_KEYS
    assert document["events"][0]["kind"] == "submitted"


KIND = {
    "name": "T4",
    "gpus_per_node": 4,
    "tried": 2,
    "offered": 4,
    "curve": {"widths": [1, 2, 4], "speedup": [1.0, 1.9, 3.4], "rate": [10.0, 19.0, 34.0]},
    "samples": [
        {
            "width": 2,
            "across_nodes": False,
            "rate": 19.0,
            "seconds": 600.0,
            "reports": 60,
            "speedup": 1.9,
        }
    ],
}


@pytest.mark.parametrize("name", ["bert", "2026"])
def test_show_tells_what_was_learned_of_a_class(
    run: Boa, service: FakeService, tmp_path: Path, name: str
) -> None:
    """A class may be called as a job could be."""
    service.control.documents[name] = {
        "class": name,
        "prior": "perfect scaling until measured",
        "jobs": 3,
        "succeeded": 2,
        "gpus": {"min": 1, "max": 4, "types": []},
        "weight": 1.0,
        "arrivals_per_hour": 2.0,
        "rescale_s": 30.0,
        "epochs": 1,
        "work": [3600.0],
        "gpu_types": [KIND],
    }
    said = run("show", name)
    assert name in said
    assert "1.90 measured in 10.0 min" in said
    assert "[bold]" not in said
    picture = tmp_path / "class.svg"
    assert run.json("show", name, "--plot", picture) == service.control.documents[name]
    assert picture.stat().st_size > 5_000
    run("show", name, "--plot", tmp_path / "class.html", code=2)
    assert ".png, .svg, .pdf" in run.err


def test_show_draws_no_jobs_and_knows_no_class_that_never_was(
    run: Boa, service: FakeService, tmp_path: Path
) -> None:
    service.submit()
    run("show", 1, "--plot", tmp_path / "x.svg", code=2)
    assert "--plot draws classes" in run.err
    run("show", "bert", code=2)
    assert "class: got 'bert'" in run.err


@pytest.mark.parametrize("command", ["show", "logs", "stop"])
@pytest.mark.parametrize("job", ["9", "x/y", ""])
def test_an_unknown_job_is_one_clear_error(
    run: Boa, service: FakeService, command: str, job: str
) -> None:
    assert run(command, job, code=2) == ""
    assert run.err.count("\n") == 1
    assert f"{job!r}" in run.err


def test_jobs_are_stopped_and_of_several_all_are_tried(run: Boa, service: FakeService) -> None:
    for _ in range(3):
        service.submit()
    assert run("stop", 1) == "job 1: stopped\n"
    assert run("stop", 2, 99, 3, code=2) == "job 2: stopped\njob 3: stopped\n"
    assert "'99'" in run.err
    assert [job["state"] for job in run.json("stop", 1, 2)["jobs"]] == ["stopped", "stopped"]


def test_logs_are_printed_as_they_are(run: Boa, service: FakeService) -> None:
    service.submit()
    service.engine.write("1", "one\n[bold]two[/bold]\nthree")
    service.engine.write("1", "of rank 1\n", rank=1)
    assert run("logs", 1) == "one\n[bold]two[/bold]\nthree"
    assert run("logs", 1, "--tail", 1) == "three"
    assert run("logs", 1, "--rank", 1) == "of rank 1\n"
    assert run.json("logs", 1, "--tail", 1) == {"job": "1", "rank": 0, "text": "three"}
    run("logs", 1, "--rank", 7, code=2)
    assert "rank: got 7; expected one that has a log: 0, 1" in run.err
    run("logs", 1, "-f", "--json", code=2)
    run("logs", 1, "--tail", "-1", code=2)


# Submitting


def test_submit_prints_the_id_alone(run: Boa, service: FakeService, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("class: bert\nrun: python train.py\nworkdir: src\n")
    assert run("submit", path) == "1\n"
    assert run.err == ""
    assert service.control.active["1"].spec.workdir == str(tmp_path / "src")
    assert run.json("submit", path)["job"]["id"] == "2"


def test_submit_takes_a_command_with_its_class(
    run: Boa, service: FakeService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    limits = ["--min-gpus", 2, "--max-gpus", 8, "--gpus", "T4, A100", "--launcher", "single"]
    rest = ["--epochs", 3, "--env", "A=1", "--env", "B=x=y", "--retries", 0, "--grace-s", 0]
    command = ["python", "train.py", "--name", "theirs", "--wait"]
    run("submit", "--class", "bert", "--name", "ours", *limits, *rest, "--", *command)
    spec = service.control.active["1"].spec
    assert spec.run == tuple(command)
    assert (spec.job_class, spec.name, spec.workdir) == ("bert", "ours", str(tmp_path))
    assert (spec.gpus.min, spec.gpus.max, spec.gpus.types) == (2, 8, ("T4", "A100"))
    assert spec.env == {"A": "1", "B": "x=y"}
    assert (spec.epochs, spec.retries, spec.grace_s, spec.launcher) == (3, 0, 0.0, "single")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.yaml"], "no such file"),
        (["python", "train.py"], "a command needs --class"),
        (["job.yaml", "--name", "x"], "--name goes with --class"),
        (["job.yaml", "--min-gpus", "2"], "--gpus goes with --class"),
        (["--class", "a b", "--", "true"], "class: got 'a b'"),
        (["--class", "a", "--env", "X", "--", "true"], "--env: got 'X'; expected K=V"),
        (["--class", "a", "--env", "RANK=1", "--", "true"], "env.RANK"),
        (["--class", "a", "--launcher", "mpi", "--", "true"], "launcher: got 'mpi'"),
        (["--class", "a", "--max-gpus", "0", "--", "true"], "gpus.max: got 0"),
        (["--class", "a"], "Missing argument"),
    ],
)
def test_a_bad_job_is_refused_before_anything_is_sent(
    run: Boa, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.setenv("BOA_SERVER", "http://127.0.0.1:9")
    assert run("submit", *arguments, code=2) == ""
    assert words in run.err


def test_a_bad_field_of_a_job_file_names_the_file(run: Boa, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("class: bert\nrun: python train.py\nepoch: 3\n")
    run("submit", path, code=2)
    assert f"{path}: epoch: unknown field, perhaps epochs is meant" in run.err


def test_what_only_the_server_can_know_it_says(run: Boa, service: FakeService) -> None:
    service.control.busy = locked()
    run("submit", "--class", "a", "--", "true", code=1)
    assert run.err == f"error: {locked()}\n"


@pytest.mark.parametrize(
    ("state", "exit_code", "code"),
    [
        ("succeeded", 0, 0),
        ("failed", 3, 3),
        ("failed", -9, 137),
        ("failed", None, 1),
        ("failed", 0, 1),
        ("stopped", 0, 143),
    ],
)
def test_waiting_streams_the_log_and_ends_as_the_job_did(
    run: Boa, service: FakeService, state: Any, exit_code: int | None, code: int
) -> None:
    def live() -> None:
        for n in range(3):
            time.sleep(0.1)
            service.engine.write("1", f"epoch {n}\n", attempt=n + 1)
        service.control.end("1", state, exit_code)

    thread = threading.Timer(0.3, live)
    thread.start()
    said = run("submit", "--class", "a", "--wait", "--", "true", code=code)
    thread.join()
    assert said == "1\nepoch 0\nepoch 1\nepoch 2\n"


def test_waiting_with_json_prints_one_document_at_the_end(run: Boa, service: FakeService) -> None:
    def live() -> None:
        service.engine.write("1", "hello\n")
        service.control.end("1", "succeeded", 0)

    thread = threading.Timer(0.5, live)
    thread.start()
    document = json.loads(run("submit", "--class", "a", "--wait", "--json", "--", "true"))
    thread.join()
    assert document["job"]["state"] == "succeeded"
    assert run.err == "hello\n"


def test_mirrored_exit_codes_are_those_of_a_shell() -> None:
    job: Any = {"state": "failed", "exit_code": -15}
    assert mirrored(job) == 143


def listen() -> None:
    """For interrupts, which a shell's & would ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupt_while_waiting_leaves_the_job_running(service: FakeService) -> None:
    script = "import sys, boa.cli; sys.exit(boa.cli.main())"
    command = [sys.executable, "-c", script, "submit", "--class", "a", "--wait", "--", "true"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        service.engine.write("1", "hello\n")
        assert process.stdout.readline() == "hello\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err == "job 1 goes on: boa logs -f 1 shows it, boa stop 1 stops it\n"
    assert service.control.active["1"].state == "waiting"
