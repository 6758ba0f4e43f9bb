"""Rubick on random jobs, curves and clusters: what holds whatever the numbers are."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.cluster import ClusterView, Decision, JobView, Node, UserRequest
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.rivals.autoscale import outside_band
from boa.policy.rivals.rubick import Rubick, allot, ladder, requests_of
from boa.policy.rivals.rubick_autoscale import RubickAutoscale


@dataclass(frozen=True)
class Known:
    """A prediction that never changes."""

    table: Floats

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return self.table


@st.composite
def tables(draw: st.DrawFn) -> Floats:
    """Any curve at all: it may fall, have gaps, or need several nodes."""
    widest = draw(st.sampled_from([1, 6, 8, 24, 32]))
    gains = draw(st.lists(st.floats(-0.1, 1.5), min_size=widest, max_size=widest))
    best = np.maximum(np.cumsum(gains), 0.0)
    best[: draw(st.sampled_from([0, 0, 0, 3, 12]))] = 0.0
    best = np.concatenate([[0.0], best])
    return np.stack([best, best * draw(st.floats(0.0, 1.0))])


@st.composite
def views(draw: st.DrawFn) -> ClusterView:
    per_node = draw(st.sampled_from([1, 4, 6, 8]))
    shared = draw(st.lists(tables(), min_size=1, max_size=3))
    jobs = [
        JobView(
            id=f"job-{n}",
            job_class="any",
            arrival=60.0 * n,
            serial=n,
            epoch=0,
            prediction=Known(draw(st.sampled_from(shared))),
            asked=UserRequest(
                gpus=draw(st.sampled_from([None, 1, 2, 3, 5, 8, 16])),
                guaranteed=draw(st.booleans()),
            ),
            rescale_s=draw(st.sampled_from([0.0, 260.0])),
            rescalings=draw(st.integers(0, 3)),
        )
        for n in range(draw(st.integers(0, 9)))
    ]
    nodes = tuple(Node(n, "A800", per_node) for n in range(draw(st.integers(0, 6))))
    types = {"A800": GpuType(name="A800", gpus_per_node=per_node)}
    return ClusterView(now=600.0, jobs=jobs, nodes=nodes, gpu_types=types, next_node=len(nodes))


def after(view: ClusterView, decision: Decision, *, leaving: int | None = None) -> ClusterView:
    """The next round: jobs hold what they were given; one may have finished."""
    jobs = [replace(job, allocation=decision.placements.get(job.id)) for job in view.jobs]
    if leaving is not None and jobs:
        del jobs[leaving % len(jobs)]
    nodes = view.nodes if decision.nodes is None else decision.nodes
    following = max([view.next_node, *(node.id + 1 for node in nodes)])
    return replace(view, now=view.now + 60, jobs=jobs, nodes=nodes, next_node=following)


def check_capacity(view: ClusterView, decision: Decision) -> None:
    assert decision.nodes is not None
    free = {node.id: node.gpus for node in decision.nodes}
    for allocation in decision.placements.values():
        for node, count in allocation.nodes:
            free[node] -= count
    assert all(count >= 0 for count in free.values())


def half_arrived(view: ClusterView) -> ClusterView:
    return replace(view, jobs=view.jobs[: len(view.jobs) // 2])


@given(view=views(), leaving=st.integers(0, 9), lost=st.integers(0, 3))
def test_capacity_is_never_exceeded_even_when_jobs_or_nodes_leave(
    view: ClusterView, leaving: int, lost: int
) -> None:
    policy = Rubick()
    early = half_arrived(view)
    decision = policy.decide(early)
    check_capacity(early, decision)
    late = [replace(job, allocation=decision.placements.get(job.id)) for job in view.jobs]
    crowded = replace(view, jobs=late)
    decision = policy.decide(crowded)
    check_capacity(crowded, decision)
    smaller = after(crowded, decision, leaving=leaving)
    smaller = replace(smaller, nodes=smaller.nodes[lost:])
    check_capacity(smaller, policy.decide(smaller))


@given(view=views())
def test_every_job_runs_at_a_width_it_can_and_on_the_fewest_nodes(view: ClusterView) -> None:
    per_node = view.gpu_types["A800"].gpus_per_node
    decision = Rubick().decide(view)
    for job in view.jobs:
        allocation = decision.placements.get(job.id)
        if allocation is None:
            continue
        rates = job.prediction.rates("A800", 0)
        assert rates is not None
        assert rates[int(len(allocation.nodes) > 1), allocation.width] > 0
        assert allocation.width in ladder(per_node, rates.shape[1] - 1)
        assert len(allocation.nodes) == -(-allocation.width // per_node)


@given(view=views())
def test_no_job_waits_while_the_least_it_can_run_on_is_free(view: ClusterView) -> None:
    capacity = sum(node.gpus for node in view.nodes)
    requests = requests_of(view, "A800")
    widths = allot(requests, capacity)
    free = capacity - sum(widths.values())
    for request in requests:
        assert request.id in widths or min(request.curve.speeds) > free


@given(view=views())
def test_guaranteed_jobs_keep_their_demand_when_others_arrive(view: ClusterView) -> None:
    policy = Rubick()
    before = policy.decide(half_arrived(view)).placements
    jobs = [replace(job, allocation=before.get(job.id)) for job in view.jobs]
    decision = policy.decide(replace(view, jobs=jobs))
    per_node = view.gpu_types["A800"].gpus_per_node
    for job in jobs:
        if job.asked.guaranteed and job.id in before:
            rates = job.prediction.rates("A800", 0)
            assert rates is not None
            widest = max(k for k in range(rates.shape[1]) if rates[int(k > per_node), k] > 0)
            kept = decision.placements[job.id].width
            assert kept >= min(job.asked.gpus or 1, before[job.id].width, widest)


@given(view=views())
def test_a_round_in_which_nothing_happened_takes_no_gpus_from_anybody(view: ClusterView) -> None:
    policy = Rubick()
    first = policy.decide(view)
    again = policy.decide(after(view, first))
    for job, allocation in first.placements.items():
        assert again.placements[job].width >= allocation.width


@settings(max_examples=60)
@given(view=views(), c=st.floats(0.05, 0.95), queueing=st.booleans(), by_base=st.booleans())
def test_the_autoscaler_takes_the_size_closest_to_its_target(
    view: ClusterView, c: float, queueing: bool, by_base: bool
) -> None:
    policy = RubickAutoscale(c, by_base=by_base, queueing=queueing)
    decision = policy.decide(view)
    check_capacity(view, decision)
    assert decision.nodes is not None
    requests = requests_of(view, "A800")
    per_node = view.gpu_types["A800"].gpus_per_node
    if not requests:
        assert decision.nodes == ()
        return
    assert decision.placements, "somebody can run, so somebody does"

    def distance(nodes: int) -> float:
        widths = allot(requests, nodes * per_node)
        return abs(policy.efficiency(requests, widths, nodes * per_node) - c)

    most = -(-sum(max(request.curve.speeds) for request in requests) // per_node)
    feasible = [
        nodes
        for nodes in range(1, most + 1)
        if (widths := allot(requests, nodes * per_node))
        and (queueing or all(widths.get(r.id, 0) >= r.curve.entry for r in requests))
    ]
    if feasible and most <= policy.most_nodes:
        assert distance(len(decision.nodes)) == min(map(distance, feasible))


@settings(max_examples=60)
@given(view=views(), c=st.floats(0.05, 0.95))
def test_the_autoscaler_leaves_a_cluster_within_the_band_alone(view: ClusterView, c: float) -> None:
    policy = RubickAutoscale(c)
    first = policy.decide(view)
    following = after(view, first)
    requests = requests_of(following, "A800")
    held = {request.id: request.held for request in requests if request.held}
    assert first.nodes is not None
    gpus = sum(node.gpus for node in first.nodes)
    if len(held) == len(requests) and not outside_band(policy.efficiency(requests, held, gpus), c):
        assert policy.decide(following).nodes == first.nodes or not requests
