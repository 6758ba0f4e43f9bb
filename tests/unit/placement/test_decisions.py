"""From a policy's decision to GPUs by index: what the simulator and the service share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import Allocation, Decision, Node, Share
from boa.model.workload import GpuType
from boa.placement.packing import allocate, choose_slots, place
from boa.placement.pool import Pool

T4 = {"T4": GpuType(name="T4", gpus_per_node=4)}
TWO = (Node(0, "T4", 4), Node(1, "T4", 4))
ON_0 = Allocation("T4", ((0, 4),))


# Decisions


def test_shares_alone_take_the_nodes_that_they_need() -> None:
    decision = Decision(shares={"a": Share("T4", 4), "b": Share("T4", 8)})
    found, nodes = allocate(decision, {"a": ON_0}, TWO, T4, 5)
    placed = place(decision.shares, {"a": ON_0}, TWO, T4, next_node=5, elastic=True)
    assert (found, nodes) == (placed.allocations, placed.nodes)
    assert [node.id for node in nodes] == [0, 1, 5]


def test_shares_on_chosen_nodes_stay_within_them() -> None:
    decision = Decision(shares={"a": Share("T4", 4), "b": Share("T4", 8)}, nodes=TWO[:1])
    found, nodes = allocate(decision, {"a": ON_0}, TWO, T4, 5)
    assert (found, nodes) == ({"a": ON_0}, TWO[:1])


@pytest.mark.parametrize("nodes", [None, TWO[:1]])
def test_placements_are_taken_as_they_are(nodes: tuple[Node, ...] | None) -> None:
    decision = Decision(placements={"a": ON_0}, nodes=nodes)
    assert allocate(decision, {}, TWO, T4, 5) == ({"a": ON_0}, nodes or TWO)


def test_who_decides_for_nobody_needs_no_nodes() -> None:
    assert allocate(Decision(), {"a": ON_0}, TWO, T4, 5) == ({}, ())


# GPUs by index


def test_the_lowest_free_gpus_of_every_node_are_chosen() -> None:
    asked = Allocation("T4", ((0, 2), (1, 4)))
    assert choose_slots(asked, {0: {0, 2}}, {0: 4, 1: 4}) == {0: (1, 3), 1: (0, 1, 2, 3)}


def test_while_gpus_are_still_taken_there_is_nothing_to_choose() -> None:
    asked = Allocation("T4", ((0, 2), (1, 4)))
    assert choose_slots(asked, {1: {3}}, {0: 4, 1: 4}) is None


# Holding many at once


@given(
    per_node=st.integers(1, 4),
    allocations=st.lists(
        st.dictionaries(st.integers(0, 5), st.integers(1, 4), min_size=1, max_size=3), max_size=8
    ),
    then=st.lists(st.integers(1, 9), max_size=5),
)
def test_pinning_is_holding_one_after_the_other(
    per_node: int, allocations: list[dict[int, int]], then: list[int]
) -> None:
    """And leaves the pool in the very same order, so that whoever comes next goes to the same."""
    wanted = {
        str(n): Allocation("T4", tuple(sorted(counts.items())))
        for n, counts in enumerate(allocations)
    }
    at_once, one_by_one = (Pool("T4", per_node, range(5)) for _ in range(2))
    held = {
        job: one_by_one.hold(allocation.nodes)
        for job, allocation in wanted.items()
        if one_by_one.fits(allocation)
    }
    assert at_once.pin(wanted) == held
    assert at_once.free == one_by_one.free
    for width in then:
        assert at_once.take(width, spread=True) == one_by_one.take(width, spread=True)


# What others hold


def test_gpus_of_others_are_held_on_the_nodes_that_there_are() -> None:
    pool = Pool("T4", 4, (0, 1))
    pool.occupy([Allocation("T4", ((0, 3), (9, 4)))])
    assert pool.free == {0: 1, 1: 4}
    assert pool.gpus_free == 5
    assert pool.take(1) == Allocation("T4", ((0, 1),))


def test_others_cannot_hold_more_gpus_of_a_node_than_it_has() -> None:
    with pytest.raises(AssertionError, match="more GPUs of a node"):
        Pool("T4", 4, (0,)).occupy([ON_0, ON_0])
