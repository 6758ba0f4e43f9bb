"""Sia as a policy: what a configuration is worth, and the cluster that follows an efficiency."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.cluster import Allocation, ClusterView, Decision, JobView, Node
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.placement.packing import place
from boa.policy.rivals.autoscale import band, outside_band
from boa.policy.rivals.sia import MOST, Configurations, Round, Sia, _rescale_factor, counts
from boa.policy.rivals.sia_autoscale import SiaAutoscale

TYPES = {
    "T4": GpuType(name="T4", gpus_per_node=4),
    "A100": GpuType(name="A100", gpus_per_node=8),
}


@dataclass(frozen=True)
class Known:
    tables: Mapping[str, Floats]

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return self.tables.get(gpu)


def table(exponent: float, speed: float = 1.0, least: int = 1, widest: int = 64) -> Floats:
    rates = speed * np.arange(widest + 1.0) ** exponent
    rates[:least] = 0.0
    return np.stack([rates, 0.9 * rates])


BOTH = Known({"T4": table(0.8), "A100": table(0.8, 3.0)})


def job(
    name: str,
    prediction: Known = BOTH,
    *,
    held: Allocation | None = None,
    tried: int = 64,
    arrival: float = 0.0,
    rescalings: int = 0,
    job_class: str = "any",
) -> JobView:
    return JobView(
        id=name,
        job_class=job_class,
        arrival=arrival,
        serial=0,
        epoch=0,
        prediction=prediction,
        allocation=held,
        tried={"T4": tried} if tried else {},
        rescale_s=100.0,
        rescalings=rescalings,
    )


def view(
    *jobs: JobView,
    nodes: Mapping[str, int] | None = None,
    types: Mapping[str, GpuType] = TYPES,
    now: float = 1e6,
) -> ClusterView:
    kinds = [gpu for gpu, count in (nodes or {}).items() for _ in range(count)]
    there = [Node(n, gpu, types[gpu].gpus_per_node) for n, gpu in enumerate(kinds)]
    return ClusterView(now=now, jobs=jobs, nodes=there, gpu_types=types, next_node=len(there))


def widths(decision: Decision) -> dict[str, tuple[str, int]]:
    return {name: (share.gpu, share.width) for name, share in decision.shares.items()}


def costs(*jobs: JobView, now: float = 1e6) -> dict[tuple[str, int], float]:
    """Of the first job, by type and width."""
    round_ = Round.of(view(*jobs, now=now))
    options = round_.configurations
    names = [(options.names[k], int(n)) for k, n in zip(options.kinds, options.gpus, strict=True)]
    return dict(zip(names, round_.costs[0].tolist(), strict=True))


# What a job may be given


def test_counts_are_powers_of_two_within_a_node_then_whole_nodes() -> None:
    assert counts(4) == [1, 2, 4, *range(8, 65, 4)]
    assert counts(8) == [1, 2, 4, *range(8, 65, 8)]
    assert counts(1) == list(range(1, 65))
    assert counts(6) == [1, 2, 4, *range(6, 65, 6)]


def test_every_type_has_its_configurations() -> None:
    options = Configurations.of(TYPES)
    assert options.names == ("T4", "A100")
    assert options.gpus[options.kinds == 0].tolist() == counts(4)
    assert options.gpus[options.kinds == 1].tolist() == counts(8)


def test_a_job_may_grow_to_twice_what_it_has_tried_on_whichever_type() -> None:
    for tried, most in ((0, 1), (1, 2), (2, 4), (4, 8)):
        allowed = [at for at, cost in costs(job("a", tried=tried)).items() if np.isfinite(cost)]
        assert max(n for gpu, n in allowed if gpu == "T4") == most
        assert max(n for gpu, n in allowed if gpu == "A100") == most


def test_a_job_that_needs_several_gpus_may_start_on_them() -> None:
    nowhere = np.zeros((2, 65))
    large = job("a", Known({"T4": table(0.8, least=4), "A100": nowhere}), tried=0)
    allowed = [at for at, cost in costs(large).items() if np.isfinite(cost)]
    assert allowed == [("T4", 4)]


# What it is worth


def test_the_value_is_the_normalised_goodput_to_the_power_of_a_half() -> None:
    found = costs(job("a"))  # so old that a rescaling costs nothing
    assert found["T4", 1] == pytest.approx(1.0 + 0.01)
    assert found["T4", 4] == pytest.approx(round((4**0.8) ** -0.5, 2) + 0.01)
    assert found["T4", 8] == pytest.approx(round((0.9 * 8**0.8) ** -0.5, 2) + 0.01), "two nodes"
    assert found["A100", 1] == pytest.approx(round(3**-0.5, 2) + 0.01)
    assert found["A100", 8] == pytest.approx(round((3 * 8**0.8) ** -0.5, 2) + 0.01)


def test_a_type_never_tried_counts_as_the_least_and_at_one_gpu() -> None:
    found = costs(job("a", Known({"T4": table(0.8, 7.0)})))
    assert found["A100", 1] == found["T4", 1] == pytest.approx(1.01)
    assert not np.isfinite([found["A100", n] for n in counts(8)[1:]]).any()


def test_staying_costs_neither_a_rescaling_nor_a_change() -> None:
    young = job("a", held=Allocation("T4", ((0, 2),)), arrival=-200.0)
    found = costs(young, now=0.0)
    factor = 200 / 300
    assert found["T4", 2] == pytest.approx(round((2**0.8) ** -0.5, 2))
    assert found["T4", 4] == pytest.approx(round((factor * 4**0.8) ** -0.5, 2) + 0.01)


def test_the_rescale_factor() -> None:
    assert _rescale_factor(99.0, job("a")) == 1.0, "younger than its penalty"
    assert _rescale_factor(100.0, job("a")) == pytest.approx(0.5)
    assert _rescale_factor(400.0, job("a", rescalings=2)) == pytest.approx(200 / 500)
    assert _rescale_factor(400.0, job("a", rescalings=9)) == 0.0
    # What Sia believes of these is not what they take.
    assert _rescale_factor(40.0, job("a", job_class="resnet18")) == pytest.approx(40 / 70)
    assert _rescale_factor(40.0, job("a", job_class="yolov3")) == 1.0


def test_a_worthless_configuration_is_capped() -> None:
    assert costs(job("a", rescalings=9), now=400.0)["T4", 1] == MOST + 0.01


# What it gets


def test_a_job_alone_gets_the_fastest_that_there_is() -> None:
    assert widths(Sia().decide(view(job("a"), nodes={"T4": 2, "A100": 1}))) == {"a": ("A100", 8)}


def test_jobs_that_gain_more_from_the_better_type_get_it() -> None:
    little = Known({"T4": table(0.1), "A100": table(0.1, 1.1)})
    decision = Sia().decide(view(job("little", little), job("much"), nodes={"T4": 1, "A100": 1}))
    assert widths(decision)["much"] == ("A100", 8)
    assert widths(decision)["little"][0] == "T4"


def test_new_jobs_share_the_cluster_one_gpu_each() -> None:
    new = [job(f"j{n}", tried=0) for n in range(5)]
    found = widths(Sia().decide(view(*new, nodes={"T4": 1})))
    assert sorted(found.values()) == [("T4", 1)] * 4, "and one waits"


def test_a_job_stays_rather_than_rescale_for_little() -> None:
    held = Allocation("T4", ((0, 2),))
    young = job("a", held=held, arrival=-110.0)
    alone = view(young, nodes={"T4": 1}, now=0.0)
    assert widths(Sia().decide(alone)) == {"a": ("T4", 2)}, "2**0.8 is not worth 0.52"
    old = replace(young, arrival=-1e5)
    assert widths(Sia().decide(replace(alone, jobs=[old]))) == {"a": ("T4", 4)}


def test_no_jobs_is_no_problem() -> None:
    assert Sia().decide(view(nodes={"T4": 1})).shares == {}


@settings(max_examples=40)
@given(
    tried=st.lists(st.integers(0, 16), max_size=8),
    nodes=st.fixed_dictionaries({"T4": st.integers(0, 3), "A100": st.integers(0, 2)}),
    exponent=st.sampled_from([0.3, 0.8, 1.0]),
)
def test_no_type_is_given_beyond_its_capacity(
    tried: list[int], nodes: dict[str, int], exponent: float
) -> None:
    known = Known({"T4": table(exponent), "A100": table(exponent, 2.0)})
    jobs = [job(f"j{n}", known, tried=t) for n, t in enumerate(tried)]
    cluster = view(*jobs, nodes=nodes)
    decision = Sia().decide(cluster)
    assert decision.nodes == tuple(cluster.nodes)
    used = dict.fromkeys(TYPES, 0)
    for name, share in decision.shares.items():
        used[share.gpu] += share.width
        assert share.width <= max(2 * tried[int(name[1:])], 1)
        assert share.width in counts(TYPES[share.gpu].gpus_per_node)
    capacity = {gpu: n * TYPES[gpu].gpus_per_node for gpu, n in nodes.items()}
    assert all(used[gpu] <= capacity[gpu] for gpu in TYPES)
    assert decision.shares or not jobs or not sum(capacity.values())


# On a cluster that follows


ONE_TYPE = {"T4": TYPES["T4"]}


def size(decision: Decision) -> int:
    assert decision.nodes is not None
    return len(decision.nodes)


def efficiency(decision: Decision, exponent: float) -> float:
    speedups = sum(
        (0.9 if share.width > 4 else 1.0) * share.width**exponent
        for share in decision.shares.values()
    )
    return float(speedups / (4 * size(decision)))


def test_without_jobs_there_are_no_nodes() -> None:
    decision = SiaAutoscale(0.5).decide(view(nodes={"T4": 2, "A100": 1}))
    assert decision.nodes == ()
    assert decision.memory.report == {"target_efficiency": 0.5}


@pytest.mark.parametrize("target", [0.3, 0.5, 0.7])
def test_the_efficiency_comes_as_close_to_the_target_as_whole_nodes_allow(target: float) -> None:
    jobs = [job(f"j{n}", Known({"T4": table(0.5)})) for n in range(6)]
    decision = SiaAutoscale(target).decide(view(*jobs, types=ONE_TYPE))
    assert efficiency(decision, 0.5) == pytest.approx(target, abs=0.1)


def test_inside_the_band_the_cluster_is_left_alone() -> None:
    jobs = [job(f"j{n}", Known({"T4": table(0.5)})) for n in range(2)]
    here = view(*jobs, types=ONE_TYPE, nodes={"T4": 2})
    now = efficiency(Sia().decide(here), 0.5)
    assert now == pytest.approx(0.5)
    for target in (0.39, 0.5, 0.58):
        assert abs(now - target) < band(target)
        assert SiaAutoscale(target).decide(here).nodes == tuple(here.nodes)
    assert size(SiaAutoscale(0.25).decide(here)) > 2
    assert size(SiaAutoscale(0.8).decide(here)) < 2


def test_the_cluster_grows_for_waiting_jobs() -> None:
    sizes = []
    for count in (1, 4, 12):
        jobs = [job(f"j{n}", Known({"T4": table(0.8)}), tried=0) for n in range(count)]
        decision = SiaAutoscale(0.6).decide(view(*jobs, types=ONE_TYPE, nodes={"T4": 1}))
        assert len(decision.shares) == count
        sizes.append(size(decision))
    assert sizes == [1, 1, 3]


def test_a_job_too_large_for_one_node_gets_two() -> None:
    large = job("a", Known({"T4": table(0.8, least=8)}))
    for target in (0.1, 0.5, 0.9):
        decision = SiaAutoscale(target).decide(view(large, types=ONE_TYPE))
        assert decision.shares["a"].width >= 8, target


def test_a_running_job_does_not_lose_its_nodes_because_fewer_are_not_worth_a_rescaling() -> None:
    """On one node it would rather wait than rescale: that is no reason to have none."""
    flat = Known({"T4": table(0.2)})
    held = Allocation("T4", ((0, 4), (1, 4)))
    young = job("a", flat, held=held, arrival=-110.0)
    here = view(young, types=ONE_TYPE, nodes={"T4": 2}, now=0.0)
    decision = SiaAutoscale(0.8).decide(here)
    assert widths(decision) == {"a": ("T4", 8)}


def test_a_type_that_nobody_wants_has_no_nodes() -> None:
    only = Known({"T4": table(0.8), "A100": np.zeros((2, 65))})
    decision = SiaAutoscale(0.5).decide(view(job("a", only), nodes={"T4": 1, "A100": 2}))
    assert {node.gpu for node in decision.nodes or ()} == {"T4"}


def test_every_type_keeps_the_efficiency_on_its_own() -> None:
    """After a few rounds: when one type is resized, the others learn of it in the next."""
    fast = Known({"T4": table(0.5), "A100": table(0.5, 3.0)})
    here = view(*(job(f"j{n}", fast) for n in range(6)), nodes={"T4": 1, "A100": 1})
    for _ in range(4):
        decision = SiaAutoscale(0.4).decide(here)
        assert decision.nodes is not None
        there = {node.id for node in decision.nodes}
        placed = place(
            decision.shares,
            {j.id: j.allocation for j in here.jobs if j.allocation},
            decision.nodes,
            TYPES,
            next_node=0,
            elastic=False,
        )
        here = replace(
            here,
            jobs=[replace(j, allocation=placed.allocations.get(j.id)) for j in here.jobs],
            nodes=decision.nodes,
            next_node=max(there) + 1,
        )
    for gpu, kind in TYPES.items():
        gpus = sum(node.gpus for node in here.nodes if node.gpu == gpu)
        held = [j.allocation.width for j in here.jobs if j.allocation and j.allocation.gpu == gpu]
        speedups = sum((0.9 if n > kind.gpus_per_node else 1.0) * n**0.5 for n in held)
        assert not gpus or not outside_band(speedups / gpus, 0.4)
    assert all(j.allocation for j in here.jobs)
