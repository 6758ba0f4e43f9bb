"""Rivals that run jobs as asked on a fixed cluster: QSSF, AlloX and Shockwave."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import Allocation, ClusterView, Decision, JobView, Node, Policy, UserRequest
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.rivals.allox import AlloX, matched
from boa.policy.rivals.qssf import Qssf
from boa.policy.rivals.shockwave import ROUND_S, ROUNDS, Horizon, Shockwave, planned

TYPES = {
    "T4": GpuType(name="T4", gpus_per_node=4),
    "A100": GpuType(name="A100", gpus_per_node=4),
}


class Linear:
    """As many times faster as it has GPUs, by type."""

    def __init__(self, **speeds: float) -> None:
        self.speeds = speeds or {"T4": 1.0}

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        if gpu not in self.speeds:
            return None
        return np.tile(self.speeds[gpu] * np.arange(17.0), (2, 1))


def job(
    name: str,
    width: int,
    work: float,
    held: Allocation | None = None,
    left: float = 1.0,
    arrival: float = 0.0,
    **speeds: float,
) -> JobView:
    return JobView(
        id=name,
        job_class="any",
        arrival=arrival,
        serial=0,
        epoch=0,
        left=left,
        work=(work,),
        prediction=Linear(**speeds),
        asked=UserRequest(width),
        allocation=held,
    )


def decide(
    policy: Policy, *jobs: JobView, nodes: str = "T4", memory: object = None, now: float = 0.0
) -> Decision:
    there = [Node(n, gpu, 4) for n, gpu in enumerate(nodes.split())]
    types = {gpu: TYPES[gpu] for gpu in dict.fromkeys(nodes.split())}
    return policy.decide(
        ClusterView(now=now, jobs=jobs, nodes=there, gpu_types=types, memory=memory)
    )


def runs(decision: Decision) -> set[str]:
    return set(decision.placements)


# QSSF


def test_the_least_service_goes_first_and_service_is_time_times_gpus() -> None:
    long_narrow, short_wide = job("narrow", 2, 300.0), job("wide", 4, 400.0)
    assert runs(decide(Qssf(), short_wide, long_narrow)) == {"narrow"}
    assert runs(decide(Qssf(), replace(short_wide, work=(200.0,)), long_narrow)) == {"wide"}


def test_nobody_is_interrupted_and_the_first_in_line_blocks() -> None:
    running = job("running", 2, 9e9, held=Allocation("T4", ((0, 2),)))
    small_wide, large_narrow = job("wide", 4, 4.0), job("narrow", 1, 1e6)
    assert runs(decide(Qssf(), running, small_wide, large_narrow)) == {"running"}
    assert runs(decide(Qssf(), running, large_narrow)) == {"running", "narrow"}


# AlloX


@given(
    seconds=st.lists(
        st.tuples(st.floats(1.0, 100.0), st.floats(1.0, 100.0)), min_size=1, max_size=4
    )
)
def test_the_matching_is_the_schedule_of_least_total_jct(
    seconds: list[tuple[float, float]],
) -> None:
    """Two lines, by trying every order on every line."""
    jobs = [job(str(n), 1, 1.0) for n in range(len(seconds))]
    found = matched(jobs, np.array(seconds), {"T4": 1, "A100": 1})

    def total(order: tuple[int, ...], types: tuple[int, ...]) -> float:
        ends, sums = [0.0, 0.0], 0.0
        for one in order:
            ends[types[one]] += seconds[one][types[one]]
            sums += ends[types[one]]
        return sums

    count = range(len(seconds))
    best = min(
        total(order, types)
        for order in permutations(count)
        for types in product(range(2), repeat=len(seconds))
    )
    gpus = {int(one.id): ["T4", "A100"].index(gpu) for one, gpu in found}
    order = tuple(int(one.id) for one, _ in found)
    assert total(order, tuple(gpus[n] for n in count)) == pytest.approx(best)


def test_jobs_go_to_the_type_that_is_relatively_best_and_stay() -> None:
    fast, other = job("fast", 4, 100.0, T4=1.0, A100=10.0), job("other", 4, 100.0, T4=1.0, A100=1.1)
    found = decide(AlloX(), fast, other, nodes="T4 A100").placements
    assert {name: held.gpu for name, held in found.items()} == {"fast": "A100", "other": "T4"}
    stays = replace(other, allocation=Allocation("A100", ((1, 4),)))
    found = decide(AlloX(), fast, stays, nodes="T4 A100").placements
    assert found["other"].gpu == "A100"


def test_a_wide_job_that_is_first_in_line_is_not_overtaken_for_ever() -> None:
    running = job("running", 1, 1e9, held=Allocation("T4", ((0, 1),)))
    assert runs(decide(AlloX(), running, job("wide", 4, 4.0), job("narrow", 1, 1e6))) == {"running"}


# Shockwave


def test_a_job_that_progress_means_more_to_goes_first() -> None:
    """A round is all of the one and a hundredth of the other."""
    short, long = job("short", 4, 4 * ROUND_S), job("long", 4, 400 * ROUND_S)
    assert runs(decide(Shockwave(), long, short)) == {"short"}


@given(works=st.lists(st.floats(100.0, 1e6), min_size=1, max_size=8), width=st.integers(1, 4))
def test_no_more_rounds_are_planned_than_there_are_and_all_are_used(
    works: list[float], width: int
) -> None:
    jobs = [job(str(n), width, work) for n, work in enumerate(works)]
    times = {one.id: (work / width, work / width) for one, work in zip(jobs, works, strict=True)}
    rounds = planned(jobs, times, 4, 1.0, 0.0)
    needed = {name: min(int(np.ceil(rest / ROUND_S)), ROUNDS) for name, (rest, _) in times.items()}
    assert all(0 <= rounds[name] <= needed[name] for name in rounds)
    room = 4 * ROUNDS / width
    assert sum(rounds.values()) >= min(sum(needed.values()), room) - 1e-6
    assert sum(rounds.values()) <= room + len(jobs)  # one each by rounding up


def test_a_plan_is_kept_until_somebody_comes_or_goes() -> None:
    first = decide(Shockwave(), job("a", 4, 4e4), job("b", 4, 4e4)).memory
    assert isinstance(first, Horizon)
    again = decide(Shockwave(), job("a", 4, 4e4), job("b", 4, 4e4), memory=first).memory
    assert sum(again.rounds.values()) == sum(first.rounds.values()) - 1
    alone = decide(Shockwave(), job("a", 4, 4e4), memory=again).memory
    assert alone.jobs == {"a"}
    assert alone.rounds == {"a": ROUNDS - 1}


def test_who_is_late_counts_more() -> None:
    """Both have had as much; the one has waited for a day."""
    late, fresh = job("late", 4, 4e4), job("fresh", 4, 4e4, arrival=86_400.0)
    times = {"late": (1e4, 1e4), "fresh": (1e4, 1e4)}
    found = planned([late, fresh], times, 4, 1.0, 86_400.0)
    assert found["late"] > found["fresh"]


def test_gpus_that_are_left_go_to_the_longest_rest() -> None:
    memory = Horizon(frozenset("abc"), {"a": 1, "b": 0, "c": 0})
    jobs = [job("a", 2, 1e3), job("b", 2, 1e4), job("c", 2, 1e5)]
    assert runs(decide(Shockwave(), *jobs, memory=memory)) == {"a", "c"}
