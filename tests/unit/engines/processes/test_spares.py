"""Runs that are prepared while the one before goes on: its processes wait, and become workers."""

import os
import resource
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from boa.engines import local, spares
from boa.engines.processes import run_marks, run_supervisor, spare_workers
from boa.engines.processes.warm_scripts import Finder
from boa.model.job import JobSpec
from boa.model.runs import Launch, RunKey
from local_runs import DEADLINE_S, alive, slots_of, until
from warm_runs import MODULE, WARM, Scripts

TRAINS = """
    import os, signal, sys, resource
    print("pid", os.getpid(), os.environ["RANK"], os.environ["LOCAL_RANK"], flush=True)
    print("slept", open(f"/proc/{os.getpid()}/stat").read().split()[21], flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("ready", flush=True)
    signal.pause()
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripts]:
    monkeypatch.setattr(local, "WARM_S", DEADLINE_S)  # on a busy machine imports take long
    monkeypatch.setattr(spares, "AWAKE_S", DEADLINE_S)
    runs = Scripts(tmp_path, prepares=True)
    yield runs
    runs.close()


def training(runs: Scripts, text: str = TRAINS, width: int = 1) -> RunKey:
    key = runs.run(text, slots=slots_of(width))
    for rank in range(width):
        runs.until_printed(key, "ready", rank)
    runs.until_ready()
    return key


def following(runs: Scripts, width: int = 1, attempt: int = 2, **given: object) -> Launch:
    env = {"PYTHONPATH": f"{runs.modules}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")}
    return runs.launch(
        sys.executable,
        "1.py",
        attempt=attempt,
        slots=slots_of(width),
        workdir=str(runs.code),
        preload=(MODULE,),
        env={**env, **given},
    )


def waiting(runs: Scripts) -> list[int]:
    """Spare supervisors."""
    forked = [pid for parent in runs.parents for pid in run_marks.children(parent)]
    return [pid for pid in forked if ".new" in _folder(pid)]


def _folder(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except FileNotFoundError:  # it has ended
        return ""


def workers(runs: Scripts) -> set[int]:
    return {pid for spare in waiting(runs) for pid in run_marks.children(spare)}


def held(runs: Scripts) -> tuple[RunKey, set[int]]:
    """A run whose stop waits for spares that never wake."""
    runs.module("def wake():\n    import signal; signal.pause()", "waking")
    runs.module("import sys, waking; sys.modules['boa.train.torch.waking'] = waking")
    first = training(runs)
    runs.engine.stop(first, DEADLINE_S, following(runs))
    until(lambda: bool(workers(runs)))
    spare = workers(runs)
    return first, spare


def pids(runs: Scripts, key: RunKey, width: int) -> set[int]:
    for rank in range(width):
        runs.until_printed(key, "ready", rank)
    return {int(runs.log(key, rank).split()[1]) for rank in range(width)}


@pytest.mark.parametrize("width", [1, 3])
def test_the_next_run_goes_on_in_processes_that_were_there_before(
    runs: Scripts, width: int
) -> None:
    first, then = training(runs), following(runs, width)
    runs.engine.stop(first, DEADLINE_S, then)
    until(lambda: len(workers(runs)) == width)
    spare = workers(runs)
    assert runs.end(first).stopped
    runs.engine.start(then)
    assert pids(runs, then.key, width) == spare
    assert runs.supervisor(then.key)
    assert not waiting(runs)
    ranks = [runs.log(then.key, rank).split()[2:4] for rank in range(width)]
    assert ranks == [[str(n), str(n)] for n in range(width)]
    runs.engine.stop(then.key, DEADLINE_S)
    assert runs.end(then.key).stopped


def test_a_stop_waits_until_they_are_awake_and_training_goes_on(
    runs: Scripts, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    wakes = f"""
        import os, time
        def wake():
            while not os.path.exists({str(gate)!r}): time.sleep(0.005)
    """
    runs.module(wakes, "waking")
    runs.module("import sys, waking; sys.modules['boa.train.torch.waking'] = waking")
    first, then = training(runs), following(runs)
    runs.engine.stop(first, DEADLINE_S, then)
    until(lambda: bool(workers(runs)))
    runs.engine.stop(first, DEADLINE_S, then)  # asked again, it is the same
    runs.poll()
    assert alive(runs.supervisor(first))
    assert not runs.told(first, ended=True)
    assert not (runs.folder(first) / "stop").exists()
    gate.touch()
    assert runs.end(first).stopped
    spare = workers(runs)
    runs.engine.start(then)
    assert pids(runs, then.key, 1) == spare


def test_a_stop_does_not_wait_for_long(runs: Scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spares, "AWAKE_S", 0.0)
    monkeypatch.setattr(spare_workers, "LATE_S", 0.0)
    runs.module("def wake():\n    import signal; signal.pause()", "waking")
    runs.module(
        "import sys, waking, spare_workers; spare_workers.LATE_S = 0.05\n"
        "sys.modules['boa.train.torch.waking'] = waking"
    )
    first, then = training(runs), following(runs)
    runs.engine.stop(first, DEADLINE_S, then)
    assert runs.end(first).stopped
    until(lambda: bool(workers(runs)))
    spare = workers(runs)
    runs.engine.start(then)
    assert not pids(runs, then.key, 1) & spare
    until(lambda: not any(map(alive, spare)))


def test_one_that_cannot_wake_is_replaced(runs: Scripts) -> None:
    runs.module("def wake():\n    raise RuntimeError('devices are busy')", "waking")
    runs.module("import sys, waking; sys.modules['boa.train.torch.waking'] = waking")
    first, then = training(runs), following(runs)
    runs.engine.stop(first, DEADLINE_S, then)
    assert runs.end(first).stopped
    assert not any(map(alive, workers(runs)))
    runs.engine.start(then)
    assert pids(runs, then.key, 1)


def test_processes_that_do_not_fit_are_not_taken(runs: Scripts) -> None:
    first, then = training(runs), following(runs, 2)
    runs.engine.stop(first, DEADLINE_S, then)
    assert runs.end(first).stopped
    spare = workers(runs)
    other = following(runs, 3)
    runs.engine.start(other)
    assert not pids(runs, other.key, 3) & spare  # as many ranks as they do not know
    until(lambda: not any(map(alive, spare)))


def test_one_that_has_died_is_replaced(runs: Scripts) -> None:
    first, then = training(runs), following(runs, 2)
    runs.engine.stop(first, DEADLINE_S, then)
    assert runs.end(first).stopped
    spare = workers(runs)
    os.kill(min(spare), signal.SIGKILL)
    runs.engine.start(then)
    found = pids(runs, then.key, 2)
    assert len(found & spare) == 1
    assert len(found) == 2


@pytest.mark.parametrize("how", ["cancelled", "crash", "parent"])
def test_they_end_when_nobody_will_take_them(runs: Scripts, how: str) -> None:
    first = training(runs)
    runs.engine.stop(first, DEADLINE_S, following(runs))
    assert runs.end(first).stopped
    spare = workers(runs)
    assert spare
    if how == "cancelled":
        runs.engine._spares.drop("1")
    elif how == "parent":
        os.kill(runs.parents[0], signal.SIGKILL)
    else:
        runs.crash()
        assert runs.end(first).stopped
    until(lambda: not any(map(alive, spare)))
    key = runs.run(TRAINS, attempt=2)
    runs.until_printed(key, "ready")


def test_a_stop_for_good_prepares_nothing(runs: Scripts) -> None:
    first = training(runs)
    runs.engine.stop(first, DEADLINE_S)
    assert runs.end(first).stopped
    assert not waiting(runs)


def test_a_stop_for_good_does_not_wait_for_one_that_prepares(runs: Scripts) -> None:
    first, spare = held(runs)
    runs.engine.stop(first, 0.0)
    assert runs.end(first).stopped
    until(lambda: not any(map(alive, spare)))


def test_marks_and_secrets_are_those_of_the_run(runs: Scripts) -> None:
    shows = f"""
        {WARM}
        import os, resource, signal, sys, fcntl
        print("limit", open("/proc/self/limits").read().split("Max file locks")[1].split()[0])
        print("secret", len(os.environ.get("KEY", "")))
        print("warm" if warm else "cold")
        try:
            fcntl.flock(os.open(os.environ["LOCK"], os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("locked")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        print("ready", flush=True)
        signal.pause()
    """
    lock = str(runs.root / "runs" / "1" / "2" / "lock")
    first = runs.run(shows, env={"LOCK": lock})
    runs.until_ready()
    runs.until_up(first)
    then = following(runs, LOCK=lock)
    then = Launch(**{**{n: getattr(then, n) for n in then.__slots__}, "secrets": {"KEY": "abc"}})
    runs.engine.stop(first, DEADLINE_S, then)
    assert runs.end(first).ended
    assert workers(runs)
    runs.engine.start(then)
    runs.until_printed(then.key, "ready")
    log = runs.log(then.key)
    assert "secret 3" in log
    assert "warm" in log
    assert "locked" in log
    limit = next(line.split()[1] for line in log.splitlines() if line.startswith("limit"))
    assert limit in (str(runs.engine._runs[then.key].mark), "unlimited")


@pytest.mark.parametrize(
    ("line", "may"),
    [
        ("x = os.environ['A']", True),
        ("if os.environ['A'] == 'b': pass", True),
        ("os.environ['A'] = 'b'", False),
        ("os.environ.setdefault('A', 'b')", False),
        ("os.environ |= {'A': 'b'}", False),
        ("os.environ.get('A')", True),
        ("del os.environ['A']", False),
        ("os.environ.pop('A', None)", False),
        ("torch.cuda.memory.change_current_allocator(mine)", False),
        ("from dotenv import load_dotenv", False),
    ],
)
def test_libraries_are_not_woken_before_a_script_that_tells_them_how(
    tmp_path: Path, line: str, may: bool
) -> None:
    (tmp_path / "a.py").write_text(f"import os, torch\n{line}\n")
    spec = JobSpec(job_class="a", run=(sys.executable, "a.py"))
    found = Finder().find(spec, str(tmp_path), {})
    assert found is not None
    assert found.may_wake == may


def prepared(runs: Scripts, then: Launch) -> tuple[RunKey, set[int]]:
    """A run that was stopped, and who waits to be the next one's workers."""
    first = training(runs)
    runs.engine.stop(first, DEADLINE_S, then)
    assert runs.end(first).stopped
    spare = workers(runs)
    assert spare
    return first, spare


def soon_gone(pids: set[int]) -> None:
    """Long before they would give up by themselves: they have a GPU's memory."""
    until(lambda: not any(map(alive, pids)), spare_workers.MOST_S / 4)


def test_a_stop_goes_through_where_nothing_can_be_prepared(runs: Scripts) -> None:
    first = training(runs)
    shutil.rmtree(runs.root / "runs" / ".new")  # as on a full disk
    runs.engine.stop(first, DEADLINE_S, following(runs))
    assert runs.end(first).stopped
    (runs.root / "runs" / ".new").mkdir()


@pytest.mark.parametrize("why", ["secrets", "recipe", "cold"])
def test_they_end_when_another_process_begins_the_run(runs: Scripts, why: str) -> None:
    then = following(runs)
    _, spare = prepared(runs, then)
    if why == "secrets":  # more than the parent's socket takes
        then = replace(then, secrets={f"KEY{n}": "a" * 100_000 for n in range(5)})
    elif why == "recipe":
        then = following(runs, OTHER="1")
    else:
        then = replace(then, spec=replace(then.spec, preload=()))
    runs.engine.start(then)
    assert not pids(runs, then.key, 1) & spare
    soon_gone(spare)


def test_they_end_when_the_run_is_not_begun(runs: Scripts) -> None:
    then = following(runs)
    _, spare = prepared(runs, then)
    runs.engine.stop(then.key, DEADLINE_S)
    assert runs.end(then.key).stopped
    soon_gone(spare)


def test_they_end_when_the_one_before_ends_by_itself(runs: Scripts) -> None:
    first, spare = held(runs)
    for pid in pids(runs, first, 1):
        os.kill(pid, signal.SIGKILL)
    assert not runs.end(first).stopped
    soon_gone(spare)


def test_a_stop_for_good_ends_them_also_after_the_run(runs: Scripts) -> None:
    first, spare = prepared(runs, following(runs))
    runs.engine.stop(first, DEADLINE_S)
    soon_gone(spare)


def test_asked_again_the_shorter_grace_holds_and_nothing_waits_anew(runs: Scripts) -> None:
    runs.module("def wake():\n    import signal; signal.pause()", "waking")
    runs.module("import sys, waking; sys.modules['boa.train.torch.waking'] = waking")
    ignores = TRAINS.replace("lambda *_: sys.exit(0)", "signal.SIG_IGN")
    first, then = training(runs, ignores + "    signal.pause()\n"), following(runs)
    runs.engine.stop(first, 60.0, then)
    runs.engine.stop(first, 90.0, then)
    assert runs.engine._held[first][0] == 60.0
    runs.engine._spares.drop("1")
    runs.poll()
    assert not runs.engine._held
    assert (runs.folder(first) / "stop").read_text() == "60.000"
    runs.engine.stop(first, 0.0, then)
    assert not runs.engine._held
    assert runs.end(first).stopped


def test_all_workers_together_wait_for_spares_once(monkeypatch: pytest.MonkeyPatch) -> None:
    until: list[float] = []
    monkeypatch.setattr(spare_workers.Spare, "take", lambda _, __, late: until.append(late))
    monkeypatch.setattr(spare_workers.Spare, "end", lambda _: None)
    asleep = spare_workers.Spares()
    asleep._left = [spare_workers.Spare({}) for _ in range(8)]
    worker = object.__new__(run_supervisor.Worker)
    worker.plan = {"env": {}}
    assert asleep.start(worker, "/", 0) is None
    assert len(until) == 8
    assert len(set(until)) == 1


def test_a_lock_is_kept_where_few_files_may_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    monkeypatch.setattr(run_marks, "LOCK_FD", most)
    monkeypatch.setattr(run_marks, "kept", set())
    run_marks.take_on(None, [os.open(tmp_path, os.O_RDONLY)])
    (kept,) = run_marks.kept
    assert os.readlink(f"/proc/self/fd/{kept}") == str(tmp_path)
    os.close(kept)
