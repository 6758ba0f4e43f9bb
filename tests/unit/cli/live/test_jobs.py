"""Jobs from the command line: listed, shown, stopped, and what they printed."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from boa.model.cluster import Share
from fakes import FakeService, locked
from integration.runner import Boa
from learned import learned, learned_on
from unit.server.routes.test_jobs import CONTRACT as JOB_KEYS

TIMES = ("on_gpus_s", "waiting_s", "since_submission_s")


def test_ps_json_has_exactly_the_keys_of_the_contract(run: Boa, service: FakeService) -> None:
    service.submit(name="first")
    service.control.run("1")
    service.submit()
    service.control.end("2", "stopped", exit_code=0)
    document = run.json("ps")
    assert set(document) == {"jobs"}
    (job,) = document["jobs"]
    assert set(job) == JOB_KEYS | {"owner", "team", "priority", *TIMES}
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
    assert "1 h 4 min" in said, "on GPUs"
    assert "$3.20" in said
    service.control.end("1", "failed", exit_code=3)
    assert "failed (3)" in run("ps", "--all")


def test_ps_shows_ids_states_and_costs_on_any_terminal(
    run: Boa, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.submit(name="n" * 200)
    service.submit("c" * 200)
    service.control.run("1", gpus=3)
    for width in ("80", "60", "50"):
        monkeypatch.setenv("COLUMNS", width)
        head, second, first = run("ps", "--all").splitlines()
        assert {"job", "name", "class", "state", "cost"} <= set(head.split())
        assert (first.split()[0], first.split()[-1]) == ("1", "$3.00")
        assert (second.split()[0], second.split()[-1]) == ("2", "$0.00")
        assert "running" in first
        assert "waiting" in second
        assert "…" in first


def test_a_job_has_three_times_of_which_two_add_up_to_the_third(
    run: Boa, service: FakeService
) -> None:
    service.submit()
    now = service.control.clock
    record = service.control.run("1")
    service.control.put(replace(record, submitted_at=now - 7260, started_at=now - 3600))
    head, row = run("ps").splitlines()
    assert re.search(r"on GPUs +waiting +since submission", head)
    assert "submitted" not in head, "nothing has ended"
    assert "1 h 1 h 1 min 2 h 1 min" in " ".join(row.split())
    assert "on GPUs 1 h, waiting 1 h 1 min, since submission 2 h 1 min\n" in run("show", 1)
    found = run.json("show", 1)["job"]
    assert found["on_gpus_s"] + found["waiting_s"] == found["since_submission_s"] == 7260.0


def test_pauses_and_back_off_are_no_time_on_gpus(run: Boa, service: FakeService) -> None:
    service.submit()
    now = service.control.clock
    ended = service.control.end("1", "succeeded", exit_code=0)
    ended = replace(ended, submitted_at=now - 100, started_at=now - 90, ended_at=now - 81)
    service.control.put(replace(ended, run=None, ran_s=4.0))
    said = run("show", 1)
    assert "on GPUs 4 s, waiting 15 s, since submission 19 s\n" in said
    assert "ran" not in said.partition("when   ")[2].partition("starts")[0].split()
    assert "1.7 min ago" in run("ps", "--all")


def test_ps_says_whose_jobs_are_where_several_people_submit(run: Boa, service: FakeService) -> None:
    service.submit()
    service.control.put(replace(service.control.run("1"), owner="mia"))
    assert "owner" not in run("ps").splitlines()[0]
    service.submit()
    service.control.put(replace(service.control.run("2"), owner="tom"))
    head, second, first = run("ps").splitlines()
    assert "owner" in head.split()
    assert " tom " in second
    assert " mia " in first


def test_ps_says_what_jobs_wait_for(run: Boa, service: FakeService) -> None:
    for _ in range(24):
        service.submit()
    for job in ("1", "2", "24"):
        record = service.control.active[job]
        why = "waits for 4×T4: [no more]" if job != "24" else "exit code 3; next try in 5 s"
        service.control.put(replace(record, reason=why))
    service.control.run("3")
    said = run("ps")
    assert "exit code 3; next try in 5 s (job 24)" in said
    assert "… and 3 more wait (boa show JOB says what for)" in said
    for number in range(4, 24):
        service.control.end(str(number), "stopped", exit_code=0)
    assert "waits for 4×T4: [no more] (jobs 1, 2)" in run("ps")
    service.control.end("24", "stopped", exit_code=0)
    service.control.run("1")
    service.control.run("2")
    assert "waits" not in run("ps"), "nobody waits any more"


def test_ps_says_when_there_are_more(run: Boa, service: FakeService) -> None:
    for _ in range(3):
        service.submit()
    assert "older ones" in run("ps", "--limit", 2)
    assert "older ones" not in run("ps", "--limit", 3)


def test_ps_watches_only_on_a_terminal(run: Boa, service: FakeService) -> None:
    run("ps", "--watch", code=2)
    assert "--watch needs a terminal" in run.err


def listen() -> None:
    """For interrupts, which a shell's & would ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
        assert process.wait(timeout=120) == 130
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


def test_show_tells_what_a_job_says_of_its_batch_and_of_its_last_start(
    run: Boa, service: FakeService
) -> None:
    service.submit()
    record = service.control.run("1")
    assert record.run is not None
    for words in ("training", "metrics", "last start"):
        assert words not in run("show", 1)
    metrics = {"batch_size": 1024.0, "accumulation": 2.0, "noise_scale": 3210.5, "gain": 1.5}
    metrics |= {"lr_factor": 2.0, "accuracy": 0.91234, "[bold]": 1.0}
    took = {"total": 2.5, "start": 1.0, "first_step": 0.25, "other": 1.25}
    seen = replace(record, metrics=metrics, run=replace(record.run, rescale=took))
    service.control.put(seen)
    said = run("show", 1)
    for words in (
        "batch size 1,024 in 3 passes, noise scale 3,210 samples, gain 1.50 a step",
        "learning rate × 2.00",
        "[bold] 1, accuracy 0.9123",
        "last start  took 2.5 s until it trained: start 1 s, first step 0.25 s, other 1.3 s",
    ):
        assert words in said
    document = run.json("show", 1)["job"]
    assert (document["metrics"], document["rescale_s"]) == (metrics, took)


def test_show_says_of_which_kind_its_starts_were(run: Boa, service: FakeService) -> None:
    service.submit(retries=5)
    record = service.control.run("1")
    assert "1: 0 rescalings, 0 restarts after failures (at most 5 " in run("show", 1)
    service.control.put(replace(record, attempts=5, rescalings=3, restarts=1))
    assert "5: 3 rescalings, 1 restart after failures (at most 5 " in run("show", 1)
    service.submit(retries=1)
    assert "(at most 1 failure of its own)" in run("show", 2)
    document = run.json("show", 1)["job"]
    assert (document["attempts"], document["rescalings"], document["restarts"]) == (5, 3, 1)


def test_show_says_once_how_a_job_ended_and_nothing_of_plans_for_it(
    run: Boa, service: FakeService
) -> None:
    service.submit()
    record = service.control.run("1")
    service.control.put(replace(record, share=Share("A100", 8), exit_code=9))
    assert "exit code" not in run("show", 1), "of an earlier run"
    service.control.put(
        replace(service.control.end("1", "failed", exit_code=3), reason="exit code 3")
    )
    said = run("show", 1)
    assert said.count("exit code 3") == 1
    assert "the plan has" not in said
    service.submit()
    service.control.put(replace(service.control.end("2", "failed", exit_code=3), reason="lost"))
    assert "failed: lost, exit code 3" in run("show", 2)


@pytest.mark.parametrize(
    ("offered", "words"),
    [
        (2, "reports nothing so far: it stays at its least, 2 GPUs"),
        (8, "reports nothing so far"),
    ],
)
def test_show_says_that_a_job_which_reports_nothing_is_not_given_more(
    run: Boa, service: FakeService, offered: int, words: str
) -> None:
    service.submit(gpus={"min": 2})
    assert "epoch 1 of 1" in run("show", 1), "before it starts there is nothing to report"
    record = service.control.run("1", gpus=2)
    assert "reports nothing so far\n" in run("show", 1), "of a class that nobody knows"
    kinds = [learned_on("T4", offered=0), learned_on("A100", offered=offered)]
    service.control.documents["resnet18"] = learned("resnet18", kinds)
    assert f"{words}\n" in run("show", 1)
    service.control.put(replace(record, step=3))
    assert "reports nothing" not in run("show", 1)
    service.control.put(replace(record, step=None))
    service.control.end("1", "succeeded", exit_code=0)
    assert "it reported nothing" in run("show", 1)


def test_show_counts_no_epochs_that_its_script_goes_beyond(run: Boa, service: FakeService) -> None:
    service.submit()
    record = service.control.run("1")
    service.control.put(replace(record, epoch=2, progress=29.0, step=149))
    assert "epoch 3, 29 units in it, step 149" in run("show", 1)
    ended = service.control.end("1", "succeeded", exit_code=0)
    service.control.put(replace(ended, epoch=9, progress=60.0))
    assert "epoch 10 of 10, 60 units in it" in run("show", 1)


@pytest.mark.parametrize("name", ["bert", "2026"])
def test_show_tells_what_was_learned_of_a_class(
    run: Boa, service: FakeService, tmp_path: Path, name: str
) -> None:
    """A class may be called as a job could be."""
    service.control.documents[name] = learned(name, [learned_on("T4")])
    said = run("show", name)
    assert name in said
    assert "1.90 measured in 10 min" in said
    assert "[bold]" not in said
    picture = tmp_path / "class.svg"
    assert run.json("show", name, "--plot", picture) == service.control.documents[name]
    assert picture.stat().st_size > 5_000
    for suffix in ("html", "HTML", "jpg"):
        run("show", name, "--plot", tmp_path / f"class.{suffix}", code=2)
        assert run.err.endswith("expected a file ending in .png, .svg, .pdf\n")


def test_show_draws_no_jobs(run: Boa, service: FakeService, tmp_path: Path) -> None:
    service.submit()
    run("show", 1, "--plot", tmp_path / "x.svg", code=2)
    assert "--plot draws classes" in run.err


@pytest.mark.parametrize("what", ["foo", "99", "a b"])
def test_what_is_neither_a_job_nor_a_class_is_told_with_what_there_is(
    run: Boa, service: FakeService, what: str
) -> None:
    named = {0: "; there are none)", 2: ": c0, c1)", 11: "; there are 11)"}
    for count, classes in named.items():
        service.control.documents = {f"c{n}": learned(f"c{n}") for n in range(count)}
        run("show", what, code=2)
        assert f"'{what}' is neither a job nor a class" in run.err
        assert "boa ps --all" in run.err
        assert f"boa show CLASS{classes}" in run.err


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
    assert run("stop", "abc", 3, code=2) == "job 3: stopped\n"
    said = json.loads(run("stop", 1, 99, "abc", 2, "--json", code=2))
    assert [job["id"] for job in said["jobs"]] == ["1", "2"]
    assert [line.split(";")[0] for line in run.err.splitlines()] == [
        "error: job: got '99'",
        "error: job: got 'abc'",
    ]
    assert [job["state"] for job in run.json("stop", 1, 2)["jobs"]] == ["stopped", "stopped"]


def test_of_several_errors_the_worst_is_the_exit_code(run: Boa, service: FakeService) -> None:
    service.submit()
    service.control.busy = locked()
    assert run("stop", 1, code=1) == ""
    assert run("stop", "abc", 1, code=2) == ""
    assert run.err.count("error: ") == 2


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
