"""Services, supervisors and machines that go down: nothing is lost, forgotten or started twice."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from boa.engines.local import LocalEngine
from boa.engines.processes import run_files, run_supervisor
from boa.model.runs import RunKey
from local_runs import Runs, alive, start_eight, until

WAITING = 'trap "exit 0" TERM; echo ready; while :; do sleep 0.02; done'


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    runs.close()


# The service


def test_another_engine_finds_runs_that_go_on_and_ends_that_came_meanwhile(runs: Runs) -> None:
    on = runs.start("sh", "-c", WAITING, job="1")
    over = runs.start("sh", "-c", "exit 5", job="2")
    runs.until_printed(on, "ready")
    until(lambda: (runs.folder(over) / run_files.OUTCOME).exists())
    runs.crash()
    assert set(runs.engine.runs()) == {on, over}
    runs.until_up(on)
    assert runs.end(over).exit_code == 5
    runs.engine.stop(on, 20.0)
    end = runs.end(on)
    assert (end.exit_code, end.stopped) == (0, True)


def test_an_end_is_told_until_it_is_forgotten_also_by_another_engine(runs: Runs) -> None:
    key = runs.start("true")
    for _ in range(2):
        runs.end(key)
        assert [e.ended for e in runs.engine.poll()] == [True]
        runs.crash()
    runs.end(key)
    runs.engine.forget(key)
    assert not runs.engine.poll()
    assert not runs.engine.runs()
    runs.crash()
    assert list(runs.engine.runs()) == []


def test_a_run_that_was_forgotten_is_not_started_again(runs: Runs) -> None:
    key = runs.start("sh", "-c", "echo began")
    runs.end(key)
    runs.engine.forget(key)
    runs.start("sh", "-c", "echo began")
    runs.engine.stop(key, 5.0)
    assert list(runs.engine.runs()) == []
    assert runs.log(key) == "began\n"
    told = runs.engine.poll()
    assert [(event.ended, event.exit_code) for event in told] == [(True, None)], "or it hangs"


def test_a_run_that_goes_on_is_not_forgotten(runs: Runs) -> None:
    key = runs.start("sh", "-c", WAITING)
    runs.engine.forget(key)
    assert list(runs.engine.runs()) == [key]


SERVICE = """
import sys
from pathlib import Path
from local_runs import Runs, start_eight
runs = Runs(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
start_eight(runs)
"""


@pytest.mark.slow
def test_a_service_killed_at_any_moment_of_starting_starts_every_run_once(tmp_path: Path) -> None:
    chance = random.Random(20)
    for moment in range(10):
        root = tmp_path / str(moment)
        _start_eight_and_die(root, after_s=chance.uniform(0, 0.04))
        runs = Runs(root)
        for key in start_eight(runs):  # all is asked for again, as the control loop does
            end = runs.end(key)
            assert (end.exit_code, end.stopped) == (0, False), end
            for rank in range(key.attempt):
                began = root / "checkpoints" / key.job / f"{key.attempt}.{rank}"
                assert began.read_text() == "began\n"
        runs.close()


def _start_eight_and_die(root: Path, after_s: float) -> None:
    path = os.pathsep.join(str(place) for place in Path(__file__).parents[:2])
    with subprocess.Popen(
        [sys.executable, "-c", SERVICE, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    ) as service:
        assert service.stdin is not None
        assert service.stdout is not None
        service.stdout.readline()
        service.stdin.write(b"go\n")
        service.stdin.flush()
        time.sleep(after_s)
        service.kill()


def test_of_many_supervisors_sent_to_one_run_one_takes_it(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn: Callable[..., int] = os.posix_spawnp
    held: list[int] = []

    def spawn_five(*arguments: object, **options: object) -> int:
        held.extend(spawn(*arguments, **options) for _ in range(4))
        return spawn(*arguments, **options)

    monkeypatch.setattr(os, "posix_spawnp", spawn_five)
    key = runs.start("sh", "-c", "echo began; sleep 0.2")
    assert runs.end(key).exit_code == 0
    for pid in held:
        with suppress(ChildProcessError):  # the one that took it: the engine has
            os.waitpid(pid, 0)
    assert runs.log(key) == "began\n"


# The supervisor


def test_a_killed_supervisor_takes_its_workers_along_and_the_run_is_lost(runs: Runs) -> None:
    begin = "sleep 1000 & a=$!; setsid sleep 1000 & echo $$ $a $!; wait"
    key = runs.start("sh", "-c", begin, slots=((0, 1),))
    other = runs.start("sh", "-c", WAITING, job="2")
    for rank in (0, 1):
        runs.until_printed(key, "\n", rank)
    pids = [[int(pid) for pid in runs.log(key, rank).split()] for rank in (0, 1)]
    runs.until_up(key)
    os.kill(runs.supervisor(key), signal.SIGKILL)
    until(lambda: not any(alive(worker) for worker, _, _ in pids))  # with or without a service
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (None, False)
    assert end.reason == "lost: its supervisor was killed, or the machine restarted"
    until(lambda: not any(alive(pid) for begun in pids for pid in begun))
    assert runs.told(other, ended=True) is None


def test_a_supervisor_killed_while_there_is_no_service_is_lost_as_well(runs: Runs) -> None:
    key = runs.start("sh", "-c", WAITING)
    runs.until_up(key)
    os.kill(runs.supervisor(key), signal.SIGKILL)
    runs.crash()
    assert runs.end(key).exit_code is None
    runs.crash()
    assert runs.end(key).reason.startswith("lost: ")


def test_supervisors_killed_at_random_leave_no_worker_and_no_doubt(runs: Runs) -> None:
    """Whenever it is killed, its run ends: lost, done, or stopped before it began."""
    chance = random.Random(4)
    for attempt in range(1, 21):
        key = runs.start("sh", "-c", "echo $$; sleep 0.03", attempt=attempt, slots=((0, 1),))
        time.sleep(chance.uniform(0, 0.1))
        engine_run = runs.engine._runs[key]
        os.kill(engine_run.pid, signal.SIGKILL)
        end = runs.end(key)
        assert end.exit_code in (None, 0), end
        pids = [int(pid) for rank in (0, 1) for pid in runs.log(key, rank).split()]
        until(lambda pids=pids: not any(alive(pid) for pid in pids))  # type: ignore[misc]


# The machine


def test_a_machine_that_shuts_down_stops_a_run_but_that_is_no_end_of_the_job(runs: Runs) -> None:
    key = runs.start("sh", "-c", WAITING)
    runs.until_printed(key, "ready")
    runs.until_up(key)
    os.kill(runs.supervisor(key), signal.SIGTERM)
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (0, True)


@pytest.mark.parametrize("changed", ["ticks", "boot"])
def test_a_process_that_only_has_the_number_of_a_supervisor_is_not_taken_for_it(
    runs: Runs, changed: str
) -> None:
    pid, ticks, boot = run_supervisor.identity(os.getpid()).split(".")
    ticks, boot = (f"{int(ticks) + 1}", boot) if changed == "ticks" else (ticks, "another")
    key = RunKey("9", 1)
    _pretend(runs, key, f"{pid}.{ticks}.{boot}")
    runs.crash()
    runs.engine.stop(key, 0.0)  # must not signal who has the number now
    assert runs.end(key).exit_code is None


def test_a_folder_that_somebody_deleted_is_a_lost_run(runs: Runs) -> None:
    key = runs.start("sh", "-c", WAITING)
    runs.until_up(key)
    supervisor = runs.supervisor(key)
    for path in runs.folder(key).iterdir():
        path.unlink()
    runs.folder(key).rmdir()
    os.kill(supervisor, signal.SIGTERM)
    assert runs.end(key).exit_code is None


@pytest.mark.parametrize("instead", ["nothing", "file"])
def test_a_run_whose_folder_was_deleted_can_be_stopped(runs: Runs, instead: str) -> None:
    key = runs.start("sh", "-c", f"echo $$ > {runs.root}/pid; {WAITING}", grace_s=60.0)
    runs.until_printed(key, "ready")
    runs.until_up(key)
    worker = int((runs.root / "pid").read_text())
    shutil.rmtree(runs.folder(key).parent)
    if instead == "file":
        runs.folder(key).parent.touch()
    runs.engine.stop(key, 60.0)
    end = runs.end(key)
    assert not alive(worker)
    if instead == "nothing":
        assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped when asked")


def test_polling_500_runs_of_an_earlier_service_takes_less_than_5_ms(runs: Runs) -> None:
    me = run_supervisor.identity(os.getpid())  # stands for their supervisors
    for job in range(500):
        _pretend(runs, RunKey(str(job), 1), me)
    engine = LocalEngine(runs.root / "runs", log_bytes=1024)
    assert len(engine.poll()) == 500  # that they are up

    def seconds() -> float:
        began = time.process_time()
        assert list(engine.poll()) == []
        return time.process_time() - began

    assert min(seconds() for _ in range(20)) < 0.005


def _pretend(runs: Runs, key: RunKey, supervisor: str) -> None:
    runs.folder(key).mkdir(parents=True)
    (runs.folder(key) / f"up.{supervisor}").touch()
    (runs.root / "runs" / ".runs" / f"{key.job}.{key.attempt}").touch()


def test_an_end_says_how_long_ago_it_was_also_to_another_engine(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = runs.start("true")
    until(lambda: (runs.folder(key) / run_files.OUTCOME).exists())
    written = (runs.folder(key) / run_files.OUTCOME).stat().st_mtime
    assert runs.end(key).age_s < time.time() - written + 0.001
    runs.crash()
    for wall, age_s in ((written + 3600.0, 3600.0), (written + 7200.0, 7200.0), (0.0, 0.0)):
        monkeypatch.setattr("boa.engines.local.time.time", lambda wall=wall: wall)
        (event,) = runs.engine.poll()[-1:]
        assert event.age_s == age_s, "and a clock that was set back makes it now"


def test_of_a_run_that_was_lost_the_end_is_when_that_was_seen(runs: Runs) -> None:
    key = runs.start("sh", "-c", WAITING)
    runs.until_printed(key, "ready")
    runs.until_up(key)
    os.kill(runs.supervisor(key), signal.SIGKILL)
    end = runs.end(key)
    assert end.exit_code is None
    assert 0 <= end.age_s < 10


# A supervisor that is stopped


STUBBORN = 'trap "" TERM; echo $$; while :; do sleep 0.02; done'


@pytest.fixture
def no_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boa.engines.local.SLACK_S", 0.0)


@pytest.fixture
def stays_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing makes a process go on that was stopped."""
    kill = os.kill
    monkeypatch.setattr(os, "kill", lambda pid, n: n == signal.SIGCONT or kill(pid, n))


@pytest.mark.usefixtures("no_slack", "stays_stopped")
@pytest.mark.parametrize("found_again", [False, True])
def test_a_stopped_supervisor_does_not_keep_a_run_going_past_its_grace(
    runs: Runs, found_again: bool
) -> None:
    key = runs.start("sh", "-c", STUBBORN)
    runs.until_printed(key, "\n")
    runs.until_up(key)
    supervisor, worker = runs.supervisor(key), int(runs.log(key))
    os.kill(supervisor, signal.SIGSTOP)
    if found_again:
        runs.crash()
    runs.engine.stop(key, 0.05)
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (-signal.SIGKILL, True)
    assert end.reason.startswith("killed by the service: still there 0.05 s after SIGTERM")
    assert not alive(supervisor)
    until(lambda: not alive(worker))
    runs.crash()
    assert runs.end(key).reason == end.reason


def test_a_stopped_supervisor_goes_on_when_its_run_is_to_stop_so_that_the_job_can_save(
    runs: Runs,
) -> None:
    key = runs.start("sh", "-c", WAITING)
    runs.until_printed(key, "ready")
    runs.until_up(key)
    os.kill(runs.supervisor(key), signal.SIGSTOP)
    runs.engine.stop(key, 60.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (0, True)


@pytest.mark.usefixtures("no_slack", "stays_stopped")
def test_a_supervisor_stopped_before_it_had_taken_its_run_does_not_hold_it_up(runs: Runs) -> None:
    key = runs.start("sh", "-c", "echo began")
    os.kill(runs.engine._runs[key].pid, signal.SIGSTOP)
    runs.engine.stop(key, 0.0)
    end = runs.end(key)
    assert end.stopped or end.exit_code == 0, "it may have been quicker"


@pytest.mark.usefixtures("no_slack")
def test_a_supervisor_that_does_as_it_was_told_is_not_overtaken_before_the_grace_is_over(
    runs: Runs,
) -> None:
    key = runs.start("sh", "-c", WAITING)
    runs.until_printed(key, "ready")
    runs.until_up(key)
    runs.engine.stop(key, 60.0)
    end = runs.end(key)
    assert (end.exit_code, end.reason) == (0, "stopped when asked")
