"""Warm parents that die, fail, grow old or are too many: no run is lost, and none begins twice."""

import logging
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from boa.engines import local
from boa.engines.processes import orphans, parent_pool, run_files, run_supervisor
from boa.model.runs import RunKey
from local_runs import DEADLINE_S, alive, until
from warm_runs import MODULE, WARM, Scripts

HOW = f"{WARM}print('warm' if warm else 'cold')\n"
WAITS = f"""{HOW}
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready")
signal.pause()
"""
BEGAN = f"""{HOW}
import os, time
path = os.path.join(os.environ["BOA_CHECKPOINT_DIR"], os.environ["BOA_ATTEMPT"])
with open(f"{{path}}.{{os.environ['RANK']}}", "a") as file: file.write("began ")
time.sleep(0.05)
"""
SLOW = """
    import os, time
    while not os.path.exists(os.environ["GATE"]): time.sleep(0.005)
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripts]:
    monkeypatch.setattr(local, "WARM_S", DEADLINE_S)  # on a busy machine imports take long
    runs = Scripts(tmp_path)
    yield runs
    runs.close()


def how(runs: Scripts, key: RunKey) -> str:
    assert runs.end(key).exit_code == 0, runs.log(key)
    return runs.log(key).split()[0]


# Parents that fail


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("import os; os._exit(3)", "it died"),
        (
            "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()",
            "imports have begun 1 threads",
        ),
        (
            "import sys, types\nsys.modules['torch'] = torch = types.ModuleType('torch')\n"
            "torch.cuda = types.SimpleNamespace(is_initialized=lambda: True)",
            "importing has initialised CUDA",
        ),
    ],
    ids=["import", "death", "thread", "cuda"],
)
def test_a_parent_that_cannot_be_used_is_told_of_once_and_runs_start_cold(
    runs: Scripts, caplog: pytest.LogCaptureFixture, module: str, why: str
) -> None:
    runs.module(module)
    with caplog.at_level(logging.WARNING, "boa.engines"):
        keys = [runs.run(HOW, attempt=n) for n in (1, 2)]
        assert [how(runs, key) for key in keys] == ["cold", "cold"]
        assert how(runs, runs.run(HOW, attempt=3)) == "cold"
    (said,) = (record.getMessage() for record in caplog.records)
    assert why in said
    assert MODULE in said
    assert runs.parents == []


def test_a_parent_that_hangs_is_waited_for_once_and_tried_again_later(
    runs: Scripts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs.module(SLOW)
    gate = {"GATE": str(tmp_path / "gate")}
    patient_s = local.WARM_S
    monkeypatch.setattr(local, "WARM_S", 0.1)
    keys = [runs.run(HOW, env=gate, attempt=n) for n in (1, 2)]
    (parent,) = runs.parents
    assert [how(runs, key) for key in keys] == ["cold", "cold"]
    assert [record.getMessage().split(": ")[1] for record in caplog.records] == [
        "no run was begun within 0.1 s"
    ]
    until(lambda: runs.parentless() and not os.path.exists(f"/proc/{parent}"))  # no zombie either
    monkeypatch.setattr(local, "WARM_S", patient_s)
    began = time.monotonic()
    assert how(runs, runs.run(HOW, env=gate, attempt=3)) == "cold"
    assert time.monotonic() - began < local.WARM_S / 2
    assert runs.parents == []
    runs.engine._warm._refused = dict.fromkeys(runs.engine._warm._refused, 0.0)
    (tmp_path / "gate").touch()
    assert how(runs, runs.run(HOW, env=gate, attempt=4)) == "warm"


def test_a_stop_before_the_parent_is_ready_keeps_the_run_from_beginning(
    runs: Scripts, tmp_path: Path
) -> None:
    runs.module(SLOW)
    key = runs.run(HOW, env={"GATE": str(tmp_path / "gate")})
    began = time.monotonic()
    runs.engine.stop(key, 5.0)
    assert time.monotonic() - began < local.WARM_S / 2
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped before it began")
    (tmp_path / "gate").touch()
    runs.until_ready()  # the request is still in its socket
    other = runs.run(HOW, env={"GATE": str(tmp_path / "gate")}, attempt=2)
    assert how(runs, other) == "warm"
    assert runs.log(key) == ""


def test_a_parent_killed_while_it_imports_leaves_its_runs_to_others(
    runs: Scripts, tmp_path: Path
) -> None:
    runs.module(SLOW)
    keys = [
        runs.run(HOW, env={"GATE": str(tmp_path / "gate")}, attempt=n, slots=((0, 1),))
        for n in (1, 2)
    ]
    os.kill(runs.parents[0], signal.SIGKILL)
    assert [how(runs, key) for key in keys] == ["cold", "cold"]


# Parents that go


def test_runs_go_on_without_their_parent(runs: Scripts) -> None:
    key = runs.run(WAITS, slots=((0, 1),))
    for rank in (0, 1):
        runs.until_printed(key, "ready", rank)
    runs.until_up(key)
    (parent,) = runs.parents
    os.kill(parent, signal.SIGKILL)
    until(runs.parentless)
    assert runs.told(key, ended=True) is None
    runs.engine.stop(key, 120.0)
    assert (runs.end(key).exit_code, runs.end(key).stopped) == (0, True)


def test_a_parent_ends_with_the_service_and_its_runs_are_found_by_the_next(runs: Scripts) -> None:
    key = runs.run(WAITS)
    runs.until_printed(key, "warm\nready")
    (parent,) = runs.engine._warm._parents.values()
    parent.control.close()  # as when the service is killed
    until(lambda: not alive(parent.pid))
    runs.crash()
    runs.until_up(key)
    assert runs.told(key, ended=True) is None
    runs.engine.stop(key, 120.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped when asked")


def test_a_run_asked_of_a_parent_that_went_with_its_service_is_begun_by_the_next(
    runs: Scripts, tmp_path: Path
) -> None:
    runs.module(SLOW)
    key = runs.run(HOW, env={"GATE": str(tmp_path / "gate")})
    runs.crash()
    runs.run(HOW, env={"GATE": str(tmp_path / "gate")})  # asked for again, as by the control loop
    assert how(runs, key) == "cold"


def test_a_parent_serves_until_what_it_has_imported_changes_on_the_disk(runs: Scripts) -> None:
    told = "import preloaded; print(preloaded.version)"
    first: list[int] = []
    for attempt, version in enumerate((1, 1, 2), 1):
        path = runs.modules / f"{MODULE}.py"
        if path.read_text() != f"version = {version}":
            path.write_text(f"version = {version}")
            os.utime(path, ns=(attempt * 10**9, attempt * 10**9))
        key = runs.run(told, attempt=attempt)
        assert (runs.end(key).exit_code, runs.log(key)) == (0, f"{version}\n")
        runs.until_ready()
        first = first or runs.parents
        assert (runs.parents == first) == (version == 1)


def test_jobs_with_another_environment_have_a_parent_of_their_own(runs: Scripts) -> None:
    runs.module("import os\nmine = os.environ.get('MINE')")
    keys = [
        runs.run("import preloaded; print(preloaded.mine)", env={"MINE": str(n)}, attempt=n)
        for n in (1, 2)
    ]
    assert [(runs.end(key).exit_code, runs.log(key)) for key in keys] == [(0, "1\n"), (0, "2\n")]
    assert len(runs.parents) == 2


def test_of_too_many_parents_the_one_longest_unused_goes(
    runs: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids: dict[str, int] = {}
    for name in "abcdae":
        attempt = len(pids) + 10 * (name == "a") + 1
        env = {"WHICH": name}
        assert how(runs, runs.run(HOW, env=env, attempt=attempt)) in ("warm", "cold")
        runs.until_ready()
        pids.setdefault(name, runs.parents[-1])
    assert set(runs.parents) == {pids[name] for name in "acde"}
    assert len(runs.parents) == parent_pool.MOST
    monkeypatch.setattr(parent_pool, "IDLE_S", 0.0)
    until(runs.parentless)
    until(lambda: not any(map(alive, pids.values())))


def test_a_parent_with_runs_is_not_idle(runs: Scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent_pool, "IDLE_S", 0.0)
    key = runs.run(WAITS)
    runs.until_printed(key, "warm\nready")
    for _ in range(5):
        runs.poll()
    assert len(runs.parents) == 1
    runs.engine.stop(key, 120.0)
    assert runs.end(key).exit_code == 0
    until(runs.parentless)


def test_no_parents_are_had_where_none_are_allowed(tmp_path: Path) -> None:
    runs = Scripts(tmp_path)
    runs.engine = local.LocalEngine(tmp_path / "runs", log_bytes=1024, warm_parents=0)
    assert how(runs, runs.run(HOW)) == "cold"
    runs.close()


# Supervisors, and all at random


def test_a_killed_supervisor_takes_all_along_also_what_was_only_forked(runs: Scripts) -> None:
    text = """
        import os, signal, subprocess
        import multiprocessing as mp
        begun = [subprocess.Popen(["sleep", "1000"], start_new_session=new).pid for new in (0, 1)]
        forked = mp.get_context("fork").Process(target=signal.pause)
        forked.start()
        print(os.getpid(), forked.pid, *begun)
        signal.pause()
    """
    key = runs.run(text, slots=((0, 1),))
    other = runs.run(WAITS, job="2")
    for rank in (0, 1):
        runs.until_printed(key, "\n", rank)
    runs.until_printed(other, "warm\nready")
    pids = [int(pid) for rank in (0, 1) for pid in runs.log(key, rank).split()]
    assert len(pids) == 8
    runs.until_up(key)
    os.kill(runs.supervisor(key), signal.SIGKILL)
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (None, False)
    assert end.reason == "lost: its supervisor was killed, or the machine restarted"
    until(lambda: not any(map(alive, pids)))
    assert runs.told(other, ended=True) is None
    assert alive(runs.parents[0])


def test_who_has_the_number_of_a_dead_supervisor_now_is_left_alone(runs: Scripts) -> None:
    key = runs.run(WAITS)
    runs.until_printed(key, "warm\nready")
    runs.until_up(key)
    pid, ticks, boot = run_supervisor.identity(runs.supervisor(key)).split(".")
    long_ago = (f"{pid}.{int(ticks) - 1}.{boot}", f"{pid}.{ticks}.another")  # of that number
    orphans.kill([orphans.Traces(supervisor=other) for other in long_ago])
    runs.poll()
    assert runs.told(key, ended=True) is None
    assert alive(int(pid))


def test_parents_and_supervisors_killed_at_random_leave_no_worker_and_no_doubt(
    runs: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever it is, a run ends once: lost or done; and it never begins twice."""
    monkeypatch.setattr(parent_pool, "AGAIN_S", 0.0)
    chance = random.Random(5)
    outcomes = []
    for attempt in range(1, 31):
        # one that is let be, and one that cannot end by itself: however busy the machine is,
        # there are both outcomes
        text = WAITS if attempt == 30 else BEGAN
        key = runs.run(text, attempt=attempt, slots=((0, 1),))
        if attempt == 30:
            runs.until_up(key)
            os.kill(runs.supervisor(key), signal.SIGKILL)
        elif attempt > 1:
            time.sleep(chance.uniform(0, 0.15))
            _kill_somebody(runs, key, chance)
        end = runs.end(key)
        assert end.exit_code in (None, 0), (end, runs.log(key), runs.log(key, 1))
        outcomes.append((end.exit_code, runs.log(key).strip()))
        began = (runs.root / "checkpoints" / "1").glob(f"{attempt}.*")
        assert all(path.read_text() in ("", "began ") for path in began)
    assert {code for code, _ in outcomes} == {None, 0}
    assert (0, "warm") in outcomes
    assert _forked() <= set(runs.parents)


def _kill_somebody(runs: Scripts, key: RunKey, chance: random.Random) -> None:
    runs.poll()
    state, supervisor = runs.engine._runs[key].state()
    if chance.random() < 0.5 and runs.parents:
        os.kill(runs.parents[0], signal.SIGKILL)
    elif supervisor and state != run_files.OUTCOME and runs.engine._runs[key].end is None:
        with suppress(ProcessLookupError):  # it has ended this moment
            os.kill(int(supervisor.split(".")[0]), signal.SIGKILL)


def _forked() -> set[int]:
    """Of this test, what is still there of parents and their forks."""
    mine = {
        pid
        for pid in orphans._pids()
        if orphans.WARM in orphans._environ(pid) and run_supervisor.identity(pid)
    }
    return {pid for pid in mine if _root_of(pid) == os.getpid()}


def _root_of(pid: int) -> int:
    """0 of one that has ended meanwhile."""
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])
    return 0


# With torch


@pytest.mark.slow
def test_a_training_with_torch_is_forked_and_saved_and_goes_on(
    runs: Scripts, tmp_path: Path
) -> None:
    job = Path(__file__).resolve().parents[4] / "bench" / "_restart_job.py"
    for attempt in (1, 2):
        key = runs.command(
            sys.executable, str(job), str(tmp_path), preload=None, attempt=attempt, slots=((0, 1),)
        )
        runs.until_up(key)
        ranks = _children(runs.supervisor(key))
        assert len(ranks) == 2
        until(lambda: (tmp_path / "started.json").exists())
        (tmp_path / "started.json").unlink()
        environ = Path(f"/proc/{ranks[0]}/environ").read_bytes()
        assert orphans.WARM.encode() in environ
        runs.engine.stop(key, 120.0)
        end = runs.end(key)
        assert (end.exit_code, end.stopped) == (0, True), runs.log(key)
        assert (tmp_path / "stopped.json").exists()


@pytest.mark.slow
def test_ranks_that_are_early_find_the_first_one_as_soon_as_it_listens(
    runs: Scripts, tmp_path: Path
) -> None:
    """Left to itself, torch tries at once, and again only some tenths of a second later."""
    text = f"""
        import os, pathlib, sys, time
        import torch.distributed as dist
        from boa.engines.processes.forked_worker import _listened_to
        rendezvous = sys.modules["torch.distributed.rendezvous"]  # as an attribute, a function
        early, connect = pathlib.Path({str(tmp_path / "early")!r}), rendezvous.TCPStore
        def told(*args, **options):
            print(_listened_to(int(os.environ["MASTER_PORT"])))
            return connect(*args, **options)
        rendezvous.TCPStore = told
        if os.environ["RANK"] == "1":
            early.touch()
        while not early.exists():
            time.sleep(0.01)
        if os.environ["RANK"] == "0":
            time.sleep(0.2)
        dist.init_process_group("gloo")
        dist.barrier()
        dist.destroy_process_group()
    """
    key = runs.run(text, slots=((0, 1),), preload=None)
    assert runs.end(key).exit_code == 0, runs.log(key, 1)
    assert [runs.log(key, rank).strip() for rank in (0, 1)] == ["False", "True"]


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
