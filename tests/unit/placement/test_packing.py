"""Widths onto nodes, where one can see what should happen."""

import pytest

from boa.model.cluster import Allocation, Node, Share
from boa.model.workload import GpuType
from boa.placement.packing import place, resized
from boa.placement.pool import Pool

T4 = {"T4": GpuType(name="T4", gpus_per_node=4)}


def t4(*nodes: tuple[int, int]) -> Allocation:
    return Allocation("T4", nodes)


def share(width: int, gpu: str = "T4") -> Share:
    return Share(gpu, width)


def nodes(*ids: int) -> tuple[Node, ...]:
    return tuple(Node(n, "T4", 4) for n in ids)


def test_an_allocation_tells_its_width_and_shape() -> None:
    held = t4((1, 4), (3, 2))
    assert held.width == 6
    assert held.shape == (4, 2)


# The pool


def test_a_small_job_goes_into_the_fullest_gap_that_fits() -> None:
    pool = Pool("T4", 4, [0, 1, 2])
    pool.hold([(1, 3)])
    pool.hold([(2, 2)])
    assert pool.take(1) == t4((1, 1))
    assert pool.take(2) == t4((2, 2))
    assert pool.take(1) == t4((0, 1)), "an empty node only where nothing else has room"


def test_a_wide_job_takes_whole_nodes_and_a_gap() -> None:
    pool = Pool("T4", 4, [0, 1, 2])
    pool.hold([(0, 1)])
    assert pool.take(6) == t4((0, 2), (1, 4))
    assert pool.take(5) == t4((0, 1), (2, 4))
    assert pool.take(1) is None


def test_room_on_more_nodes_than_needed_is_taken_only_if_asked_for() -> None:
    pool = Pool("T4", 4, [0, 1, 2])
    for node, count in ((0, 3), (1, 2), (2, 2)):
        pool.hold([(node, count)])
    assert pool.take(4) is None
    assert pool.take(6, spread=True) is None, "there are five"
    assert pool.take(4, spread=True) == t4((1, 2), (2, 2))
    assert pool.free == {0: 1, 1: 0, 2: 0}


def test_more_than_there_is_cannot_be_taken_or_given() -> None:
    pool = Pool("T4", 4, [0])
    with pytest.raises(AssertionError, match="node 0 would have 5 of 4"):
        pool.give(t4((0, 1)))
    with pytest.raises(AssertionError, match="-1 of 4"):
        pool.hold([(0, 5)])


def test_a_dropped_node_is_gone() -> None:
    pool = Pool("T4", 4, [0, 1])
    pool.drop(0)
    assert pool.empty() == [1]
    assert not pool.fits(t4((0, 1)))
    assert pool.take(8) is None
    assert pool.nodes_missing(8) == 1


def test_gpus_of_another_type_do_not_fit() -> None:
    assert not Pool("V100", 4, [0]).fits(t4((0, 1)))
    assert Pool("T4", 4, [0]).fits(t4((0, 4)))
    assert not Pool("T4", 4, [0]).fits(t4((0, 5)))


# Places for all


def test_a_job_of_another_width_moves_and_its_neighbours_do_not() -> None:
    current = {"a": t4((0, 2)), "b": t4((0, 2)), "c": t4((1, 4))}
    wanted = {"a": share(2), "b": share(4), "c": share(4)}
    found = place(wanted, current, nodes(0, 1), T4, next_node=5, elastic=True)
    assert found.allocations == {"a": t4((0, 2)), "b": t4((5, 4)), "c": t4((1, 4))}
    assert found.nodes == nodes(0, 1, 5)


def test_nodes_that_nobody_needs_are_not_kept() -> None:
    found = place({"a": share(2)}, {"a": t4((1, 2))}, nodes(0, 1), T4, next_node=2, elastic=True)
    assert found.nodes == nodes(1)


def test_a_job_of_another_type_moves() -> None:
    types = {**T4, "V100": GpuType(name="V100", gpus_per_node=8)}
    wanted = {"a": share(2, "V100")}
    found = place(wanted, {"a": t4((0, 2))}, nodes(0), types, next_node=1, elastic=True)
    assert found.allocations == {"a": Allocation("V100", ((1, 2),))}
    assert found.nodes == (Node(1, "V100", 8),)


def test_on_a_fixed_cluster_jobs_make_room_for_a_wider_one() -> None:
    current = {"a": t4((0, 2)), "b": t4((1, 2))}
    wanted = {"a": share(2), "b": share(2), "wide": share(4)}
    found = place(wanted, current, nodes(0, 1), T4, next_node=2, elastic=False)
    assert sorted(a.nodes for a in found.allocations.values()) == [((0, 4),), ((1, 2),), ((1, 2),)]
    assert found.allocations["b"] == current["b"], "who is not in the way stays"


def test_on_a_fixed_cluster_a_job_without_room_waits() -> None:
    wanted = {"wide": share(8), "small": share(3)}
    found = place(wanted, {}, nodes(0, 1), T4, next_node=2, elastic=False)
    assert found.allocations == {"wide": t4((0, 4), (1, 4))}
    assert found.nodes == nodes(0, 1)


def test_on_a_node_that_is_gone_nobody_stays() -> None:
    found = place({"a": share(2)}, {"a": t4((0, 2))}, nodes(1), T4, next_node=2, elastic=False)
    assert found.allocations == {"a": t4((1, 2))}


def test_a_smaller_cluster_keeps_the_busiest_nodes_and_a_larger_one_adds_new_ones() -> None:
    current = {"a": t4((0, 1)), "b": t4((2, 3)), "c": t4((0, 1))}
    for wanted, left in ((1, (2,)), (2, (0, 2)), (3, (0, 1, 2)), (5, (0, 1, 2, 9, 10))):
        assert resized(nodes(0, 1, 2), {"T4": wanted}, T4, current, 9) == nodes(*left)
    assert resized(nodes(0, 1), {}, T4, current, 9) == ()
