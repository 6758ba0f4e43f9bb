"""Steering: what the bill and the jobs that are there leave of a budget."""

from dataclasses import replace

import pytest

from boa.scheduler.money.steering import Steered, effective, looked


@pytest.mark.parametrize(("before", "after"), [(300.0, 8.0), (8.0, 300.0)])
def test_a_budget_that_is_set_is_planned_with_whatever_jobs_still_cost(
    before: float, after: float
) -> None:
    """How much of that counts depends on the budget: the difference is neither saved nor spent."""
    began = Steered(at=0.0, billed=0.0)
    steered = looked(began, before, 60.0, billed=0.0, to_go=1e3, promised=before, horizon_h=24.0)
    steered = replace(steered, left=0.0, committed=0.0, promised=0.0)  # as `Purse.set` does
    steered = looked(
        steered, after, 120.0, billed=after / 60, to_go=1e3, promised=after, horizon_h=24.0
    )
    assert effective(steered, after, 24.0) == pytest.approx(after / 1.1, rel=0.01)
