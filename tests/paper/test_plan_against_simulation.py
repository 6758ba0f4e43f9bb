"""What BOA's plan promises is what comes of it when the trace is replayed."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from boa.catalogue.traces import read_trace
from boa.policy.boa import Boa
from boa.policy.registry import Choice, Learning
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings

budgets = pytest.mark.parametrize("budget", [110, 140, 200])


@cache
def new_trace(sia: Path) -> World:
    trace = read_trace(sia / "workloads" / "newtrace" / "workload-1.csv")
    return world_of(trace, sia / "traces", ["T4"])


def run(shared_data: Path, budget: float, learning: Learning) -> dict[str, Any]:
    settings = Settings(learning=learning, interval_s=None)
    report = simulate(new_trace(shared_data / "sia"), Choice(policy=Boa(), budget=budget), settings)
    return report.document()


@budgets
def test_with_perfect_knowledge_the_plan_comes_true(shared_data: Path, budget: float) -> None:
    found = run(shared_data, budget, "perfect")
    assert found["average_jct_s"] == pytest.approx(found["planned_jct_s"], rel=0.005)
    assert found["spend_per_hour"] == pytest.approx(found["planned_spend_per_hour"], rel=0.005)
    assert found["planned_spend_per_hour"] == pytest.approx(budget)
    assert found["plans"] == 1
    assert found["average_queueing_s"] == 0


@budgets
def test_while_it_learns_the_plan_comes_almost_true(shared_data: Path, budget: float) -> None:
    found = run(shared_data, budget, "class")
    assert found["average_jct_s"] == pytest.approx(found["planned_jct_s"], rel=0.05)
    assert found["spend_per_hour"] == pytest.approx(found["planned_spend_per_hour"], rel=0.05)
    assert found["plans"] > 1
