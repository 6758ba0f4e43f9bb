"""Tiresias: least attained service first, in two queues."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import Allocation, ClusterView, JobView, Node, UserRequest
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.rivals.tiresias import Tiresias


@dataclass(frozen=True)
class Anywhere:
    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return np.ones((2, 65))


def job(
    name: str, gpus: int, arrival: float, service: float = 0.0, held: Allocation | None = None
) -> JobView:
    return JobView(
        id=name,
        job_class="any",
        arrival=arrival,
        serial=0,
        epoch=0,
        prediction=Anywhere(),
        asked=UserRequest(gpus=gpus),
        service=service,
        allocation=held,
    )


def view(*jobs: JobView, nodes: int = 1) -> ClusterView:
    return ClusterView(
        now=10_000.0,
        jobs=jobs,
        nodes=[Node(n, "T4", 4) for n in range(nodes)],
        gpu_types={"T4": GpuType(name="T4", gpus_per_node=4)},
        next_node=nodes,
    )


WHOLE = Allocation("T4", ((0, 4),))


SHARE = 57_600.0


def test_a_newcomer_preempts_a_job_that_has_had_its_share() -> None:
    old = job("old", 4, 0.0, service=SHARE, held=WHOLE)
    assert set(Tiresias().decide(view(old, job("new", 4, 9_000.0))).placements) == {"new"}


def test_within_the_first_queue_the_first_to_arrive_runs_on() -> None:
    old = job("old", 4, 0.0, service=SHARE - 1, held=WHOLE)
    decision = Tiresias().decide(view(old, job("new", 4, 9_000.0)))
    assert decision.placements == {"old": WHOLE}


def test_within_the_second_queue_the_first_to_enter_goes_first() -> None:
    a, b = job("a", 4, 0.0, service=SHARE), job("b", 4, 1.0, service=2 * SHARE)
    assert set(Tiresias().decide(view(a, b)).placements) == {"a"}
    entered_before = Tiresias().decide(view(b, nodes=0)).memory
    decision = Tiresias().decide(replace(view(a, b), memory=entered_before))
    assert set(decision.placements) == {"b"}
    assert decision.memory == ("b", "a")


def test_who_has_ended_leaves_its_queue() -> None:
    decision = Tiresias().decide(replace(view(job("a", 4, 0.0)), memory=("gone",)))
    assert decision.memory == ()


def test_a_job_too_wide_for_what_is_left_is_passed_over() -> None:
    jobs = (job("a", 3, 0.0), job("b", 2, 1.0), job("c", 1, 2.0))
    assert set(Tiresias().decide(view(*jobs)).placements) == {"a", "c"}


def test_running_jobs_stay_where_they_are_and_others_take_the_emptiest_nodes() -> None:
    held = Allocation("T4", ((1, 2),))
    jobs = (job("a", 2, 5.0, service=9000.0, held=held), job("b", 5, 6.0), job("c", 1, 7.0))
    decision = Tiresias().decide(view(*jobs, nodes=2))
    assert decision.placements["a"] == held
    assert decision.placements["b"] == Allocation("T4", ((0, 4), (1, 1)))
    assert decision.placements["c"] == Allocation("T4", ((1, 1),))


@given(
    asked=st.lists(st.tuples(st.integers(1, 9), st.floats(0, 2 * SHARE)), max_size=9),
    nodes=st.integers(0, 4),
)
def test_capacity_is_never_exceeded_and_requests_are_met_exactly(
    asked: list[tuple[int, float]], nodes: int
) -> None:
    jobs = [job(f"job-{n}", gpus, float(n), service) for n, (gpus, service) in enumerate(asked)]
    decision = Tiresias().decide(view(*jobs, nodes=nodes))
    used: dict[int, int] = {}
    for name, allocation in decision.placements.items():
        assert allocation.width == asked[int(name.removeprefix("job-"))][0]
        for node, count in allocation.nodes:
            used[node] = used.get(node, 0) + count
    assert all(node < nodes and count <= 4 for node, count in used.items())
