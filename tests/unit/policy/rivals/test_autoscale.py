"""Autoscaling towards a target efficiency, and Rubick's variant of it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import ClusterView, JobView, Node
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.rivals.autoscale import (
    Ceiling,
    band,
    base_width,
    closest_size,
    closest_size_monotone,
    contribution,
    efficiency,
    normalised_speedup,
    outside_band,
)
from boa.policy.rivals.rubick_autoscale import RubickAutoscale


@dataclass(frozen=True)
class Known:
    table: Floats

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return self.table


def table(speeds: dict[int, float]) -> Floats:
    rates = np.zeros((2, 17))
    for width, speed in speeds.items():
        rates[:, width] = speed
    return rates


ORDINARY = table({k: k**0.5 for k in range(1, 17)})
BASE_8 = table({8: 3.0, 16: 4.0})


def job(name: str, rates: Floats, arrival: float = 0.0) -> JobView:
    return JobView(
        id=name,
        job_class=name,
        arrival=arrival,
        serial=0,
        epoch=0,
        prediction=Known(rates),
        rescale_s=260.0,
    )


def view(*jobs: JobView, nodes: int = 0, per_node: int = 4, now: float = 60.0) -> ClusterView:
    return ClusterView(
        now=now,
        jobs=jobs,
        nodes=[Node(n, "A800", per_node) for n in range(nodes)],
        gpu_types={"A800": GpuType(name="A800", gpus_per_node=per_node)},
        next_node=nodes,
    )


# The shared helpers


def test_the_band_is_three_tenths_of_the_smaller_side() -> None:
    assert band(0.5) == pytest.approx(0.15)
    assert band(0.9) == pytest.approx(0.03)
    assert band(0.1) == pytest.approx(0.03)
    assert not outside_band(0.36, 0.5)
    assert outside_band(0.34, 0.5)
    assert outside_band(0.66, 0.5)


def test_widths_that_only_offloading_makes_possible_are_no_base() -> None:
    assert base_width(ORDINARY) == 1
    assert base_width(BASE_8) == 8
    assert base_width(table({1: 0.02, 8: 0.12, 16: 1.0})) == 16
    assert base_width(np.zeros((2, 9))) is None


def test_speedups_are_relative_to_the_base_width() -> None:
    assert normalised_speedup(ORDINARY, 4) == pytest.approx(2.0)
    assert normalised_speedup(BASE_8, 8) == 1.0
    assert normalised_speedup(BASE_8, 16, across=True) == pytest.approx(4 / 3)
    assert normalised_speedup(ORDINARY, 8, base=4) == pytest.approx(2**0.5)
    assert normalised_speedup(BASE_8, 4) == normalised_speedup(BASE_8, 99) == 0.0


def test_an_empty_cluster_has_no_efficiency() -> None:
    assert efficiency([], 0) == 0.0
    assert efficiency([1.0, 2.0], 6) == 0.5


@given(
    sixteenths=st.lists(st.integers(0, 16), min_size=1, max_size=30),
    c=st.integers(0, 16),
    low=st.integers(0, 3),
)
def test_binary_search_agrees_with_enumeration_where_efficiency_falls(
    sixteenths: list[int], c: int, low: int
) -> None:
    falling = sorted((n / 16 for n in sixteenths), reverse=True)  # exact, so that ties are ties
    high = low + len(falling) - 1

    def at(size: int) -> float:
        return falling[size - low]

    by_search = closest_size_monotone(low, high, at, c / 16)
    assert by_search == closest_size(range(low, high + 1), at, c / 16)


@given(low=st.integers(1, 8), data=st.data(), c=st.integers(0, 16))
def test_a_ceiling_spares_trials_and_changes_no_answer(
    low: int, data: st.DataObject, c: int
) -> None:
    high = data.draw(st.integers(low, low + 40))
    count = high - low + 1
    steps = data.draw(st.lists(st.integers(0, 16), min_size=count, max_size=count))
    falling = sorted((step / 16 for step in steps), reverse=True)
    above = data.draw(st.lists(st.integers(0, 16), min_size=count, max_size=count))
    tried: list[int] = []

    def at(size: int) -> float:
        tried.append(size)
        return falling[size - low]

    plainly = closest_size_monotone(low, high, at, c / 16)
    without = len(tried)
    found = closest_size_monotone(
        low, high, at, c / 16, lambda size: falling[size - low] + above[size - low] / 16
    )
    assert found == plainly
    assert len(tried) - without <= without


@given(data=st.data(), jobs=st.integers(1, 4), gpus=st.integers(1, 12))
def test_no_sharing_of_gpus_is_above_the_ceiling(data: st.DataObject, jobs: int, gpus: int) -> None:
    speedup = st.lists(st.floats(0, 8), min_size=4, max_size=4)
    values = np.array([data.draw(speedup) for _ in range(jobs)])
    sizes = np.array([1, 2, 4, 8])
    best = np.zeros(gpus + 1)
    for row in values:
        with_it = [
            np.concatenate([np.full(min(size, gpus + 1), -np.inf), best[:-size] + value])
            for size, value in zip(sizes.tolist(), row.tolist(), strict=True)
            if size <= gpus
        ]
        best = np.max([best, *with_it], axis=0)
    assert efficiency([best[gpus]], gpus) <= Ceiling.of(values, sizes).at(gpus)


def test_of_equally_close_sizes_the_largest_is_taken() -> None:
    by_size = {1: 0.75, 2: 0.25, 3: 0.25}.__getitem__
    assert closest_size([1, 2, 3], by_size, 0.5) == 3
    assert closest_size_monotone(1, 3, by_size, 0.5) == 3


# The appendix: an ordinary job and one of base 8


def best_efficiency(gpus: int, *, by_base: bool) -> float:
    """The large job runs if it fits beside the ordinary one, which takes four GPUs then."""
    if gpus < 12:
        return efficiency([normalised_speedup(ORDINARY, gpus)], gpus)
    large = contribution(normalised_speedup(BASE_8, 8), 8, by_base=by_base)
    return efficiency([normalised_speedup(ORDINARY, gpus - 8), large], gpus)


def test_efficiency_rises_where_a_job_of_a_large_base_begins_to_run() -> None:
    assert best_efficiency(12, by_base=True) > best_efficiency(4, by_base=True)
    assert best_efficiency(12, by_base=False) < best_efficiency(4, by_base=False)
    # With an ordinary job that hardly scales the paper's formula is not monotone either.
    flat = efficiency([1.2], 11)
    assert efficiency([1.1, normalised_speedup(BASE_8, 8)], 12) > flat > efficiency([1.2], 12)


def test_a_binary_search_would_miss_the_closest_size() -> None:
    sizes = range(1, 17)

    def at(size: int) -> float:
        return best_efficiency(size, by_base=True)

    assert closest_size(sizes, at, 0.9) == 12
    assert closest_size_monotone(1, 16, at, 0.9) != 12


# Rubick's variant


def test_without_jobs_there_are_no_nodes() -> None:
    decision = RubickAutoscale(0.5).decide(view(nodes=3))
    assert decision.nodes == ()
    assert not decision.placements


def test_a_cluster_too_small_for_the_only_job_grows() -> None:
    for policy in (RubickAutoscale(0.1), RubickAutoscale(0.1, queueing=True)):
        decision = policy.decide(view(job("large", BASE_8), nodes=1))
        assert decision.placements["large"].width >= 8


def test_the_appendix_example_runs_both_jobs() -> None:
    jobs = (job("ordinary", ORDINARY), job("large", BASE_8, 1.0))
    decision = RubickAutoscale(0.9, by_base=True).decide(view(*jobs, nodes=1))
    assert decision.nodes is not None
    assert len(decision.nodes) == 3
    assert {name: a.width for name, a in decision.placements.items()} == {
        "ordinary": 4,
        "large": 8,
    }


def test_with_queueing_a_large_job_waits_as_long_as_the_others_are_efficient() -> None:
    jobs = (job("ordinary", ORDINARY), job("large", BASE_8, 1.0))
    queueing = RubickAutoscale(0.5, queueing=True).decide(view(*jobs, nodes=1))
    assert set(queueing.placements) == {"ordinary"}
    assert set(RubickAutoscale(0.5).decide(view(*jobs, nodes=1)).placements) == {
        "ordinary",
        "large",
    }


def test_a_higher_target_rents_fewer_nodes() -> None:
    jobs = [job(f"job-{n}", ORDINARY, float(n)) for n in range(6)]
    sizes = [
        len(RubickAutoscale(c).decide(view(*jobs)).nodes or ()) for c in (0.45, 0.6, 0.75, 0.95)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_the_busiest_nodes_stay_when_the_cluster_shrinks() -> None:
    jobs = [job(f"job-{n}", ORDINARY, float(n)) for n in range(4)]
    policy = RubickAutoscale(0.5)
    before = policy.decide(view(*jobs))
    running = [replace(j, allocation=before.placements[j.id]) for j in jobs[:1]]
    assert before.nodes is not None
    now = replace(view(*running), nodes=before.nodes, next_node=len(before.nodes), now=120.0)
    after = policy.decide(now)
    assert after.placements["job-0"] == before.placements["job-0"]
    assert after.nodes is not None
    assert len(after.nodes) < len(before.nodes)
