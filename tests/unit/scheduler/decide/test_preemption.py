"""Preemption and protected GPUs: properties of decisions on small clusters."""

from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import Allocation, JobId, Node
from boa.scheduler.decide.preemption import Holder, Preemption, make_room, upheld

GPU = "slot"
Clusters = tuple[list[Node], list[Holder]]


def held(*nodes: tuple[int, int]) -> Allocation:
    return Allocation(GPU, tuple(nodes))


def holder(id: JobId, on: Allocation | None = None, **fields: object) -> Holder:
    known = {"rank": 0, "least": 1, "types": (GPU,), "runs": on is not None, "waits": on is None}
    return Holder(id=id, held=on, **{**known, **fields})  # type: ignore[arg-type]


def cost(job: JobId) -> float:
    return float(len(job))


NODES = [Node(1, GPU, 2), Node(2, GPU, 2)]


def test_a_job_of_a_higher_rank_takes_the_cheapest_stops_and_no_more_than_it_needs() -> None:
    jobs = [
        holder("a", held((1, 1))),
        holder("bb", held((1, 1))),
        holder("ccc", held((2, 2)), least=2),
        holder("new", rank=1),
    ]
    found = make_room(jobs, NODES, cost)
    assert found.victims == {"a": "new"}
    two = [*jobs[:-1], holder("new", rank=1, least=2)]
    assert make_room(two, NODES, lambda job: 5.0 if job != "ccc" else 1.0).victims == {"ccc": "new"}


def test_jobs_are_narrowed_before_any_is_preempted() -> None:
    jobs = [holder("a", held((1, 2))), holder("b", held((2, 2)), least=2), holder("new", rank=1)]
    found = make_room(jobs, NODES, cost)
    assert found.narrowed == {"a": "new"}
    assert not found.victims


def test_a_job_that_cannot_be_seated_makes_no_other_give_way() -> None:
    jobs = [
        holder("a", held((1, 1)), settling=True),
        holder("b", held((1, 1)), keeps_work=True),
        holder("new", rank=1, least=2),
    ]
    assert make_room(jobs, NODES[:1], cost) == Preemption()


def test_a_widened_job_leaves_its_neighbour_its_last_gpu() -> None:
    jobs = [holder("a", held((1, 1))), holder("b", held((1, 1)))]
    given = upheld({"a": held((1, 2))}, jobs, NODES[:1])
    assert given == {"a": held((1, 1)), "b": held((1, 1))}


def test_a_free_gpu_goes_to_a_higher_rank_before_the_next_in_line() -> None:
    jobs = [
        holder("urgent-1", held((1, 1)), rank=1),
        holder("next", first=True, started=True),
        holder("urgent-2", rank=1),
    ]
    assert set(make_room(jobs, NODES[:1], cost).seats) == {"urgent-2"}


def test_what_is_freed_for_an_urgent_job_does_not_go_to_newcomers() -> None:
    jobs = [holder("a", held((1, 1))), holder("b", held((1, 1))), holder("urgent", rank=1)]
    jobs.append(holder("newcomer"))
    preemption = make_room(jobs, NODES[:1], cost)
    given = upheld({"newcomer": held((1, 2))}, jobs, NODES[:1], preemption)
    assert set(given) == {"urgent"} | ({"a", "b"} - preemption.victims.keys())


@st.composite
def clusters(draw: st.DrawFn) -> Clusters:
    nodes = [
        Node(n, GPU, draw(st.sampled_from([1, 2, 4]))) for n in range(1, draw(st.integers(2, 4)))
    ]
    free, jobs = Counter({node.id: node.gpus for node in nodes}), list[Holder]()
    for n in range(draw(st.integers(1, 8))):
        node = draw(st.sampled_from(nodes)).id
        width = draw(st.integers(0, 2))
        here = 0 < width <= free[node]
        if here:
            free[node] -= width
        least = draw(st.integers(1, max(width, 1)))
        jobs.append(
            holder(
                str(n),
                held((node, width)) if here else None,
                rank=draw(st.integers(-1, 1)),
                least=least,
                keeps_work=here and draw(st.booleans()),
                settling=here and draw(st.booleans()),
                first=not here and draw(st.booleans()),
                arrival=float(draw(st.integers(0, 3))),
            )
        )
    return nodes, jobs


@st.composite
def decisions(draw: st.DrawFn) -> tuple[Clusters, dict[JobId, Allocation]]:
    nodes, jobs = draw(clusters())
    free, after = Counter({node.id: node.gpus for node in nodes}), dict[JobId, Allocation]()
    for job in draw(st.permutations(jobs)):
        node, width = draw(st.sampled_from(nodes)).id, draw(st.integers(0, 2))
        if job.least <= width <= free[node]:
            free[node] -= width
            after[job.id] = held((node, width))
    return (nodes, jobs), after


def fits(given: Mapping[JobId, Allocation], nodes: Sequence[Node]) -> bool:
    free = Counter({node.id: node.gpus for node in nodes})
    for on in given.values():
        free.subtract(dict(on.nodes))
    return min(free.values()) >= 0


@given(decisions())
def test_every_decision_that_is_upheld_leaves_jobs_what_is_theirs(
    decision: tuple[Clusters, dict[JobId, Allocation]],
) -> None:
    (nodes, jobs), after = decision
    preemption = make_room(jobs, nodes, cost)
    given = upheld(after, jobs, nodes, preemption)
    by_id = {job.id: job for job in jobs}
    assert fits(given, nodes)
    for job in jobs:
        if job.is_fixed(preemption):
            assert given[job.id] == job.held, "it keeps exactly its GPUs"
        elif job.runs and job.id not in preemption.victims:
            assert job.id in given, "only victims lose their last GPUs"
    for loser, taker in preemption.victims.items():
        assert by_id[taker].rank > by_id[loser].rank
        assert not by_id[loser].keeps_work
        assert given[taker].width >= by_id[taker].least, "no job gives way in vain"
    assert upheld(given, jobs, nodes, preemption) == given, "upholding it again changes nothing"


@given(clusters())
def test_jobs_of_one_rank_preempt_none(cluster: Clusters) -> None:
    nodes, jobs = cluster
    alike = [job._replace(rank=0) for job in jobs]
    assert not make_room(alike, nodes, cost).victims
