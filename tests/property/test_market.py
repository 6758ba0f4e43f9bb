"""Whole nodes by price: what holds for every decision of the market."""

from collections import Counter
from dataclasses import replace

from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from boa.model.cluster import Allocation, ClusterView, Decision, JobView, Node, NodeRoom, Share
from boa.model.job_spec import GpuLimits
from boa.model.speedup import Floats
from boa.model.workload import Workload
from boa.policy.boa import Planned, planned_of, within_reach
from boa.policy.market.policy import Market
from boa.policy.market.strangers import is_stranger
from boa.solver.planner import frontier
from strategies import numbers, workloads

EXAMPLES = settings(
    max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
NOW = 10_000.0


class Unknown:
    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return None


@st.composite
def views(
    draw: st.DrawFn, boots: bool = True, types: int = 3, rescaling: bool | None = None
) -> ClusterView:
    """Jobs that wait at any point of their training, some of classes that no plan knows, beside
    nodes that are ready; under caps or none."""
    workload: Workload = draw(
        workloads(max_classes=3, max_epochs=3, max_types=types, rescaling=rescaling)
    )
    cheapest = frontier(workload).cheapest
    solution, _ = within_reach(workload, cheapest * draw(numbers(0.5, 4.0)))
    planned: Planned = planned_of(solution, 0, 0.0)
    kinds = workload.gpu_types
    jobs = [draw(waiting(n, workload, list(kinds))) for n in range(draw(st.integers(0, 6)))]
    nodes: list[Node] = []
    for gpu, kind in kinds.items():
        for _ in range(draw(st.integers(0, 3))):
            nodes.append(Node(len(nodes), gpu, kind.gpus_per_node))
    room = NodeRoom()
    if draw(st.booleans()):
        most = {gpu: draw(st.integers(0, 3)) for gpu in kinds if draw(st.booleans())}
        room = NodeRoom(nodes=most, spend=draw(st.none() | numbers(0.0, 50.0)))
    boot = draw(st.sampled_from([0.0, 120.0])) if boots else 0.0
    return ClusterView(
        now=NOW,
        jobs=sorted(jobs, key=lambda job: job.arrival),
        nodes=nodes,
        gpu_types=kinds,
        next_node=len(nodes),
        memory=planned,
        boot_s=dict.fromkeys(kinds, boot),
        reclaim_s=dict.fromkeys(kinds, boot / 4),
        room=room,
        let_in={job.id for job in jobs if job.arrival <= NOW - 1800.0},
    )


@st.composite
def waiting(draw: st.DrawFn, n: int, workload: Workload, types: list[str]) -> JobView:
    job_class = draw(st.sampled_from(workload.classes))
    known = draw(st.integers(0, 5)) > 0
    limits = None
    if draw(st.integers(0, 3)) == 0:
        least = draw(st.integers(1, 3))
        limits = GpuLimits(min=least, max=least + draw(st.integers(0, 8)))
    return JobView(
        id=str(n),
        job_class=job_class.name if known else "nobody knows",
        arrival=NOW - draw(st.sampled_from([0.0, 100.0, 5000.0])),
        serial=n,
        epoch=draw(st.integers(0, len(job_class.epochs) - 1)),
        left=draw(numbers(0.05, 1.0)),
        prediction=Unknown(),
        rescale_s=job_class.rescale_s,
        limits=limits,
        least=None if draw(st.booleans()) else Share(types[0], 1 if limits is None else limits.min),
    )


def applied(view: ClusterView, decision: Decision) -> ClusterView:
    """The cluster just after: nodes are rented or gone, jobs begin where they were put. Nodes that
    take no time to boot are ready."""
    assert decision.nodes is not None
    before = {node.id for node in view.nodes}
    new = {node.id for node in decision.nodes if node.id not in before}
    booting = {
        node.id: view.boot_s[node.gpu]
        for node in decision.nodes
        if node.id in new and view.boot_s[node.gpu] > 0
    }
    rented = Counter(node.gpu for node in decision.nodes if node.id in new)
    room = view.room
    for gpu, count in rented.items():
        room = room.without(view.gpu_types[gpu], count)
    jobs = []
    for job in view.jobs:
        given = decision.placements.get(job.id)
        pause = job.resumes_in if given == job.allocation else job.rescale_s
        jobs.append(replace(job, allocation=given, resumes_in=pause if given else 0.0))
    return replace(
        view,
        jobs=jobs,
        nodes=decision.nodes,
        booting={**view.booting, **booting},
        room=room,
        next_node=view.next_node + len(new),
    )


def used(placements: "dict[str, Allocation]") -> Counter[int]:
    found: Counter[int] = Counter()
    for held in placements.values():
        for node, count in held.nodes:
            found[node] += count
    return found


@EXAMPLES
@given(views())
def test_nobody_has_gpus_that_are_not_there(view: ClusterView) -> None:
    decision = Market().decide(view)
    assert decision.nodes is not None
    sizes = {node.id: (node.gpu, node.gpus) for node in decision.nodes}
    for given_to in decision.placements.values():
        assert all(sizes[node][0] == given_to.gpu for node, _ in given_to.nodes)
    for node, count in used(dict(decision.placements)).items():
        assert count <= sizes[node][1]


@EXAMPLES
@given(views())
def test_nothing_is_rented_beyond_the_room(view: ClusterView) -> None:
    decision = Market().decide(view)
    assert decision.nodes is not None
    before = {node.id for node in view.nodes}
    new = [node for node in decision.nodes if node.id not in before]
    for gpu, count in Counter(node.gpu for node in new).items():
        assert count <= view.room.nodes.get(gpu, count)
    cost = sum(view.gpu_types[node.gpu].price * node.gpus for node in new)
    assert view.room.spend is None or cost <= view.room.spend * (1 + 1e-6)


@EXAMPLES
@given(views())
def test_every_job_has_at_least_its_base_and_what_its_user_allows(view: ClusterView) -> None:
    planned: Planned = view.memory
    classes = {job_class.name: job_class for job_class in planned.solution.workload.classes}
    decision = Market().decide(view)
    worths = planned.worths(planned.price)
    for job in view.jobs:
        given_to = decision.placements.get(job.id)
        if given_to is None or is_stranger(job, worths):
            continue
        if job.limits is not None:
            assert job.limits.min <= given_to.width <= job.limits.max
        job_class = classes[job.job_class]
        base = job_class.base_on(given_to.gpu, job_class.epochs[job.epoch])
        assert base is not None
        assert base <= given_to.width <= job_class.max_on(given_to.gpu)


@EXAMPLES
@given(views())
def test_no_node_is_rented_or_given_back_without_a_reason(view: ClusterView) -> None:
    decision = Market().decide(view)
    assert decision.nodes is not None
    before, after = ({node.id for node in nodes} for nodes in (view.nodes, decision.nodes))
    strangers = {
        node
        for job in view.jobs
        if is_stranger(job, view.memory.worths(view.memory.price))
        for node, _ in (decision.placements[job.id].nodes if job.id in decision.placements else ())
    }
    for node in (before ^ after) - strangers:
        reason = decision.reasons[node]
        if node in after and reason.worth_per_hour is not None:
            assert reason.worth_per_hour > 0
        if node in before and reason.worth_per_hour is not None:
            assert reason.worth_per_hour < reason.price_per_hour


@EXAMPLES
@given(views())
def test_deciding_again_at_the_same_moment_changes_nothing(view: ClusterView) -> None:
    """Renting apart: what boots shortens the time that the rest is shared out for."""
    first = Market().decide(view)
    assume({node.id for node in first.nodes or ()} <= {node.id for node in view.nodes})
    after = applied(view, first)
    again = Market().decide(after)
    assert again.placements == first.placements
    assert {node.id for node in again.nodes or ()} == {node.id for node in first.nodes or ()}


@EXAMPLES
@given(views(boots=False))
def test_where_nodes_are_there_at_once_it_comes_to_rest(view: ClusterView) -> None:
    for _ in range(20):
        decision = Market().decide(view)
        after = applied(view, decision)
        if (after.jobs, list(after.nodes)) == (view.jobs, list(view.nodes)):
            return
        view = after
    raise AssertionError("it rents and gives back for ever")


@EXAMPLES
@given(views(types=1, rescaling=False))
def test_where_money_is_not_short_whoever_can_gain_by_a_free_gpu_has_it(view: ClusterView) -> None:
    """At a price of zero no job waits beside empty GPUs that it could run on; where rescaling takes
    time, it may be better to wait for more of them."""
    decision = Market(price=0.0).decide(view)
    worths = view.memory.worths(1e-3)
    free = Counter(node.id for node in decision.nodes or () for _ in range(node.gpus))
    free.subtract({n: c for n, c in used(dict(decision.placements)).items() if n in free})
    types = {node.id: node.gpu for node in view.nodes}  # those that are ready
    for job in view.jobs:
        if job.id in decision.placements or is_stranger(job, worths):
            continue
        course = worths[job.job_class].course
        for column, (gpu, width) in enumerate(course.states):
            limits = job.limits
            allowed = limits is None or limits.min <= width <= limits.max
            runs = course.times[job.epoch, column] < 1e11
            fits = any(count >= width for node, count in free.items() if types.get(node) == gpu)
            assert not (allowed and runs and fits)


@EXAMPLES
@given(views(boots=False, types=1))
def test_at_any_price_jobs_that_waited_long_enough_run_if_there_is_room(view: ClusterView) -> None:
    """An endless price rents for nobody who gains by more than running at all."""
    jobs = [replace(job, limits=None) for job in view.jobs]
    jobs = [job for job in jobs if job.job_class != "nobody knows"]
    view = replace(view, jobs=jobs, room=NodeRoom(), let_in={job.id for job in jobs})
    for _ in range(4):
        decision = Market(price=1e9).decide(view)
        view = applied(view, decision)
    assert decision.placements.keys() == {job.id for job in jobs}
