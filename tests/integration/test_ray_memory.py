"""A large training on a Ray cluster goes from one run to the next through memory, across nodes."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from _rays import Rays, fixed_cluster
from boa import raylink
from boa.engines.ray import RayEngine
from boa.train.checkpoints import newest_first
from boa.train.keeper import pointer
from boa.train.keeper.client import KeeperClient, listens
from keeping import until
from local_runs import alive
from memory_jobs import MemoryJob
from ray_runs import NAMESPACE

pytestmark = [pytest.mark.ray, pytest.mark.slow]
PLACE = Path(tempfile.gettempdir(), f"boa-memory-{os.getuid()}", NAMESPACE)


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Rays, tuple[str, str]]]:
    with fixed_cluster([("A100", 1), ("A100", 1)]) as rays:
        ray = raylink.connect(rays.address, NAMESPACE)
        first, second = (node.id for node in raylink.nodes(ray) if "A100" in node.resources)
        yield rays, (first, second)
        ray.shutdown()


@pytest.fixture
def job(
    nodes: tuple[Rays, tuple[str, str]], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[MemoryJob]:
    name = f"job-{os.getpid()}-{abs(hash(request.node.name))}"
    rays, names = nodes
    engine = RayEngine(
        tmp_path / "runs",
        address=rays.address,
        namespace=NAMESPACE,
        log_bytes=10**6,
        memory_share=0.1,
    )
    job = MemoryJob(tmp_path, engine, name)
    yield job
    job.close()
    for node in names:
        shutil.rmtree(PLACE / node / name, ignore_errors=True)  # then its keeper ends


def test_a_run_on_another_node_has_from_memory_what_the_last_one_left(
    nodes: tuple[Rays, tuple[str, str]], job: MemoryJob
) -> None:
    _, (first, second) = nodes
    left = job.ended(job.run(1, how="unwritten", nodes=(first,), gpu_type="A100"))
    folder = PLACE / first / job.job
    assert folder.stat().st_mode & 0o777 == 0o700
    assert listens(folder), "though its actor is gone"
    assert pointer.nodes(job.home) == {first}
    assert not listens(PLACE / second / job.job)
    both = job.run(1, 1, how="disk", nodes=(second, first), gpu_type="A100")
    assert job.began(both) == left, "and it was on no disk"


def test_what_both_nodes_left_is_written_and_then_their_keepers_hold_nothing(
    nodes: tuple[Rays, tuple[str, str]], job: MemoryJob
) -> None:
    _, names = nodes
    left = job.ended(job.run(1, 1, nodes=names, gpu_type="A100"))
    assert pointer.nodes(job.home) in ({*names}, frozenset()), "or it is written already"
    until(lambda: newest_first(job.home))
    until(lambda: not pointer.nodes(job.home))
    said = job.run(1, how="disk", nodes=names[1:], gpu_type="A100")
    assert job.began(said) == left
    for node in names:
        client = KeeperClient(PLACE / node / job.job)
        keeper = client.where().pid
        client.close()
        shutil.rmtree(PLACE / node / job.job)
        until(lambda: not alive(keeper))  # noqa: B023
