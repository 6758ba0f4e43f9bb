"""Pollux as a policy: what its search is told, and the cluster that follows an efficiency."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.cluster import Allocation, ClusterView, Decision, JobView, Node
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.rivals.autoscale import band
from boa.policy.rivals.common import WIDEST, rescale_factor
from boa.policy.rivals.pollux import (
    Pollux,
    Population,
    Round,
    _adapted,
    _seed,
    curve_of,
    most_gpus,
)
from boa.policy.rivals.pollux_autoscale import PolluxAutoscale

PER_NODE = 4


@dataclass(frozen=True)
class Known:
    table: Floats | None

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return self.table


def curve(exponent: float = 0.8, widest: int = 16, least: int = 1, across: float = 0.8) -> Known:
    rates = np.arange(widest + 1.0) ** exponent
    rates[:least] = 0.0
    return Known(np.stack([rates, rates * across]))


UNKNOWN = Known(None)


def job(
    name: str,
    prediction: Known | None = None,
    *,
    held: tuple[tuple[int, int], ...] = (),
    tried: int = 16,
    arrival: float = 0.0,
    service: float = 0.0,
    rescalings: int = 0,
    job_class: str = "any",
) -> JobView:
    return JobView(
        id=name,
        job_class=job_class,
        arrival=arrival,
        serial=0,
        epoch=0,
        prediction=prediction or curve(),
        allocation=Allocation("T4", held) if held else None,
        tried={"T4": tried} if tried else {},
        rescale_s=30.0,
        rescalings=rescalings,
        service=service,
    )


def view(*jobs: JobView, nodes: int = 2, now: float = 3600.0, memory: object = None) -> ClusterView:
    return ClusterView(
        now=now,
        jobs=jobs,
        nodes=[Node(n, "T4", PER_NODE) for n in range(nodes)],
        gpu_types={"T4": GpuType(name="T4", gpus_per_node=PER_NODE)},
        next_node=nodes,
        memory=memory,
    )


def widths(decision: Decision) -> dict[str, int]:
    return {name: allocation.width for name, allocation in decision.placements.items()}


# On a fixed cluster


def test_speedups_are_relative_to_the_fair_share() -> None:
    jobs = [job("a"), job("b", curve(0.5)), job("c", curve(0.5, least=2))]
    nodes = view(nodes=2).nodes  # 8 GPUs for three jobs: 3 each, rounded up
    search = Round.of(view(*jobs), "T4").search(nodes)
    assert search.rates[:, 0, 3] == pytest.approx(1.0)
    assert search.rates[1, 0, 12] == pytest.approx(2.0)
    assert search.rates[0, 1, 4] / search.rates[0, 0, 4] == pytest.approx(0.8)
    assert search.min_gpus.tolist() == [1, 1, 2]
    assert search.capacity.tolist() == [4, 4]
    # A share wider than a node is one across nodes.
    alone = Round.of(view(*jobs[:1]), "T4").search(nodes)
    assert alone.rates[0, 1, 8] == pytest.approx(1.0)
    assert alone.rates[0, 0, 4] == pytest.approx(0.5**0.8 / 0.8)


def test_a_job_of_which_nothing_is_known_is_taken_to_scale_perfectly() -> None:
    rates = curve_of(job("new", UNKNOWN), "T4")
    assert rates.tolist() == [list(range(WIDEST + 1))] * 2


@pytest.mark.parametrize(("tried", "most"), [(0, 1), (1, 2), (2, 4), (3, 6), (8, 16), (16, 16)])
def test_a_job_may_grow_to_twice_what_it_has_tried_and_can_use(tried: int, most: int) -> None:
    assert most_gpus(job("a", tried=tried), "T4", curve_of(job("a"), "T4")) == most
    assert most_gpus(job("b", UNKNOWN, tried=64), "T4", curve_of(job("b", UNKNOWN), "T4")) == 64


def test_neumf_is_kept_on_one_gpu_as_in_the_published_runs() -> None:
    assert widths(Pollux().decide(view(job("a", job_class="neumf")))) == {"a": 1}


def test_new_jobs_get_one_gpu_at_first() -> None:
    new = [job(f"new-{n}", UNKNOWN, tried=0, arrival=3550.0) for n in range(3)]
    assert widths(Pollux().decide(view(*new))) == {"new-0": 1, "new-1": 1, "new-2": 1}


def test_a_running_job_doubles() -> None:
    grown = job("a", tried=2, held=((0, 2),))
    assert widths(Pollux().decide(view(grown))) == {"a": 4}


def test_a_rescaling_must_be_worth_it() -> None:
    assert rescale_factor(100.0, 0, 30.0) == pytest.approx(100 / 130)
    assert rescale_factor(100.0, 2, 30.0) == pytest.approx(40 / 130)
    assert rescale_factor(100.0, 9, 30.0) == 0.0
    assert rescale_factor(0.0, 0, 30.0) == 0.0
    # 4 -> 8 GPUs gains a factor of 2**0.8 * 0.8 = 1.39: not for a job that rescaled so often.
    often = job("a", held=((0, 4),), rescalings=40)
    assert widths(Pollux().decide(view(often))) == {"a": 4}
    assert widths(Pollux().decide(view(replace(often, rescalings=0)))) == {"a": 8}


def test_jobs_that_had_the_least_go_first() -> None:
    jobs = [job("much", service=9.0), job("none", arrival=5.0), job("older", arrival=1.0)]
    found = Round.of(view(*jobs), "T4").optimised(view(nodes=2).nodes, None, 0).found
    assert found is not None
    assert found.jobs == ("older", "none", "much")


def test_the_last_population_is_adapted_to_jobs_and_nodes_that_come_and_go() -> None:
    states = np.array([[[1, 2, 3], [4, 0, 0]], [[0, 0, 1], [0, 2, 0]]])
    last = Population(("a", "b"), (0, 1, 2), states)
    nodes = [Node(2, "T4", 4), Node(7, "T4", 4), Node(0, "T4", 4)]
    found = _adapted(last, [job("new"), job("b"), job("a")], nodes)
    assert found.tolist() == [
        [[0, 0, 0], [0, 0, 4], [3, 0, 1]],
        [[0, 0, 0], [0, 0, 0], [1, 0, 0]],
    ]
    assert _adapted(last, [job("new")], nodes).tolist() == [[[0, 0, 0]]] * 2
    assert _adapted(None, [job("a")], nodes).shape == (0, 1, 3)


def test_what_was_found_is_remembered_for_the_next_round() -> None:
    first = Pollux().decide(view(job("a"), job("b", arrival=1.0)))
    held = first.placements
    jobs = [job(name, held=held[name].nodes, arrival=a) for name, a in (("a", 0.0), ("b", 1.0))]
    second = Pollux().decide(view(*jobs, now=3660.0, memory=first.memory))
    assert second.placements == first.placements
    assert second.memory.jobs == ("a", "b")
    gone = Pollux().decide(view(jobs[1], job("c", arrival=9.0), memory=second.memory))
    assert set(gone.placements) == {"b", "c"}


def test_the_draw_changes_with_the_round_and_the_seed_only() -> None:
    assert _seed(1, 60.0, 2) == _seed(1, 60.0, 2)
    assert len({_seed(1, 60.0, 2), _seed(1, 120.0, 2), _seed(2, 60.0, 2)}) == 3


def test_an_empty_cluster_or_queue_is_no_problem() -> None:
    assert Pollux().decide(view()).placements == {}
    assert Pollux().decide(view(job("a"), nodes=0)).placements == {}


@settings(max_examples=20)
@given(
    exponents=st.lists(st.sampled_from([0.2, 0.5, 0.8, 1.0]), max_size=6),
    tried=st.integers(0, 8),
    nodes=st.integers(1, 3),
    seed=st.integers(0, 9),
)
def test_a_decision_is_pure_and_fits_on_the_cluster(
    exponents: list[float], tried: int, nodes: int, seed: int
) -> None:
    jobs = [job(f"j{n}", curve(e), tried=tried) for n, e in enumerate(exponents)]
    first, again = (Pollux(seed).decide(view(*jobs, nodes=nodes)) for _ in range(2))
    assert first.placements == again.placements
    used: dict[int, int] = {}
    for allocation in first.placements.values():
        assert allocation.width <= max(2 * tried, 1)
        for node, count in allocation.nodes:
            used[node] = used.get(node, 0) + count
    assert all(0 <= node < nodes and count <= PER_NODE for node, count in used.items())


# On one that follows


def efficiency(decision: Decision, curves: Mapping[str, Known]) -> float:
    total = 0.0
    for name, allocation in decision.placements.items():
        table = curves[name].table
        assert table is not None
        total += table[int(len(allocation.nodes) > 1), allocation.width]
    assert decision.nodes is not None
    return total / (PER_NODE * len(decision.nodes))


def test_without_jobs_there_are_no_nodes() -> None:
    decision = PolluxAutoscale(0.5).decide(view(nodes=3))
    assert decision.nodes == ()
    assert decision.memory.population is None
    assert decision.memory.report == {"target_efficiency": 0.5}


def test_the_first_job_gets_a_first_node() -> None:
    decision = PolluxAutoscale(0.5).decide(view(job("a"), nodes=0))
    assert decision.nodes is not None
    assert len(decision.nodes) >= 1
    assert "a" in decision.placements


@pytest.mark.parametrize("target", [0.3, 0.5, 0.7])
def test_the_efficiency_comes_as_close_to_the_target_as_whole_nodes_allow(target: float) -> None:
    jobs = [job(f"j{n}", curve(0.5), arrival=float(n)) for n in range(4)]
    decision = PolluxAutoscale(target).decide(view(*jobs, nodes=1))
    found = efficiency(decision, dict.fromkeys((j.id for j in jobs), curve(0.5)))
    assert found == pytest.approx(target, abs=0.12)


def test_inside_the_band_the_cluster_is_left_alone() -> None:
    curves = {f"j{n}": curve(0.5) for n in range(2)}
    jobs = [job(name, known) for name, known in curves.items()]
    here = Pollux().decide(view(*jobs, nodes=2))
    now = efficiency(here, curves)
    assert now == pytest.approx(0.5)
    for target in (0.5, 0.39, 0.58):
        assert abs(now - target) < band(target)
        decision = PolluxAutoscale(target).decide(view(*jobs, nodes=2))
        assert decision.nodes == here.nodes, target
    grown = PolluxAutoscale(now / 2).decide(view(*jobs, nodes=2))
    assert len(grown.nodes or ()) > 2
    shrunk = PolluxAutoscale((1 + now) / 2).decide(view(*jobs, nodes=2))
    assert len(shrunk.nodes or ()) < 2


def test_the_cluster_grows_for_waiting_jobs() -> None:
    """They raise the efficiency that more nodes would have."""
    sizes = []
    for count in (1, 4, 12):
        jobs = [job(f"j{n}", UNKNOWN, tried=0, arrival=3550.0 + n) for n in range(count)]
        decision = PolluxAutoscale(0.6).decide(view(*jobs, nodes=1))
        sizes.append(len(decision.nodes or ()))
        assert len(decision.placements) == count
    assert sizes == [1, 1, 3]


def test_the_busiest_nodes_stay_when_the_cluster_shrinks() -> None:
    one = job("a", curve(0.3), held=((1, 4),), tried=4)
    decision = PolluxAutoscale(0.8).decide(view(one, nodes=4))
    assert [node.id for node in decision.nodes or ()] == [1]
