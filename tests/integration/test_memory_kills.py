"""Whoever is killed, wherever in a hand-over through memory: nothing is lost that was published.

Services are in test_memory_service.py.
"""

import os
import signal
from collections.abc import Iterator

import pytest

from boa.train.keeper.client import listens
from forked_writers import writers
from gates import IN_RANKS, IN_WRITERS, Gates, points
from handed_over import GRACE_S, Job, Service, goes_on, mentioning
from keeping import until

LEAVING = [point for point in IN_RANKS if point != "loading"]
"""Points of the run that leaves its state, in their order; at the last it is published."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all jobs: its warm parent has imported torch."""
    with writers() as asked:
        service = Service(tmp_path_factory.mktemp("service"), asked)
        yield service
        service.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "point"),
    points(
        [*(("supervisor", at) for at in LEAVING), ("rank", "publishing"), ("rank", "published")],
        [("supervisor", "keeping"), ("rank", "published")],
    ),
)
def test_a_run_killed_while_it_leaves_its_state(service: Service, victim: str, point: str) -> None:
    job, gates, durable = begun(service, f"{victim}-{point}")
    key = job.held_at(service, point)
    os.kill(gates.held(point) if victim == "rank" else service.supervisor(key), signal.SIGKILL)
    assert service.end(key) != 0
    left = job.left()
    assert (left is None) == (point != "published")
    goes_on(job, service, durable if left is None else left)


@pytest.mark.slow
@pytest.mark.parametrize("point", points(["reserving", "keeping", "published"], ["published"]))
def test_a_keeper_killed_while_a_run_leaves_its_state_means_the_disk(
    service: Service, point: str
) -> None:
    job, gates, _ = begun(service, f"keeper-{point}")
    key = job.held_at(service, point)
    os.kill(job.keeper_pid(), signal.SIGKILL)
    until(lambda: not listens(job.keeper))
    gates.open(point)
    if point == "reserving":
        job.until_said(service, "began")
        service.engine.stop(key, GRACE_S)
    assert service.end(key) == 0
    said = job.said("ended")
    assert said is not None
    assert job.checkpoints()[0] == said["step"]
    goes_on(job, service, said["step"])


@pytest.mark.slow
@pytest.mark.parametrize("victim", points(["rank", "supervisor", "keeper"], ["rank", "keeper"]))
def test_killed_while_the_next_run_loads(service: Service, victim: str) -> None:
    job, gates, durable = begun(service, f"{victim}-loading")
    gates.shut("writing")  # so that it is in memory alone
    left = job.whole(service)["step"]
    gates.shut("loading")
    key = job.start(service)
    until(lambda: service.engine.poll() is not None and gates.is_held("loading"))
    pids = {"rank": lambda: gates.held("loading"), "keeper": job.keeper_pid}
    os.kill(pids.get(victim, lambda: service.supervisor(key))(), signal.SIGKILL)
    gates.open("loading")
    if victim == "keeper":  # it may have had all it needs, or has the last checkpoint
        assert job.until_said(service, "began")["step"] in (durable, left)
        service.engine.stop(key, GRACE_S)
    assert (service.end(key) == 0) == (victim == "keeper")
    gates.open("writing")
    until(lambda: not mentioning(f"gates {gates.folder}"))
    said = job.said("ended")
    goes_on(job, service, left if said is None else said["step"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "point"),
    points(
        [
            *(("writer", point) for point in IN_WRITERS),
            ("keeper", "writing"),
            ("keeper", "named"),
            ("supervisor", "naming"),
        ],
        [("writer", "writing"), ("writer", "named"), ("keeper", "writing")],
    ),
)
def test_killed_while_the_state_is_written_to_the_disk(
    service: Service, victim: str, point: str
) -> None:
    job, gates, durable = begun(service, f"{victim}-{point}")
    gates.shut(point)
    left = job.whole(service)["step"]
    writer = gates.held(point)
    assert job.checkpoints()[0] == (left if point == "named" else durable)
    if victim == "supervisor":  # of the next run
        key = job.start(service)
        assert job.until_said(service, "began")["step"] == left
        os.kill(service.supervisor(key), signal.SIGKILL)
        service.end(key)
    else:
        os.kill(writer if victim == "writer" else job.keeper_pid(), signal.SIGKILL)
    gates.open(point)
    if victim == "keeper":  # its writer may have had all it needs
        until(lambda: not mentioning(f"gates {gates.folder}"))
        goes_on(job, service, durable, left)
    else:
        until(lambda: job.checkpoints()[0] == left)
        goes_on(job, service, left)


def begun(service: Service, name: str) -> tuple[Job, Gates, int]:
    """A job that has a checkpoint on the disk, of this step."""
    job = Job(service.root, name)
    return job, Gates(job.folder / "gates"), job.whole(service)["step"]
