"""Placement on random clusters, against rules that are simple to state."""

from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import Allocation, Node, Share
from boa.model.workload import GpuType
from boa.placement.packing import Placed, place, resized
from boa.placement.pool import Pool

Widths = list[int]
sizes = st.sampled_from([1, 2, 3, 4, 8])
any_widths = st.lists(st.integers(1, 20), max_size=8)


def gpu_type(per_node: int, name: str = "T4") -> Mapping[str, GpuType]:
    return {name: GpuType(name=name, gpus_per_node=per_node)}


def shares(widths: Mapping[str, int] | Widths, gpu: str = "T4") -> dict[str, Share]:
    named = widths if isinstance(widths, Mapping) else {f"job-{n}": w for n, w in enumerate(widths)}
    return {name: Share(gpu, width) for name, width in named.items()}


def cluster(nodes: int, per_node: int, gpu: str = "T4") -> tuple[Node, ...]:
    return tuple(Node(n, gpu, per_node) for n in range(nodes))


def put(
    wanted: Mapping[str, Share],
    nodes: Sequence[Node],
    per_node: int,
    *,
    elastic: bool,
    current: Mapping[str, Allocation] | None = None,
) -> Placed:
    return place(
        wanted,
        current or {},
        nodes,
        gpu_type(per_node),
        next_node=1 + max((node.id for node in nodes), default=-1),
        elastic=elastic,
    )


def busy(allocations: Mapping[str, Allocation]) -> Counter[int]:
    used: Counter[int] = Counter()
    for allocation in allocations.values():
        used.update(dict(allocation.nodes))
    return used


def fewest(width: int, per_node: int) -> int:
    return -(-width // per_node)


changes = st.tuples(any_widths, st.lists(st.integers(0, 20), max_size=8))
"""Widths before, and widths after: 0 for a job that is over, more of them for new jobs."""


def after(change: tuple[Widths, Widths]) -> dict[str, Share]:
    return shares({f"job-{n}": width for n, width in enumerate(change[1]) if width})


# Nodes that come and go


@given(per_node=sizes, change=changes)
def test_elastic_jobs_get_their_width_on_the_fewest_nodes_and_stay_there(
    per_node: int, change: tuple[Widths, Widths]
) -> None:
    first = put(shares(change[0]), (), per_node, elastic=True)
    wanted = after(change)
    then = put(wanted, first.nodes, per_node, elastic=True, current=first.allocations)
    for placed, asked in ((first, shares(change[0])), (then, wanted)):
        assert set(placed.allocations) == set(asked)
        for job, allocation in placed.allocations.items():
            assert allocation.width == asked[job].width
            assert len(allocation.nodes) == fewest(allocation.width, per_node)
        used = busy(placed.allocations)
        assert all(count <= per_node for count in used.values())
        assert set(used) == {node.id for node in placed.nodes}, "no idle node is kept"
    for job, before in first.allocations.items():
        if job in wanted and wanted[job].width == before.width:
            assert then.allocations[job] == before


def widest_first(widths: Widths, per_node: int) -> int:
    """Nodes that it takes to give every job whole nodes, and the rest of it the fullest gap."""
    nodes = 0
    gaps: list[int] = []
    for width in sorted(widths, reverse=True):
        whole, rest = divmod(width, per_node)
        nodes += whole
        if rest:
            fitting = sorted(gap for gap in gaps if gap >= rest)
            if fitting:
                gaps.remove(fitting[0])
            else:
                nodes += 1
            gaps.append((fitting or [per_node])[0] - rest)
    return nodes


@given(per_node=sizes, widths=any_widths)
def test_an_elastic_cluster_is_as_large_as_widest_first_needs(
    per_node: int, widths: Widths
) -> None:
    placed = put(shares(widths), (), per_node, elastic=True)
    assert len(placed.nodes) == widest_first(widths, per_node)


powers = st.integers(0, 3).map(lambda n: 1 << n)


@given(per_node=powers, widths=st.lists(st.integers(0, 5).map(lambda n: 1 << n), max_size=9))
def test_powers_of_two_leave_less_than_a_node_idle(per_node: int, widths: Widths) -> None:
    placed = put(shares(widths), (), per_node, elastic=True)
    assert len(placed.nodes) == fewest(sum(widths), per_node)


@given(per_node=sizes, widths=any_widths)
def test_types_do_not_mix_and_node_ids_are_not_used_twice(per_node: int, widths: Widths) -> None:
    types = {**gpu_type(per_node), **gpu_type(4, "V100")}
    wanted = {
        name: Share("V100" if n % 2 else "T4", share.width)
        for n, (name, share) in enumerate(shares(widths).items())
    }
    placed = place(wanted, {}, (), types, next_node=7, elastic=True)
    ids = [node.id for node in placed.nodes]
    assert ids == sorted(set(ids))
    assert min(ids, default=7) == 7
    of = {node.id: node for node in placed.nodes}
    for name, allocation in placed.allocations.items():
        assert allocation.gpu == wanted[name].gpu
        assert all(of[node].gpu == allocation.gpu for node, _ in allocation.nodes)
    assert all(count <= of[node].gpus for node, count in busy(placed.allocations).items())


# A cluster that is what it is


@given(per_node=sizes, nodes=st.integers(0, 5), change=changes)
def test_a_fixed_cluster_is_never_exceeded_and_only_jobs_too_wide_wait(
    per_node: int, nodes: int, change: tuple[Widths, Widths]
) -> None:
    there = cluster(nodes, per_node)
    first = put(shares(change[0]), there, per_node, elastic=False)
    wanted = after(change)
    then = put(wanted, there, per_node, elastic=False, current=first.allocations)
    for placed, asked in ((first, shares(change[0])), (then, wanted)):
        assert placed.nodes == there
        used = busy(placed.allocations)
        assert all(node in range(nodes) and n <= per_node for node, n in used.items())
        free = nodes * per_node - sum(used.values())
        for job, share in asked.items():
            if job in placed.allocations:
                assert placed.allocations[job].width == share.width
            else:
                assert share.width > free, "GPUs lie idle that a job is waiting for"


@given(per_node=sizes, nodes=st.integers(1, 5), widths=any_widths)
def test_who_has_what_it_is_to_have_is_left_alone(
    per_node: int, nodes: int, widths: Widths
) -> None:
    there = cluster(nodes, per_node)
    first = put(shares(widths), there, per_node, elastic=False).allocations
    same = shares({job: allocation.width for job, allocation in first.items()})
    assert put(same, there, per_node, elastic=False, current=first).allocations == first
    # Neither does a newcomer that fits beside them move anybody.
    if sum(a.width for a in first.values()) < nodes * per_node:
        joined = put({**same, "new": Share("T4", 1)}, there, per_node, elastic=False, current=first)
        assert joined.allocations.items() >= first.items()
        assert joined.allocations["new"].width == 1


@given(
    per_node=powers,
    nodes=st.integers(1, 5),
    before=st.lists(powers, max_size=8),
    now=st.lists(st.integers(0, 5).map(lambda n: 1 << n), max_size=12),
)
def test_powers_of_two_always_fit_if_their_sum_does(
    per_node: int, nodes: int, before: Widths, now: Widths
) -> None:
    """However the GPUs in use are strewn: then jobs move together."""
    there = cluster(nodes, per_node)
    current = put(shares(before), there, per_node, elastic=False).allocations
    while sum(now) > nodes * per_node:
        now = now[:-1]
    placed = put(shares(now), there, per_node, elastic=False, current=current).allocations
    assert len(placed) == len(now)
    for allocation in placed.values():
        stayed = allocation in current.values()
        assert stayed or len(allocation.nodes) == fewest(allocation.width, per_node)


# The parts


@given(per_node=sizes, nodes=st.integers(0, 4), widths=any_widths, spread=st.booleans())
def test_what_is_taken_and_given_back_is_as_if_it_had_never_been(
    per_node: int, nodes: int, widths: Widths, spread: bool
) -> None:
    pool = Pool("T4", per_node, range(nodes))
    taken = [a for width in widths if (a := pool.take(width, spread)) is not None]
    assert sum(pool.free.values()) == nodes * per_node - sum(a.width for a in taken)
    assert all(free >= 0 for free in pool.free.values())
    assert {n for n in pool.free if pool.is_empty(n)} == set(pool.empty())
    for allocation in taken:
        pool.give(allocation)
        assert pool.fits(allocation)
    assert sorted(pool.empty()) == list(range(nodes))


@given(per_node=sizes, nodes=st.integers(0, 4), widths=any_widths, next_=st.integers(1, 20))
def test_missing_nodes_are_just_enough(
    per_node: int, nodes: int, widths: Widths, next_: int
) -> None:
    pool = Pool("T4", per_node, range(nodes))
    for width in widths:
        pool.take(width)
    missing = pool.nodes_missing(next_)
    for n in range(missing):
        assert pool.take(next_) is None
        pool.add(nodes + n)
    taken = pool.take(next_)
    assert taken is not None
    assert len(taken.nodes) == fewest(next_, per_node)


@given(
    per_node=sizes,
    nodes=st.integers(0, 6),
    widths=st.lists(st.integers(1, 6), max_size=8),
    wanted=st.integers(0, 8),
)
def test_a_resized_cluster_keeps_its_busiest_nodes(
    per_node: int, nodes: int, widths: Widths, wanted: int
) -> None:
    there = cluster(nodes, per_node)
    current = put(shares(widths), there, per_node, elastic=False).allocations
    found = resized(there, {"T4": wanted}, gpu_type(per_node), current, next_node=nodes + 3)
    used = busy(current)
    kept = [node for node in found if node in there]
    dropped = [node for node in there if node not in found]
    assert len(found) == wanted
    assert len(kept) == min(wanted, nodes)
    assert min((used[n.id] for n in kept), default=99) >= max(
        (used[n.id] for n in dropped), default=0
    )
    new = [node for node in found if node not in there]
    assert new == [Node(nodes + 3 + n, "T4", per_node) for n in range(wanted - len(kept))]


@given(per_node=sizes, moves=st.lists(st.tuples(st.sampled_from("adtgp"), st.integers(1, 20))))
def test_a_pool_knows_how_many_gpus_are_free_on_all_its_nodes(
    per_node: int, moves: list[tuple[str, int]]
) -> None:
    pool, held, nodes = Pool("T4", per_node, range(3)), list[Allocation](), 3
    for move, number in moves:
        if move == "a":
            pool.add(nodes)
            nodes += 1
        elif move == "d" and pool.empty():
            pool.drop(pool.empty()[0])
        elif move == "t" and (taken := pool.take(number, spread=True)):
            held.append(taken)
        elif move == "g" and held:
            pool.give(held.pop())
        elif move == "p":
            pinned = {str(n): Allocation("T4", ((n, 1),)) for n in range(number)}
            held += pool.pin(pinned).values()
        assert pool.gpus_free == sum(pool.free.values())
