"""Random SIGKILLs of the service, of workers and of their supervisors: nothing may be lost."""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boa.client import Client
from boa.client.spawn import OwnService
from boa.formats.job import job_document
from boa.model.profile import ClassProfile
from boa.scheduler.money.ledger import Totals, bill
from boa.sim.replay_jobs import replay_spec, write_profiles
from boa.store.sql import open_store
from live import profile

SEED, KILLS, AT_ONCE = 20261115, 25, 8
SPEED = 60.0
PATIENCE_S = 1800.0


def _config(files: dict[str, Path]) -> dict[str, object]:
    return {
        "budget_per_hour": 40.0,
        "speed": SPEED,
        "gpu_types": {"T4": {"price": 1.0, "gpus_per_node": 4, "max_nodes": 12}},
        "keep_warm_s": 30,
        "backoff_s": 1,
        "classes": {
            name: {
                "profile": str(path),
                "arrivals_per_hour": 40,
                "arrivals_weight_h": 100,
                "measured_weight": 1000,
            }
            for name, path in files.items()
        },
    }


def _profiles() -> dict[str, ClassProfile]:
    """About ten seconds of the wall each, with a change of width in between."""
    return {
        "steady": profile("steady", work=(400.0,) * 4, alpha=0.7, rescale_s=12.0, widest=8),
        "growing": profile("growing", work=(300.0, 900.0), alpha=0.9, rescale_s=12.0, widest=8),
    }


def _processes(mark: str, script: str) -> list[int]:
    """Processes of ours that run this script."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                command = Path("/proc", entry, "cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            if script in command and mark in command:
                found.append(int(entry))
    return found


def _job_of(pid: int) -> str | None:
    """None of one that is gone, or was killed and only waits for a processor to die on."""
    try:
        environment = Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
        status = Path("/proc", str(pid), "status").read_text().splitlines()
    except OSError:
        return None
    pending = (int(line.split()[1], 16) for line in status if line[:6] in ("SigPnd", "ShdPnd"))
    if any(signals >> (signal.SIGKILL - 1) & 1 for signals in pending):
        return None
    for entry in environment:
        if entry.startswith(b"BOA_JOB_ID="):
            return entry.partition(b"=")[2].decode()
    return None


@contextmanager
def _watching_for_doubles(mark: str) -> Iterator[list[str]]:
    """Jobs of whom two workers were ever seen at once; these jobs have one each."""
    doubles: list[str] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            seen = Counter(_job_of(pid) for pid in _processes(mark, "replay.py"))
            doubles.extend(job for job, count in seen.items() if job is not None and count > 1)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield doubles
    finally:
        over.set()
        watcher.join()


@pytest.mark.slow
def test_random_kills_lose_no_job_and_no_dollar(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    known = _profiles()
    files = write_profiles(known, tmp_path / "profiles")
    mark = str(tmp_path)
    submitted: list[str] = []
    killed: Counter[str] = Counter()
    service = OwnService(tmp_path, _config(files))
    with service, service.client() as client, _watching_for_doubles(mark) as doubles:
        deadline = time.monotonic() + PATIENCE_S
        while killed.total() < KILLS or client.jobs(limit=1):
            assert time.monotonic() < deadline, f"not done: {killed}, {client.jobs()}"
            if killed.total() >= KILLS:
                time.sleep(0.3)
                continue
            while len(client.jobs()) < AT_ONCE:
                name = rng.choice(sorted(known))
                spec = replay_spec(known[name], files[name])
                job = client.submit({**job_document(spec), "retries": 1000})
                submitted.append(job["id"])
            time.sleep(rng.uniform(0.05, 0.5))
            _kill_somebody(rng, service, mark, killed)
        ended = client.jobs(all=True)
        _wait_until_no_node_is_rented(client, deadline)
    assert not doubles, "two workers of one job at once"
    assert sorted(job["id"] for job in ended) == sorted(submitted), "a job was lost or invented"
    assert {job["state"] for job in ended} == {"succeeded"}
    assert set(killed) == {"service", "worker", "supervisor"}
    _check_the_ledger(tmp_path)
    assert not _processes(mark, "replay.py"), "a worker was left behind"


def _kill_somebody(
    rng: random.Random, service: OwnService, mark: str, killed: Counter[str]
) -> None:
    victim = rng.choices(("service", "worker", "supervisor"), (2, 5, 3))[0]
    if victim == "service":
        service.kill()
        time.sleep(rng.uniform(0.0, 0.3))
        service.start()
        killed[victim] += 1
        return
    script = "replay.py" if victim == "worker" else "run_supervisor.main"
    pids = [pid for pid in _processes(mark, script) if pid != os.getpid()]
    if pids:
        try:
            os.kill(rng.choice(pids), signal.SIGKILL)
        except ProcessLookupError:
            return
        killed[victim] += 1


def _wait_until_no_node_is_rented(client: Client, deadline: float) -> None:
    while client.nodes():
        assert time.monotonic() < deadline, "a node was forgotten"
        time.sleep(0.2)


def _check_the_ledger(folder: Path) -> None:
    """Everything that was rented is accounted for once, and no GPU was held by two at a time."""
    store = open_store(f"sqlite:///{folder}/data/boa.db")
    try:
        saved = store.load()
        nodes = store.nodes_between(0.0, float("inf"))
        holds = store.holds_between(0.0, float("inf"))
    finally:
        store.close()
    assert not saved.holds, "a hold was never closed"
    assert not saved.nodes
    whole = bill(nodes, holds, 0.0, float("inf"))
    totals = Totals.from_document(saved.meta["totals"])
    assert totals.total == pytest.approx(whole.total)
    assert totals.jobs == pytest.approx(whole.jobs)
    gpus = {node.id: node.gpus for node in nodes}
    for node, most in gpus.items():
        changes = sorted(
            (moment, delta)
            for hold in holds
            if hold.node == node and hold.until is not None
            for moment, delta in ((hold.since, hold.gpus), (hold.until, -hold.gpus))
        )
        held = 0
        for _, delta in changes:
            held += delta
            assert held <= most, f"node {node} was held twice"
