"""The price of money that a plan sets."""

from dataclasses import replace

import pytest

from boa.model.speedup import Power
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.policy.boa import planned_of, within_reach
from boa.units import SECONDS_PER_HOUR

A = JobClass(
    name="a",
    arrivals_per_hour=2.0,
    rescale_s=30.0,
    epochs=(Epoch(work=3600.0, speedups={"T4": Power(0.9)}),),
)
WORKLOAD = Workload(gpu_types={"T4": GpuType(name="T4", price=0.5, gpus_per_node=4)}, classes=(A,))


def price(workload: Workload, budget: float) -> float:
    return planned_of(within_reach(workload, budget)[0], version=1, at=0.0).price


def test_a_second_of_a_gpu_is_never_worth_more_than_a_second_of_a_job() -> None:
    assert price(WORKLOAD, 0.1) == pytest.approx(SECONDS_PER_HOUR / 0.5), "far too small a budget"
    twice = replace(WORKLOAD, classes=(replace(A, weight=2.0),))
    assert price(twice, 0.1) == pytest.approx(2 * SECONDS_PER_HOUR / 0.5), "it counts for two"


def test_with_enough_money_the_price_is_the_plans_own() -> None:
    solution = within_reach(WORKLOAD, 2.0)[0]
    assert 0 < price(WORKLOAD, 2.0) == solution.shadow_price * 2.0 < SECONDS_PER_HOUR / 0.5
