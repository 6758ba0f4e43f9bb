"""Processes that outlive their supervisor: a job never runs twice at once.

Whatever a worker's child has shed, it is found, and ended before the end of its run is told. What
cannot be ended is not replaced.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boa.engines import folders
from boa.engines.base import NotOver
from boa.engines.processes import cgroups, orphans, run_files, run_marks, run_supervisor
from boa.model.runs import RunKey
from local_runs import Runs, alive, until

PYTHON = f"""exec {sys.executable} -c '
import os, subprocess, time
options = dict(env={{}}, close_fds=True, start_new_session=True)  # all that can be shed
begun = subprocess.Popen(["sleep", "1000"], **options)
print(begun.pid, flush=True)
time.sleep(1000)
'"""
TWICE = f"""exec {sys.executable} -c '
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sh", ["sh", "-c", "echo $$; exec sleep 1000"], {{}})
    os._exit(0)
time.sleep(1000)
'"""
SHED = {
    "environment": "env -i sh -c 'echo $$; exec sleep 1000' & wait",
    "session": "setsid env -i sh -c 'echo $$; exec sleep 1000' & wait",
    "parent": TWICE,
    "files": PYTHON,
    "nothing": "sh -c 'echo $$; exec sleep 1000' & wait",
}


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    runs.close()


def _only_by(monkeypatch: pytest.MonkeyPatch, trace: str) -> None:
    """Leave the engine one way to find processes."""
    if trace == "cgroup" and not cgroups.place():
        pytest.skip("no control groups here")
    if trace != "cgroup":
        monkeypatch.setattr(cgroups, "place", lambda: "")
    if trace != "mark":
        monkeypatch.setattr(orphans, "_mark", lambda pid: 0)
    if trace != "lock":
        monkeypatch.setattr(orphans, "_is_locked", lambda folder: False)


def _begin(runs: Runs, text: str) -> tuple[RunKey, int]:
    key = runs.start("sh", "-c", text)
    runs.until_printed(key, "\n")
    runs.until_up(key)
    return key, int(runs.log(key))


# What can be ended


@pytest.mark.parametrize("shed", SHED)
def test_no_child_of_a_worker_is_left_when_the_end_of_its_run_is_told(
    runs: Runs, shed: str
) -> None:
    key, child = _begin(runs, SHED[shed])
    os.kill(runs.supervisor(key), signal.SIGKILL)
    assert runs.end(key).exit_code is None
    assert not alive(child), "at that moment, not a little later"


@pytest.mark.parametrize("shed", ["environment", "session", "parent", "files"])
@pytest.mark.parametrize("trace", ["mark", "lock", "cgroup"])
def test_each_trace_alone_finds_what_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trace: str, shed: str
) -> None:
    if (trace, shed) == ("lock", "files"):
        pytest.skip("who has closed it does not hold it")
    _only_by(monkeypatch, trace)
    runs = Runs(tmp_path)
    key, child = _begin(runs, SHED[shed])
    if trace == "cgroup":  # it is moved there a moment after all are up
        until(lambda: child in cgroups.members(runs.engine._runs[key].cgroup))
    os.kill(runs.supervisor(key), signal.SIGKILL)
    runs.end(key)
    assert not alive(child)
    runs.close()


def test_a_child_found_by_the_next_service_is_ended_as_well(runs: Runs) -> None:
    key, child = _begin(runs, SHED["session"])
    os.kill(runs.supervisor(key), signal.SIGKILL)
    runs.crash()
    runs.end(key)
    assert not alive(child)


def test_processes_of_a_run_whose_files_are_gone_are_ended_before_anything_starts(
    runs: Runs,
) -> None:
    key, child = _begin(runs, SHED["session"])
    other, child_of_other = _begin_other(runs)
    supervisor = runs.supervisor(key)
    for path in runs.folder(key).iterdir():
        path.unlink()
    runs.folder(key).rmdir()
    runs.crash()
    assert list(runs.engine.runs()) == [other]
    assert not alive(child)
    assert not alive(supervisor)
    assert alive(child_of_other)


def _begin_other(runs: Runs) -> tuple[RunKey, int]:
    key = runs.start("sh", "-c", SHED["session"], job="2")
    runs.until_printed(key, "\n")
    return key, int(runs.log(key))


def test_a_run_leaves_neither_a_lock_nor_a_control_group(runs: Runs) -> None:
    key = runs.start("true")
    group = runs.engine._runs[key].cgroup
    runs.end(key)
    assert not group or not os.path.exists(group)
    runs.engine.forget(key)
    assert [path.name for path in runs.folder(key).iterdir()] == ["0.log"]


def test_a_job_sees_nothing_of_it_but_a_lock_that_is_open(runs: Runs) -> None:
    key = runs.start("sh", "-c", "ls /proc/self/fd | tr '\\n' ' '; ulimit -n")
    assert runs.end(key).exit_code == 0
    assert str(run_marks.LOCK_FD) in runs.log(key).split()


# What cannot


@pytest.fixture
def immortal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """No process can be killed by the service, until this is called."""
    kill = os.kill
    monkeypatch.setattr("boa.engines.local_ends.PATIENCE_S", 0.0)
    monkeypatch.setattr("boa.engines.local_ends.AGAIN_S", 0.0)
    monkeypatch.setattr(cgroups, "kill", lambda path: None)

    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)

    def again() -> None:
        monkeypatch.setattr(os, "kill", kill)

    again.kill = kill  # type: ignore[attr-defined]
    return again


def test_a_run_is_not_over_while_a_process_of_its_cannot_be_ended(
    runs: Runs, immortal: Any
) -> None:
    key, child = _begin(runs, SHED["session"])
    immortal.kill(runs.supervisor(key), signal.SIGKILL)
    said = f"process {child} (sleep) of attempt 1 cannot be ended"
    until(lambda: any(event.hindrance == said for event in _polled(runs, key)))
    assert runs.told(key, ended=True) is None
    hindrances = [event for event in _polled(runs, key) if event.hindrance]
    assert len(hindrances) == 1, "told once"
    runs.crash()
    runs.poll()
    with pytest.raises(NotOver, match=r"attempt 1|not over"):
        runs.start("true", attempt=2)
    immortal()
    assert runs.end(key).exit_code is None
    assert not alive(child)
    again = runs.start("true", attempt=2)
    assert runs.end(again).exit_code == 0


def test_a_stray_that_cannot_be_ended_keeps_its_job_from_starting_and_no_other(
    runs: Runs, immortal: Any
) -> None:
    key, child = _begin(runs, SHED["files"])
    immortal.kill(runs.supervisor(key), signal.SIGKILL)
    for path in runs.folder(key).iterdir():
        path.unlink()
    runs.folder(key).rmdir()
    runs.crash()
    with pytest.raises(NotOver, match=rf"process {child} \(sleep\) of an earlier attempt"):
        runs.start("true", attempt=2)
    assert runs.end(runs.start("true", job="11")).exit_code == 0
    immortal()
    again = runs.start("true", attempt=2)
    assert not alive(child)
    assert runs.end(again).exit_code == 0


def test_processes_of_a_folder_that_lay_here_before_are_none_of_ours(runs: Runs) -> None:
    """A disk gives a new folder the number of one that was removed."""
    key, child = _begin(runs, SHED["files"])
    supervisor, there = runs.supervisor(key), runs.root / "runs"
    for path in (there / key.job, there / ".runs", there / ".born"):
        folders.remove(str(path))
    runs.crash()
    assert alive(child)
    for pid in (supervisor, child):
        os.kill(pid, signal.SIGKILL)


def test_who_holds_the_lock_unseen_keeps_its_run_from_being_over(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of another user, or in another container."""
    monkeypatch.setattr("boa.engines.local_ends.PATIENCE_S", 0.0)
    monkeypatch.setattr("boa.engines.local_ends.AGAIN_S", 0.0)
    key = runs.start("true")
    until(lambda: (runs.folder(key) / run_files.OUTCOME).exists())
    command = ["flock", "-x", str(runs.folder(key) / run_marks.LOCK), "cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write(b"\n")
        holder.stdin.flush()
        holder.stdout.read(1)  # it has it
        monkeypatch.setattr(orphans, "_holders", lambda runs: ())
        said = "a process that cannot be seen from here of attempt 1 cannot be ended"
        until(lambda: any(event.hindrance == said for event in _polled(runs, key)))
        assert runs.told(key, ended=True) is None
    assert runs.end(key).exit_code == 0


def _polled(runs: Runs, key: RunKey) -> list[Any]:
    runs.poll()
    return runs.events.get(key, [])


WEAK = """
import os, sys
sys.path.append(sys.argv[1])
import run_supervisor
run_supervisor.LEFTOVERS_S = 0.0
kill, gate = os.kill, sys.argv[3]
os.kill = lambda pid, number: number == 9 and not os.path.exists(gate) or kill(pid, number)
run_supervisor.main(sys.argv[2])
"""


def test_a_supervisor_waits_for_what_it_cannot_end_and_the_engine_says_so(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    gate = runs.root / "gate"
    with monkeypatch.context() as patch:
        patch.setattr(runs.engine, "_supervise", lambda run: None)
        key = runs.start("sh", "-c", "setsid sleep 1000 & echo $!; exit 6")
    program = [sys.executable, "-I", "-S", "-c", WEAK, os.path.dirname(run_supervisor.__file__)]
    supervisor = subprocess.Popen([*program, str(runs.folder(key)), str(gate)])
    request.addfinalizer(supervisor.kill)
    until(lambda: bool(list(runs.folder(key).glob("left.*"))))
    runs.until_printed(key, "\n")
    runs.crash()
    child = int(runs.log(key))
    said = f"process {child} (sleep) of attempt 1 cannot be ended"
    until(lambda: any(event.hindrance == said for event in _polled(runs, key)))
    assert runs.told(key, ended=True) is None
    gate.touch()
    assert runs.end(key).exit_code == 6
    assert not alive(child)
    supervisor.wait()


def test_looking_through_every_process_takes_milliseconds() -> None:
    def seconds() -> float:
        began = time.process_time()
        orphans.kill([orphans.Traces(mark=1, environ=("no", "such", "run"), folder="/nowhere")])
        return time.process_time() - began

    each = min(seconds() for _ in range(5)) / len(orphans._pids())
    assert each < 0.001
