"""Bill and JCT where nodes are billed, foretold for a plan; and the bound that knows of boots."""

import math
from dataclasses import replace

import pytest

from boa.errors import BudgetTooSmall
from boa.model.speedup import Power
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.sim.bound import bound_jct, bound_with_boots
from boa.sim.foretold import _figure, _world, foretold
from boa.solver.planner import plan

WORKLOAD = Workload(
    gpu_types={"T4": GpuType(name="T4", price=1.0, gpus_per_node=4)},
    classes=(
        JobClass(
            name="steep",
            arrivals_per_hour=6.0,
            epochs=(Epoch(work=1800.0, speedups={"T4": Power(0.8)}),),
            rescale_s=10.0,
        ),
        JobClass(
            name="flat",
            arrivals_per_hour=6.0,
            epochs=(Epoch(work=900.0, speedups={"T4": Power(0.4)}),),
            rescale_s=10.0,
        ),
    ),
)


def test_what_is_foretold_is_near_the_budget_and_above_the_plan() -> None:
    found = foretold(WORKLOAD, 14.0, boot_s=60.0, draws=2, jobs=80)
    assert found.bill.mean == pytest.approx(14.0, rel=0.2)
    assert found.jct.mean > plan(WORKLOAD, found.bill.mean).average_jct
    assert found.over_bound.mean < 1.6
    assert found.document()["by"] == "simulation"


def test_slower_boots_are_foretold_to_cost_time() -> None:
    quick, slow = (foretold(WORKLOAD, 14.0, boot_s=s, draws=1, jobs=60) for s in (5.0, 600.0))
    assert slow.over_bound.mean > quick.over_bound.mean


def test_a_budget_that_cannot_keep_up_is_refused() -> None:
    with pytest.raises(BudgetTooSmall):
        foretold(WORKLOAD, 0.5, boot_s=60.0, draws=1, jobs=20)


def test_the_cheapest_budget_is_foretold_whatever_happened_to_be_drawn() -> None:
    cheapest = plan(WORKLOAD, 1e9).cheapest
    found = foretold(WORKLOAD, cheapest, boot_s=60.0, draws=2, jobs=40)
    assert found.draws == 2
    assert found.bill.mean > cheapest


def test_errors_are_wider_the_fewer_draws_there_are() -> None:
    assert _figure([1.0, 2.0, 3.0]).error == pytest.approx(4.30 / math.sqrt(3))
    assert _figure([1.0, 3.0]).error == pytest.approx(12.71), "a draw that did not keep up"
    assert _figure([1.0]).error == math.inf


def test_the_bound_with_boots_adds_a_boot_where_no_node_is_paid_for() -> None:
    world = _world(WORKLOAD, jobs=50, seed=0)
    always = 12.0  # a node of 4 at all times, and more: nobody need wait for a boot
    assert bound_with_boots(world, always, 120.0) == bound_jct(world, always)
    seldom = replace(
        WORKLOAD,
        classes=tuple(replace(c, arrivals_per_hour=0.6) for c in WORKLOAD.classes),
    )
    small = _world(seldom, jobs=50, seed=0)
    bill = 1.2 * plan(small.workload, 1e9).cheapest
    assert bill < 4.0
    known = bound_jct(small, bill)
    assert known is not None
    assert bound_with_boots(small, bill, 120.0) == pytest.approx(known + 120.0 * (1 - bill / 4.0))
