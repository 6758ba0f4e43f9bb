"""Autoscaled rivals while nodes boot: the size as ever, jobs on what is ready."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

from boa.model.cluster import Allocation, ClusterView, JobView, Node, Policy
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.placement.packing import allocate
from boa.policy.rivals.autoscale import SOON_S, ready_nodes
from boa.policy.rivals.pollux_autoscale import PolluxAutoscale
from boa.policy.rivals.rubick_autoscale import RubickAutoscale
from boa.policy.rivals.sia_autoscale import SiaAutoscale

TYPES = {"T4": GpuType(name="T4", gpus_per_node=4)}
BOOT_S = 120.0
RIVALS = [PolluxAutoscale(0.5), SiaAutoscale(0.5), RubickAutoscale(0.5)]


@dataclass(frozen=True)
class Known:
    def rates(self, gpu: str, epoch: int) -> Floats | None:
        rates = np.arange(65.0) ** 0.7
        return np.stack([rates, 0.9 * rates])


def job(name: str, held: Allocation | None = None) -> JobView:
    return JobView(
        id=name,
        job_class="any",
        arrival=0.0,
        serial=0,
        epoch=0,
        prediction=Known(),
        allocation=held,
        tried={"T4": 64},
        rescale_s=1.0,
        rescalings=0,
    )


def view(nodes: int, booting: Mapping[int, float], *, boot_s: float = BOOT_S) -> ClusterView:
    """Four jobs: two on the first node, two that wait."""
    held = Allocation("T4", ((0, 2),))
    return ClusterView(
        now=1e6,
        jobs=[job("a", held), job("b", held), job("c"), job("d")],
        nodes=[Node(n, "T4", 4) for n in range(nodes)],
        gpu_types=TYPES,
        next_node=nodes,
        booting=booting,
        boot_s={"T4": boot_s},
    )


def used(policy: Policy, seen: ClusterView) -> tuple[set[int], set[int]]:
    """Nodes that jobs are placed on, and all that are to be there."""
    current = {j.id: j.allocation for j in seen.jobs if j.allocation is not None}
    placed, nodes = allocate(policy.decide(seen), current, seen.nodes, TYPES, seen.next_node)
    return {n for held in placed.values() for n, _ in held.nodes}, {node.id for node in nodes}


def test_nodes_that_boot_are_not_ready_unless_they_soon_are() -> None:
    seen = view(3, {1: SOON_S + 1.0, 2: SOON_S})
    new = Node(3, "T4", 4)
    assert [node.id for node in ready_nodes(seen, [*seen.nodes, new])] == [0, 2]


def test_without_boots_every_node_is_ready_the_new_ones_too() -> None:
    seen = view(1, {}, boot_s=0.0)
    wanted = [*seen.nodes, Node(1, "T4", 4)]
    assert ready_nodes(seen, wanted) == tuple(wanted)


@pytest.mark.parametrize("policy", RIVALS, ids=lambda policy: policy.name)
def test_nobody_is_sent_to_nodes_that_were_just_asked_for(policy: Policy) -> None:
    here, nodes = used(policy, view(1, {}))
    assert len(nodes) > 1
    assert here == {0}


@pytest.mark.parametrize("policy", RIVALS, ids=lambda policy: policy.name)
def test_the_size_is_chosen_as_if_all_nodes_were_ready(policy: Policy) -> None:
    at_once = used(policy, replace(view(1, {}), boot_s={}))
    assert at_once[0] - {0}, "where nodes are there at once, jobs are too"
    assert used(policy, view(1, {}))[1] == at_once[1]


@pytest.mark.parametrize("policy", RIVALS, ids=lambda policy: policy.name)
def test_while_nodes_boot_they_are_kept_and_left_empty(policy: Policy) -> None:
    _, wanted = used(policy, view(1, {}))
    waiting = view(len(wanted), {n: 60.0 for n in wanted if n})
    here, nodes = used(policy, waiting)
    assert (here, nodes) == ({0}, wanted)
    here, nodes = used(policy, replace(waiting, booting={}))
    assert (here, nodes) == (wanted, wanted), "once ready they are used"


@pytest.mark.parametrize("policy", RIVALS, ids=lambda policy: policy.name)
def test_with_no_node_ready_all_wait(policy: Policy) -> None:
    here, nodes = used(policy, replace(view(0, {}), jobs=[job("a"), job("b")]))
    assert not here
    assert nodes
