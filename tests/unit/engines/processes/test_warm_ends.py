"""Who ends with whom, and who hears of it: service, warm parents, supervisors."""

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from boa.engines import local
from boa.engines.local_run import NOBODY
from boa.engines.processes import orphans, run_supervisor
from local_runs import alive, until
from warm_runs import WARM, Scripts

WAITS = f"{WARM}print('warm' if warm else 'cold')\nimport signal; signal.pause()\n"
SERVICE = """
    import sys, time
    from pathlib import Path
    from warm_runs import Scripts
    runs = Scripts(Path(sys.argv[1]))
    runs.module("import os, time; open(os.environ['HERE'], 'w').close(); time.sleep(1e6)")
    runs.run("print(1)", env={"HERE": sys.argv[2]})
    print(*runs.parents, flush=True)
    time.sleep(1e6)
"""


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Scripts]:
    runs = Scripts(tmp_path)
    yield runs
    runs.close()


@pytest.fixture
def as_process_1() -> Iterator[None]:
    """Orphans are handed to this process, as to the first one of a container."""
    prctl = ctypes.CDLL(None).prctl
    prctl(run_supervisor.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    prctl(run_supervisor.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def test_a_parent_that_hangs_in_an_import_ends_with_a_killed_service(tmp_path: Path) -> None:
    here = tmp_path / "here"
    command = [sys.executable, "-c", textwrap.dedent(SERVICE), str(tmp_path), str(here)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as service:
        assert service.stdout is not None
        parent = int(service.stdout.readline())
        until(here.exists)
        assert alive(parent)
        service.kill()
    until(lambda: not alive(parent))


def test_ends_of_warm_runs_are_told_by_their_parent(
    runs: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "CHECKED_AT_ONCE", 0)
    keys = [runs.run("print(1)", attempt=n) for n in (1, 2, 3)]
    assert [runs.end(key).exit_code for key in keys] == [0, 0, 0]
    killed = runs.run(WAITS, attempt=4)
    runs.until_printed(killed, "warm")
    runs.until_up(killed)
    os.kill(runs.supervisor(killed), signal.SIGKILL)
    assert runs.end(killed).reason.startswith("lost: its supervisor was killed")


def test_ends_of_warm_runs_are_seen_also_if_their_parent_hangs(runs: Scripts) -> None:
    key = runs.run(WAITS)
    runs.until_printed(key, "warm")
    os.kill(runs.parents[0], signal.SIGSTOP)
    runs.engine.stop(key, 120.0)
    assert runs.end(key).exit_code == -signal.SIGTERM


@pytest.mark.usefixtures("as_process_1")
def test_supervisors_handed_to_the_service_leave_no_zombie(runs: Scripts) -> None:
    keys = [runs.run(WAITS, attempt=n) for n in (1, 2)]
    for key in keys:
        runs.until_printed(key, "warm")
        runs.until_up(key)
    pids = [runs.supervisor(key) for key in keys]
    os.kill(runs.parents[0], signal.SIGKILL)
    until(runs.parentless)
    for key in keys:
        runs.engine.stop(key, 120.0)
        assert runs.end(key).exit_code == -signal.SIGTERM
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_a_child_that_has_the_number_of_a_dead_supervisor_is_left_to_who_waits_for_it() -> None:
    child = subprocess.Popen(["sleep", "1000"])
    pid, ticks, boot = run_supervisor.identity(child.pid).split(".")
    child.send_signal(signal.SIGKILL)
    until(lambda: not alive(child.pid))
    for other in (
        f"{pid}.{int(ticks) - 1}.{boot}",
        f"{pid}.{ticks}.another",
        NOBODY,
        pid,
    ):
        orphans.bury(other)
    assert os.path.exists(f"/proc/{pid}")
    orphans.bury(f"{pid}.{ticks}.{boot}")
    assert not os.path.exists(f"/proc/{pid}")
    child.wait()


def test_a_script_that_leaves_objects_which_fail_when_asked_still_ends_well(runs: Scripts) -> None:
    key = runs.run(
        f"""{WARM}
import weakref

class Thing: ...

class Sulking:
    @property
    def __class__(self): raise RuntimeError("not now")

kept = [weakref.proxy(Thing()), Sulking()]
print("warm" if warm else "cold")
"""
    )
    assert runs.end(key).exit_code == 0
    assert runs.log(key) == "warm\n"
