"""Simulations beside the service, in the real process that answers them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from boa.api.what_if import Simulation
from boa.catalogue.offers import OFFERS
from boa.client import Client
from boa.errors import Refused
from boa.server.what_if.runner import KILLED, MOST_WAITING, NICENESS
from fakes import FakeService
from integration.runner import Boa, same
from local_runs import alive

SOON_S = 600.0
"""Its process is niced: on a busy machine it gets next to nothing."""
LOOK_S = 0.1
"""Every look is a request, which the simulation's processes have to share the machine with."""
CROWD = "\n".join(
    ["name,arrival_s,application,gpus", *(f"job-{n},{20 * n},cifar10,2" for n in range(200))]
)
LONG: dict[str, Any] = {
    "trace_file": ("crowd.csv", CROWD),
    "policies": ["reservation", "pollux-autoscale"],
    "budgets": [400],
}
"""The reservation's point is there at once; Pollux' four take half a minute each."""
QUICK: dict[str, Any] = {"policies": ["boa"], "budgets": [10, 20]}
SHORT: dict[str, Any] = {"policies": ["boa", "sia-autoscale"], "budgets": [1, 10, 20]}
ORPHAN = """
import sys, time
from pathlib import Path
from boa.server.what_if.runner import SimulationQuestion, Simulations
from boa.server.what_if.traces import catalogue_world, generated_trace
from boa.sim.sweep import Asked, SweepGrid

if __name__ == "__main__":
    world = catalogue_world("day", generated_trace("day"), None, {})
    simulations = Simulations(Path(sys.argv[1]))
    simulations.ask(SimulationQuestion(
        trace="day", world=world, policies=("pollux-autoscale",), grid=SweepGrid(), asked=Asked(),
        points=8,
    ))
    while simulations.pid is None:
        time.sleep(0.01)
    print(simulations.pid, flush=True)
    time.sleep(600)
"""
_T = TypeVar("_T")


def until(look: Callable[[], _T | None]) -> _T:
    """What it gives once it gives something."""
    end = time.monotonic() + SOON_S
    while not (found := look()):
        assert time.monotonic() < end, "it never came"
        time.sleep(LOOK_S)
    return found


def over(client: Client, number: str) -> Simulation:
    def look() -> Simulation | None:
        found = client.simulation(number)
        return None if found["state"] in ("waiting", "running") else found

    return until(look)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[FakeService]:
    service = FakeService(tmp_path)
    yield service
    service.simulations.close()


@pytest.fixture
def client(service: FakeService) -> Iterator[Client]:
    with service.serving() as url, Client(url) as client:
        yield client


def started(service: FakeService, client: Client) -> tuple[Simulation, int]:
    """One that has come to its second point, and its process."""
    asked = client.what_if(**LONG)

    def look() -> Simulation | None:
        found = client.simulation(asked["id"])
        assert found["state"] in ("waiting", "running"), found
        return found if found["points_done"] else None

    found, pid = until(look), service.simulations.pid
    assert pid is not None
    return found, pid


def in_order(point: Mapping[str, Any]) -> str:
    """The same whatever order its keys came in over the wire, but for times of the wall."""
    return same(dict(sorted(point.items())))


def children(pid: int) -> list[int]:
    """Processes that a process has begun and that are still there."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int) -> bool:
    return not alive(pid)


def test_the_answer_is_that_of_boa_compare(client: Client, run: Boa, trace: Path) -> None:
    asked = client.what_if(
        trace_file=(trace.name, trace.read_text()), **SHORT, targets=[0.5, 0.9], seed=3
    )
    assert (asked["state"], asked["trace"], asked["points"]) == ("waiting", trace.name, 5)
    found = over(client, asked["id"])
    assert (found["state"], found["points_done"], found["error"]) == ("done", 5, "")
    options = {
        "--policies": "boa,sia-autoscale",
        "--budgets": "1,10,20",
        "--targets": "0.5,0.9",
        "--prices": f"T4={OFFERS['T4'].price}",
        "--seed": 3,
    }
    other = run.json("compare", trace, *(part for pair in options.items() for part in pair))
    mine = found["result"]
    assert mine.keys() == other.keys()
    assert [in_order(p) for p in mine["points"]] == [in_order(p) for p in other["points"]]
    assert mine["comparisons"] == other["comparisons"]
    assert mine["left_out"] == other["left_out"]
    assert len(mine["points"]) == 4
    (listed,) = client.simulations()
    assert "result" not in listed


def test_one_runs_at_a_time_niced_and_ten_wait(service: FakeService, client: Client) -> None:
    first, pid = started(service, client)
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(
        os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, 19
    )
    waiting = [client.what_if(**LONG) for _ in range(MOST_WAITING)]
    with pytest.raises(Refused, match="10 simulations wait already"):
        client.what_if(**LONG)
    assert {s["state"] for s in client.simulations()[:-1]} == {"waiting"}
    assert client.stop_simulation(waiting[0]["id"])["state"] == "stopped"
    assert client.what_if(**LONG)["state"] == "waiting"
    assert client.simulation(first["id"])["state"] == "running"
    assert service.simulations.pid == pid


def test_stopped_it_ends_at_once_and_the_next_one_runs(
    service: FakeService, client: Client, trace: Path
) -> None:
    first, pid = started(service, client)
    helpers = children(pid)
    assert len(helpers) >= min(2, os.cpu_count() or 1), "a process for each processor"
    second = client.what_if(trace_file=(trace.name, trace.read_text()), **QUICK)
    assert client.stop_simulation(first["id"])["state"] == "stopped"
    until(lambda: all(gone(process) for process in (pid, *helpers)))
    assert over(client, second["id"])["state"] == "done"
    for number, state in ((first["id"], "stopped"), (second["id"], "done")):
        assert client.stop_simulation(number)["state"] == state, "over is over"


def test_a_process_that_is_killed_is_a_failure_in_plain_words(
    service: FakeService, client: Client, trace: Path
) -> None:
    first, pid = started(service, client)
    os.kill(pid, signal.SIGKILL)
    found = over(client, first["id"])
    assert (found["state"], found["error"]) == ("failed", KILLED)
    again = client.what_if(trace_file=(trace.name, trace.read_text()), **QUICK)
    assert over(client, again["id"])["state"] == "done"


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor: one process")
def test_a_helper_that_is_killed_is_a_failure_in_plain_words(
    service: FakeService, client: Client
) -> None:
    first, pid = started(service, client)
    helpers = children(pid)
    os.kill(helpers[-1], signal.SIGKILL)
    found = over(client, first["id"])
    assert (found["state"], found["error"]) == ("failed", KILLED)
    until(lambda: all(gone(process) for process in (pid, *helpers)))


def test_a_question_without_any_answer_fails_with_the_reason(client: Client) -> None:
    asked = client.what_if("day", policies=["boa"], budgets=[1])
    found = over(client, asked["id"])
    assert found["state"] == "failed"
    assert "the cheapest plan spends" in found["error"]


def test_a_restart_keeps_results_and_gives_up_what_ran(tmp_path: Path, trace: Path) -> None:
    before = FakeService(tmp_path)
    with before.serving() as url, Client(url) as client:
        done = client.what_if(trace_file=(trace.name, trace.read_text()), **QUICK)
        found = over(client, done["id"])
        ran, pid = started(before, client)
        waited = client.what_if(**LONG)
    before.simulations.close()
    assert gone(pid)
    after = FakeService(tmp_path)
    listed = {s["id"]: s["state"] for s in after.get("what-if")["simulations"]}
    assert listed == {waited["id"]: "stopped", ran["id"]: "stopped", done["id"]: "done"}
    assert after.get(f"what-if/{done['id']}")["simulation"] == found


def test_the_process_ends_with_a_service_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    command = [sys.executable, str(script), str(tmp_path / "what-if")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
    until(lambda: gone(pid))
    kept = json.loads((tmp_path / "what-if" / "1.json").read_text())
    assert kept["state"] == "running", "nobody could write it down"
