"""Real processes under the local engine: what they see, how they stop, how they end."""

import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from boa.engines import launching
from boa.engines.passing import passed
from boa.model.runs import Launch, RunKey
from local_runs import Runs, alive, until

SERVICE = {"BOA_REPORT_URL": "http://127.0.0.1:1/report", "BOA_REPORT_TOKEN": "secret"}


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    runs.close()


def environment(text: str) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in text.rstrip("\0").split("\0"))


def start_in_vain(runs: Runs, launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is asked for, but there are no more processes for its supervisor."""

    def none_left(*_: object, **__: object) -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_spawnp", none_left)
        with pytest.raises(BlockingIOError):
            runs.engine.start(launch)


# What they see


def test_a_worker_sees_the_variables_promised_and_no_others(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOA_TOKEN", "the service's own")
    monkeypatch.setenv("RANK", "another job's")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the cloud's")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    key = runs.start(
        "env", "-0", env={"MINE": "1"}, epochs=7, slots=((0, 1),), env_of_service=SERVICE
    )
    assert runs.end(key).exit_code == 0
    seen = environment(runs.log(key, rank=1))
    assert seen.pop("MASTER_PORT").isdigit()
    assert seen == {
        **passed(os.environ),
        **SERVICE,
        "BOA_REPORT_TOKEN": "******",  # masked in what it prints
        "MINE": "1",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "BOA_JOB_ID": "1",
        "BOA_CLASS": "test",
        "BOA_WIDTH": "2",
        "BOA_GPU_TYPE": "T4",
        "BOA_ATTEMPT": "1",
        "BOA_EPOCHS": "7",
        "BOA_GRACE_S": "30",
        "BOA_CHECKPOINT_DIR": str(runs.root / "checkpoints" / "1"),
        "BOA_DONE": str(runs.root / "checkpoints" / "1" / ".boa-done-1"),
        "BOA_KEEPER": str(runs.root / "runs" / "1" / "keeper"),
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
    }


def test_workers_run_in_the_folder_asked_for_or_in_one_of_the_jobs_own(
    runs: Runs, tmp_path: Path
) -> None:
    own, asked = runs.start("pwd"), runs.start("pwd", job="2", workdir=str(tmp_path))
    runs.end(own), runs.end(asked)
    assert runs.log(own).strip() == str(runs.root / "runs" / "1" / "work")
    assert runs.log(asked).strip() == str(tmp_path)


def test_torchrun_is_given_the_command_and_starts_the_workers_itself(
    runs: Runs, tmp_path: Path
) -> None:
    stand_in = tmp_path / "torchrun"
    stand_in.write_text('#!/bin/sh\necho "$@" "RANK=$RANK"\n')
    stand_in.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    slots = ((0, 1), (0,))
    key = runs.start("python", "t.py", launcher="torchrun", env={"PATH": path}, slots=slots)
    assert runs.end(key).exit_code == 0
    assert "--nproc-per-node=3" in runs.log(key)
    assert runs.log(key).strip().endswith("--no-python -- python t.py RANK=")


def test_torchrun_that_was_asked_to_stop_has_stopped_though_it_says_1(
    runs: Runs, tmp_path: Path
) -> None:
    stand_in = tmp_path / "torchrun"
    stand_in.write_text('#!/bin/sh\ntrap "exit 1" TERM; echo ready; while :; do sleep 0.02; done\n')
    stand_in.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    key = runs.start("python", "t.py", launcher="torchrun", env={"PATH": path})
    runs.until_printed(key, "ready")
    runs.engine.stop(key, 120.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped when asked")


def test_what_python_prints_can_be_read_while_it_runs(runs: Runs) -> None:
    key = runs.start(sys.executable, "-c", "print('here'); import time; time.sleep(60)")
    runs.until_printed(key, "here")
    runs.until_up(key)
    assert runs.told(key, ended=True) is None


# How they end


def test_what_cannot_be_started_says_why(runs: Runs, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    nowhere = str(tmp_path / "nowhere")
    ends = {
        127: runs.start("no-such-program", job="1", slots=((0, 1),)),
        126: runs.start(str(plain), job="2"),
    }
    elsewhere = runs.end(runs.start("true", job="3", workdir=nowhere))
    for code, key in ends.items():
        assert runs.end(key).exit_code == code
        assert runs.told(key, ended=False) is None
    assert runs.end(ends[127]).reason == "cannot start no-such-program: No such file or directory"
    assert runs.end(ends[126]).reason == f"cannot start {plain}: Permission denied"
    assert (elsewhere.exit_code, elsewhere.reason) == (
        126,
        f"cannot start {nowhere}: No such file or directory",
    )
    assert "No such file" in runs.log(ends[127])


def test_the_first_worker_that_fails_gives_the_exit_code_and_the_others_are_told(
    runs: Runs,
) -> None:
    key = runs.start(
        "sh",
        "-c",
        'cd "$BOA_CHECKPOINT_DIR"; '
        "if [ $RANK = 1 ]; then until [ -e 0 ] && [ -e 2 ]; do sleep 0.02; done; exit 3; fi; "
        'trap "echo told; exit 0" TERM; touch $RANK; while :; do sleep 0.02; done',
        slots=((0, 1, 2),),
    )
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (3, False, "worker 1: exit code 3")
    assert runs.log(key, 0) == runs.log(key, 2) == "told\n"


def test_a_worker_that_dies_of_a_signal_is_named_with_it(runs: Runs) -> None:
    end = runs.end(runs.start("sh", "-c", "kill -SEGV $$"))
    assert (end.exit_code, end.reason) == (-11, "killed by SIGSEGV")


def test_a_run_ends_when_all_its_workers_are_done(runs: Runs) -> None:
    key = runs.start("sh", "-c", "sleep 0.$RANK", slots=((0, 1, 2, 3),))
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (0, False, "")
    assert [e.ended for e in runs.events[key][:2]] == [False, True]


@pytest.mark.parametrize("detach", ["", "setsid"])
def test_nothing_that_a_worker_began_outlives_its_run(runs: Runs, detach: str) -> None:
    key = runs.start("sh", "-c", f"{detach} sleep 1000 & echo $!; sleep 0.1")
    assert runs.end(key).exit_code == 0
    until(lambda: not alive(int(runs.log(key))))


# How they stop


def test_a_stop_reaches_every_worker_and_exit_0_is_then_no_end_of_the_job(runs: Runs) -> None:
    key = runs.start(
        "sh",
        "-c",
        'trap "echo saved; exit 0" TERM; echo ready; while :; do sleep 0.02; done',
        slots=((0, 1),),
    )
    for rank in (0, 1):
        runs.until_printed(key, "ready", rank)
    for _ in range(3):  # told again and again, it is still one stop
        runs.engine.stop(key, 120.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped when asked")
    assert runs.log(key, 0) == runs.log(key, 1) == "ready\nsaved\n"


def test_a_job_that_ignores_sigterm_is_killed_after_its_grace(runs: Runs) -> None:
    key = runs.start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.02; done")
    runs.until_printed(key, "ready")
    asked = time.monotonic()
    runs.engine.stop(key, 0.5)
    end = runs.end(key)
    assert 0.5 <= time.monotonic() - asked < 30, "what a job gets that says nothing"
    assert (end.exit_code, end.stopped) == (-9, True)
    assert end.reason == "killed: still running 0.5 s after SIGTERM"


def test_a_second_stop_may_shorten_the_grace_but_never_lengthens_it(runs: Runs) -> None:
    key = runs.start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.02; done")
    runs.until_printed(key, "ready")
    for grace_s in (600.0, 0.1, 600.0):
        runs.engine.stop(key, grace_s)
    assert runs.end(key).exit_code == -9


def test_a_command_behind_a_shell_gets_the_whole_grace_to_save(runs: Runs) -> None:
    saving = (
        "import os, signal, sys, time\n"  # by hand: it may be printing when the signal comes
        "def save(*_): time.sleep(0.4); os.write(1, b'saved\\n'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save); print('ready', flush=True); time.sleep(60)\n"
    )
    key = runs.start("sh", "-c", f'true && {sys.executable} -I -S -c "{saving}"; true')
    runs.until_printed(key, "ready")
    runs.engine.stop(key, 120.0)
    assert runs.end(key).stopped
    assert runs.log(key) == "ready\nsaved\n"


def test_a_stop_that_comes_before_the_supervisor_keeps_the_run_from_beginning(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = runs.launch("sh", "-c", "echo began")
    start_in_vain(runs, launch, monkeypatch)
    assert list(runs.engine.runs()) == [launch.key]
    runs.engine.stop(launch.key, 5.0)
    end = runs.end(launch.key)
    assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped before it began")
    assert runs.log(launch.key) == ""


def test_a_stop_of_a_run_that_was_never_asked_for_keeps_it_from_ever_beginning(runs: Runs) -> None:
    key = RunKey("1", 1)
    runs.engine.stop(key, 5.0)
    runs.start("sh", "-c", "echo began")
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (0, True)
    assert runs.log(key) == ""


def test_a_start_that_failed_for_want_of_processes_can_be_asked_for_again(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = runs.launch("echo", "began")
    start_in_vain(runs, launch, monkeypatch)
    runs.engine.start(launch)
    assert runs.end(launch.key).exit_code == 0
    assert runs.log(launch.key) == "began\n"


def test_where_there_are_gpus_workers_get_those_of_their_slots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "has_gpus", lambda: True)
    runs = Runs(tmp_path)
    key = runs.start("sh", "-c", "echo $CUDA_VISIBLE_DEVICES $LOCAL_RANK", slots=((2, 5),))
    assert runs.end(key).exit_code == 0
    assert [runs.log(key, rank).strip() for rank in (0, 1)] == ["2,5 0", "2,5 1"]
    runs.close()
