"""Appendix "Loss of the arrival-routing simplification": within 5 % without rescaling."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import boa
from boa.model.workload import Workload
from strategies import workloads


@pytest.fixture(scope="module")
def newtrace(examples: Path) -> Workload:
    return boa.load_workload(examples / "newtrace-hetero.yaml")


def test_routing_at_arrival_loses_under_five_percent_on_newtrace(newtrace: Workload) -> None:
    by_class = boa.frontier(newtrace, rescaling=False)
    by_epoch = boa.frontier(newtrace, rescaling=False, routing="epoch")
    for factor in (1.01, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0):
        budget = by_class.cheapest * factor
        loss = by_class.at(budget).objective / by_epoch.at(budget).objective - 1
        assert -1e-9 <= loss <= 0.05, f"{loss:.2%} at {budget:.1f} $/h"


@given(workload=workloads(), factor=st.sampled_from([1.0, 1.1, 1.5, 3.0]))
def test_per_epoch_routing_is_never_worse_than_routing_at_arrival(
    workload: Workload, factor: float
) -> None:
    budget = boa.frontier(workload, rescaling=False).cheapest * factor
    by_class = boa.plan(workload, budget, rescaling=False)
    by_epoch = boa.plan(workload, budget, rescaling=False, routing="epoch")
    assert by_epoch.objective <= by_class.objective * (1 + 1e-9)
