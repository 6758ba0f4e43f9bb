"""Algorithm 1, the BOA width calculator (Appendix B): what it promises, and what it does not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import boa
from boa.errors import NoPlanFound, UsageError
from boa.model.plan import Plan
from boa.model.speedup import Amdahl, Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.solver.glue import SAMPLES, Ladder, configurations, solve_glue
from boa.solver.objective import Rules, evaluate
from boa.solver.tables import build_tables
from paper.formulas import as_workload
from strategies import workloads

factors = st.sampled_from([1.02, 1.1, 1.4, 2.0, 4.0])


def glued(workload: Workload, budget: float, rules: Rules | None = None, seed: int = 0) -> Plan:
    return solve_glue(build_tables(workload, rules or Rules()), budget, seed)


@given(
    workload=workloads(), factor=factors, rules=st.sampled_from([Rules(), Rules(billing="node")])
)
def test_its_plan_fits_the_budget_and_never_beats_the_optimum(
    workload: Workload, factor: float, rules: Rules
) -> None:
    optimum = boa.frontier(workload, billing=rules.billing)
    budget = optimum.cheapest * factor
    try:
        outcome = evaluate(workload, glued(workload, budget, rules), rules)
    except NoPlanFound:
        reject()  # rescaling between super-epochs may cost more than there is
    assert outcome.spend <= budget * (1 + 1e-9)
    assert outcome.objective >= optimum.at(budget).objective * (1 - 1e-9)


@given(workload=workloads(max_epochs=1, rescaling=False), data=st.data())
def test_without_rescaling_it_is_optimal_wherever_no_width_needs_rounding(
    workload: Workload, data: st.DataObject
) -> None:
    """One epoch per class, so nothing is glued; a budget at a true corner of the frontier."""
    optimum = boa.frontier(workload)
    slopes = -np.diff(optimum.objectives) / np.diff(optimum.budgets)
    bends = np.flatnonzero(slopes[1:] < slopes[:-1] * (1 - 1e-6)) + 1
    n = data.draw(st.sampled_from([0, *bends.tolist(), len(optimum.budgets) - 1]))
    budget = float(optimum.budgets[n]) * (1 + 1e-12)
    outcome = evaluate(workload, glued(workload, budget))
    assert outcome.objective == pytest.approx(float(optimum.objectives[n]), rel=1e-7)


@given(workload=workloads(max_types=1), factor=factors, seed=st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_plan(workload: Workload, factor: float, seed: int) -> None:
    budget = boa.frontier(workload).fastest_budget * factor
    assert glued(workload, budget, seed=seed) == glued(workload, budget, seed=seed)


@given(workload=workloads(max_epochs=1))
def test_with_money_to_spare_every_class_runs_as_fast_as_it_can(workload: Workload) -> None:
    optimum = boa.frontier(workload)
    outcome = evaluate(workload, glued(workload, optimum.fastest_budget * 1.01))
    assert outcome.average_jct == pytest.approx(optimum.fastest_jct)


def test_it_draws_fifty_configurations_of_powers_of_two_up_to_the_epochs() -> None:
    many = as_workload([100.0] * 100, [Amdahl(0.9)] * 100)
    two = replace(many.classes[0], name="two", epochs=many.classes[0].epochs[:2])
    tables = build_tables(replace(many, classes=(*many.classes, two)), Rules())
    drawn = configurations(tables, seed=3)
    assert len(drawn) == SAMPLES == 50
    assert {g for g, _ in drawn} == {1, 2, 4, 8, 16, 32, 64}
    assert {g for _, g in drawn} == {1, 2}
    assert drawn != configurations(tables, seed=4)


def test_a_super_epoch_adds_work_and_runs_at_the_harmonic_mean() -> None:
    work, rates = (300.0, 700.0, 50.0), ((1.0, 1.5), (1.0, 2.0), (2.0, 3.0))
    curves = [Table.of({1: a, 2: b}) for a, b in rates]
    tables = build_tables(as_workload(work, curves, most=2), Rules())
    ladder = Ladder.of(0, tables.rows[0], glue=2)
    assert ladder is not None
    for k in (0, 1):
        mean = (300 + 700) / (300 / rates[0][k] + 700 / rates[1][k])
        assert ladder.times[:, k] == pytest.approx([(300 + 700) / mean, 50 / rates[2][k]])
    assert ladder.sequence(0) == [0, 0, 0]


@pytest.mark.parametrize(("spare", "width"), [(0.2, 2), (0.45, 2), (0.55, 2), (1.0, 3)])
def test_a_width_that_rounds_up_over_the_budget_is_shrunk_down_again(
    spare: float, width: int
) -> None:
    """From 2 GPUs to 3, with `spare` of the difference in cost: only all of it buys the third."""
    curve = Table.of({1: 1.0, 2: 1.8, 3: 2.4})
    workload = as_workload([3600.0], [curve], most=3)
    budget = 2 / 1.8 + spare * (3 / 2.4 - 2 / 1.8)
    assert glued(workload, budget)["only"].variants[0].widths == (width,)


def test_rounding_goes_to_the_nearest_width_on_the_hull() -> None:
    """2 and 3 GPUs lie below the hull of 1, 4 and 5; the widths in between are never used."""
    curve = Table.of({1: 1.0, 2: 1.1, 3: 1.2, 4: 3.6, 5: 3.7})
    workload = as_workload([3600.0], [curve], most=5)
    widths = {
        glued(workload, budget)["only"].variants[0].widths[0]
        for budget in np.linspace(1.0, 1.4, 30).tolist()
    }
    # s(4)/4 = 0.9 is below s(1)/1, so one GPU is the cheapest
    assert widths <= {1, 4, 5}
    assert {1, 4} <= widths


def test_rescaling_makes_it_shrink_until_the_true_cost_fits(examples: Path) -> None:
    """On newtrace the plan for b without rescaling costs more than b with it."""
    workload = boa.load_workload(examples / "newtrace-t4.yaml")
    budget = boa.frontier(workload).cheapest * 1.3
    free = glued(workload, budget, Rules(rescaling=False))
    assert evaluate(workload, free).spend > budget
    assert evaluate(workload, glued(workload, budget)).spend <= budget * (1 + 1e-9)


def test_several_gpu_types_split_at_most_one_class(examples: Path) -> None:
    workload = boa.load_workload(examples / "newtrace-hetero.yaml")
    plan = glued(workload, boa.frontier(workload).cheapest * 1.5)
    assert sum(len(c.variants) > 1 for c in plan.classes) <= 1
    assert all(len(set(v.gpu_types)) == 1 for c in plan.classes for v in c.variants)


def test_no_plan_is_an_error_that_says_what_to_do() -> None:
    """Three epochs can't be one super-epoch, and at the cheapest budget a change is too dear."""
    wide, narrow = Table.of({1: 1.0, 2: 2.1}), Table.of({1: 1.0, 2: 1.0})
    epochs = [Epoch(work=600.0, speedups={"T4": c}) for c in (narrow, narrow, wide)]
    job_class = JobClass(
        name="only", arrivals_per_hour=1.0, rescale_s=500.0, epochs=tuple(epochs), max_gpus=2
    )
    workload = Workload(gpu_types={"T4": GpuType(name="T4")}, classes=(job_class,))
    with pytest.raises(NoPlanFound, match="--solver exact"):
        glued(workload, boa.frontier(workload).cheapest)


@pytest.mark.parametrize(
    "rules", [Rules(routing="migrate"), Rules(routing="epoch", rescaling=False)]
)
def test_routing_after_arrival_is_refused(rules: Rules) -> None:
    with pytest.raises(UsageError, match="routes at arrival"):
        glued(as_workload([100.0], [Amdahl(0.9)]), 10.0, rules)


def test_a_cap_on_a_jct_is_refused() -> None:
    workload = as_workload([100.0], [Amdahl(0.9)])
    capped = replace(workload, classes=(replace(workload.classes[0], max_jct_s=50.0),))
    with pytest.raises(UsageError, match="max_jct_s"):
        glued(capped, 10.0)
