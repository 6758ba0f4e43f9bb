"""Jobs from the command line: submitted, refused, waited for."""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from boa.cli.live.submit import mirrored
from fakes import FakeService, locked
from integration.runner import Boa
from unit.cli.live.test_jobs import listen


def test_submit_prints_the_id_alone(run: Boa, service: FakeService, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("class: bert\nrun: python train.py\nworkdir: src\n")
    assert run("submit", path) == "1\n"
    assert run.err == "job 1: boa show 1, boa logs -f 1\n", "and no page where none is built"
    assert service.control.active["1"].spec.workdir == str(tmp_path / "src")
    document = run.json("submit", path)
    assert (document["job"]["id"], run.err) == ("2", "")
    assert set(document) == {"job"}


def test_submit_says_where_to_look_with_the_page_where_there_is_one(
    run: Boa, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "index.html").write_text("<!doctype html>")
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    with FakeService(tmp_path).serving() as url:
        monkeypatch.setenv("BOA_SERVER", url)
        command = ["submit", "--class", "a", "--", "true"]
        assert run(*command) == "1\n"
        assert run.err == f"job 1: boa show 1, boa logs -f 1, {url}/#/jobs/1\n"
        assert json.loads(run(*command[:3], "--json", "--", "true"))["url"] == f"{url}/#/jobs/2"
        for name in ("a.yaml", "b.yaml"):
            (tmp_path / name).write_text("{class: a, run: b}")
        assert run("submit", tmp_path / "a.yaml", tmp_path / "b.yaml") == "3\n4\n"
        assert run.err == f"2 jobs: boa ps, boa show 3, {url}/#/jobs\n"


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
        (["--", "true"], "'true' is no file; and a command needs --class NAME"),
        (["--", "/dev/null"], "a command needs --class NAME"),
        (["--", "x" * 5000], "a command needs --class NAME"),
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


@pytest.mark.parametrize("suffix", ["yaml", "yml", "json"])
def test_a_job_file_is_not_run_as_a_command(
    run: Boa, service: FakeService, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"job.{suffix}"
    path.write_text("{class: a, run: b}")
    run("submit", path, "--class", "x", code=2)
    assert f"{path} is a job file" in run.err
    assert f"boa submit {path}" in run.err
    run("submit", path, path, "--class", "x", code=2)
    assert f"{path} is a job file" in run.err
    assert run("submit", "--class", "x", "--", "cat", path) == "1\n"
    assert run("submit", "--class", "x", "--", f"nowhere.{suffix}") == "2\n"


def test_in_a_folder_that_was_deleted_only_absolute_paths_will_do(
    run: Boa, service: FakeService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for more in ([], ["--workdir", "here"]):
        run("submit", "--class", "a", *more, "--", "true", code=2)
        assert run.err.startswith("error: the present folder: was deleted")
        assert "--workdir" in run.err
    run("submit", "--class", "a", "--workdir", tmp_path, "--", "true")
    assert service.control.active["1"].spec.workdir == str(tmp_path)
    run("serve", "--data", "here", code=2)
    assert "data_dir here: is relative to the present folder" in run.err


def test_a_bad_field_of_a_job_file_names_the_file(run: Boa, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("class: bert\nrun: python train.py\nepoch: 3\n")
    run("submit", path, code=2)
    assert f"{path}: epoch: unknown field, perhaps epochs is meant" in run.err


def test_what_only_the_server_can_know_it_says(run: Boa, service: FakeService) -> None:
    service.control.busy = locked()
    run("submit", "--class", "a", "--", "true", code=1)
    assert run.err == f"error: {locked()}\n"


def submitted(service: FakeService) -> None:
    """Wait until job 1 is there."""
    while "1" not in service.control.active:
        time.sleep(0.01)


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
        submitted(service)
        for n in range(3):
            time.sleep(0.1)
            service.engine.write("1", f"epoch {n}\n", attempt=n + 1)
        service.control.end("1", state, exit_code)

    thread = threading.Thread(target=live)
    thread.start()
    said = run("submit", "--class", "a", "--wait", "--", "true", code=code)
    thread.join()
    assert said == "1\nepoch 0\nepoch 1\nepoch 2\n"


def test_waiting_with_json_prints_one_document_at_the_end(run: Boa, service: FakeService) -> None:
    def live() -> None:
        submitted(service)
        service.engine.write("1", "hello\n")
        service.control.end("1", "succeeded", 0)

    thread = threading.Thread(target=live)
    thread.start()
    document = json.loads(run("submit", "--class", "a", "--wait", "--json", "--", "true"))
    thread.join()
    assert document["job"]["state"] == "succeeded"
    assert run.err == "hello\n"


def test_mirrored_exit_codes_are_those_of_a_shell() -> None:
    job: Any = {"state": "failed", "exit_code": -15}
    assert mirrored(job) == 143


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
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err == "job 1 goes on: boa logs -f 1 shows it, boa stop 1 stops it\n"
    assert service.control.active["1"].state == "waiting"


def test_several_job_files_are_submitted_at_once_an_id_a_line(
    run: Boa, service: FakeService, tmp_path: Path
) -> None:
    files = [tmp_path / f"{name}.yaml" for name in "ab"]
    for file in files:
        file.write_text(f"class: {file.stem}\nrun: 'true'\n")
    assert run("submit", *files).split() == ["1", "2"]
    assert [job.job_class for job in service.control.active.values()] == ["a", "b"]
    run("submit", *files, "--wait", code=2)
    files[1].write_text("class: b\n")
    run("submit", *files, code=2)
    assert f"{files[1]}: run" in run.err
    assert len(service.control.active) == 2, "not even the one that is right"
