"""Gavel: who has had least of what is due goes first, on the GPUs that were asked for."""

from collections.abc import Mapping

import numpy as np
import pytest

from boa.errors import UsageError
from boa.model.cluster import Allocation, ClusterView, Decision, JobView, Node, UserRequest
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.registry import Knobs, choose
from boa.policy.rivals.gavel import FIRST, Gavel, Had
from boa.policy.rivals.time_shares import max_sum

TYPES = {
    "T4": GpuType(name="T4", gpus_per_node=4),
    "A100": GpuType(name="A100", gpus_per_node=8),
}
GAVEL = Gavel("gavel", max_sum)


class Speeds:
    """Rates by type, whatever the width."""

    def __init__(self, **speeds: float) -> None:
        self.speeds = speeds

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return np.full((2, 17), self.speeds[gpu]) if gpu in self.speeds else None


def job(
    name: str,
    width: int,
    held: tuple[str, tuple[tuple[int, int], ...]] | None = None,
    **speeds: float,
) -> JobView:
    return JobView(
        id=name,
        job_class="any",
        arrival=0.0,
        serial=0,
        epoch=0,
        work=(100.0,),
        prediction=Speeds(**speeds or {"T4": 1.0}),
        asked=UserRequest(width),
        allocation=None if held is None else Allocation(*held),
    )


def decide(
    *jobs: JobView, nodes: str = "T4", memory: object = None, policy: Gavel = GAVEL
) -> Decision:
    there = [Node(n, gpu, TYPES[gpu].gpus_per_node) for n, gpu in enumerate(nodes.split())]
    types = {gpu: TYPES[gpu] for gpu in dict.fromkeys(nodes.split())}
    return policy.decide(
        ClusterView(now=0.0, jobs=jobs, nodes=there, gpu_types=types, memory=memory)
    )


def held(decision: Decision) -> dict[str, tuple[str, int]]:
    return {name: (one.gpu, one.width) for name, one in decision.placements.items()}


def test_jobs_run_at_their_width_or_not_at_all() -> None:
    found = held(decide(job("a", 3), job("b", 2), job("c", 1)))
    assert set(found.values()) <= {("T4", 3), ("T4", 2), ("T4", 1)}
    assert sum(width for _, width in found.values()) <= 4
    assert len(found) == 2


def test_every_job_goes_to_the_type_that_the_program_gives_it() -> None:
    found = held(
        decide(job("a", 1, T4=8.0, A100=9.0), job("b", 8, T4=1.0, A100=9.0), nodes="T4 A100")
    )
    assert found == {"a": ("T4", 1), "b": ("A100", 8)}


def test_who_adds_most_progress_goes_first() -> None:
    slow, fast = job("slow", 4, T4=1.0), job("fast", 4, T4=9.0)
    assert held(decide(slow, fast)) == {"fast": ("T4", 4)}
    assert held(decide(slow, fast, nodes="T4 T4")) == {"slow": ("T4", 4), "fast": ("T4", 4)}


def test_equal_jobs_take_turns_if_they_are_treated_equally() -> None:
    """Two jobs for one node: each has half of the time."""
    fair = Gavel("gavel", max_sum, symmetric=True)
    memory: object = None
    had: dict[str, int] = {"a": 0, "b": 0}
    for _ in range(6):
        decision = decide(job("a", 4), job("b", 4), memory=memory, policy=fair)
        memory = decision.memory
        (runs,) = decision.placements
        had[runs] += 1
    assert had == {"a": 3, "b": 3}


def test_the_vertex_lets_one_end_before_the_other() -> None:
    memory: object = None
    ran = set()
    for _ in range(4):
        decision = decide(job("a", 4), job("b", 4), memory=memory)
        memory = decision.memory
        ran |= set(decision.placements)
    assert len(ran) == 1


def test_rounds_are_counted_by_type_and_forgotten_with_their_job() -> None:
    decision = decide(job("a", 4), job("b", 1), nodes="T4 A100")
    memory = decision.memory
    assert isinstance(memory, Had)
    assert memory.in_all.sum() == 4 * FIRST + len(decision.placements)
    after = decide(job("b", 1), nodes="T4 A100", memory=memory).memory
    assert set(after.by_job) == {"b"}
    assert after.in_all.sum() == memory.in_all.sum() + 1


def test_who_stays_keeps_the_gpus_and_the_widest_go_first() -> None:
    there = ("T4", ((1, 2),))
    found = decide(job("a", 2, there), job("b", 4), nodes="T4 T4").placements
    assert found["a"] == Allocation(*there)
    assert found["b"] == Allocation("T4", ((0, 4),))
    moved = decide(job("a", 2, ("T4", ((0, 2),))), job("b", 4), nodes="T4 T4").placements
    assert moved["b"] == Allocation("T4", ((0, 4),)), "placed first, in the order of the nodes"
    assert moved["a"] == Allocation("T4", ((1, 2),))


def test_a_job_that_runs_nowhere_waits() -> None:
    assert held(decide(job("a", 16), job("b", 1, A100=1.0), job("c", 1))) == {"c": ("T4", 1)}


def test_without_jobs_nothing_is_given() -> None:
    assert not decide().placements


@pytest.mark.parametrize("name", ["gavel", "gavel-maxmin", "themis"])
def test_all_of_its_objectives_share_out_what_there_is(name: str) -> None:
    policy = choose(name, Knobs(nodes={"T4": 1})).policy
    assert isinstance(policy, Gavel)
    found: Mapping[str, object] = decide(job("a", 2), job("b", 2), policy=policy).placements
    assert set(found) == {"a", "b"}


def test_only_who_takes_turns_can_be_symmetric() -> None:
    with pytest.raises(UsageError, match="--symmetric is for gavel, gavel-maxmin, themis"):
        choose("tiresias", Knobs(nodes={"T4": 1}, symmetric=True))
