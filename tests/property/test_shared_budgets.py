"""Shared budgets: the tree's optimum against enumeration, HiGHS and its own certificate."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import boa
from boa.errors import BudgetTooSmall, InputError
from boa.model import Amdahl, Epoch, GpuType, JobClass, Workload
from boa.model.budgets import Budget
from boa.policy.sharing import at_one_price, within_shares
from boa.solver.objective import Rules
from boa.solver.planner import plan_shared
from boa.solver.pricing import Pricing
from boa.solver.solution import Solution
from brute import outcomes
from strategies import workloads

RULES = [Rules(), Rules(billing="node"), Rules(routing="migrate"), Rules(rescaling=False)]
rules_of_any_kind = st.sampled_from(RULES)
small = workloads(max_classes=3, max_epochs=2, max_width=4)
parts_of_one = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.8])
factors = st.sampled_from([1.05, 1.4, 2.0, 4.0])
fewer = settings(max_examples=40)
"""Every example solves a tree two or three times."""


@st.composite
def trees(draw: st.DrawFn, workload: Workload, cheapest: dict[str, float]) -> Budget:
    """A lab of two teams, the first of which has a user with a budget of their own; some classes
    are nobody's. Ceilings leave room for what the jobs need at least."""
    names = [c.name for c in workload.classes]
    owners = draw(st.lists(st.sampled_from(["lab", "a", "a/u", "b"]), min_size=3, max_size=3))
    owned = {
        owner: tuple(n for n, o in zip(names, owners, strict=False) if o == owner)
        for owner in ("a", "a/u", "b")
    }
    total = sum(cheapest.values()) * draw(factors)
    ceilings = {}
    for owner, within in (("a/u", ("a/u",)), ("a", ("a", "a/u")), ("b", ("b",))):
        needed = sum(cheapest[name] for inner in within for name in owned[inner])
        ceilings[owner] = draw(st.sampled_from([None, needed * 1.5 + 1e-6, total]))
    user = Budget(
        name="a/u",
        per_hour=total * draw(parts_of_one) * 0.5,
        max_per_hour=ceilings["a/u"],
        lends=draw(st.booleans()),
        classes=owned["a/u"],
    )
    a = Budget(
        name="a",
        per_hour=user.per_hour + total * draw(parts_of_one) * 0.3,
        max_per_hour=ceilings["a"],
        lends=draw(st.booleans()),
        parts=(user,),
        classes=owned["a"],
    )
    b = Budget(
        name="b",
        per_hour=total * draw(parts_of_one) * 0.4,
        max_per_hour=ceilings["b"],
        lends=draw(st.booleans()),
        classes=owned["b"],
    )
    return Budget(name="lab", per_hour=total, parts=(a, b))


def solved(workload: Workload, rules: Rules, data: st.DataObject) -> tuple[Budget, Solution]:
    found = boa.frontier(workload, **dataclasses.asdict(rules))
    least = boa.plan(workload, found.cheapest * (1 + 1e-9), **dataclasses.asdict(rules))
    cheapest = {c.name: c.spend for c in least.outcome.classes}
    tree = data.draw(trees(workload, cheapest))
    try:
        return tree, plan_shared(workload, tree, **dataclasses.asdict(rules))
    except (InputError, BudgetTooSmall):
        assume(False)
        raise


def spends(solution: Solution, classes: tuple[int, ...]) -> float:
    return sum(solution.outcome.classes[i].spend for i in classes)


@fewer
@given(workload=small, rules=rules_of_any_kind, data=st.data())
def test_the_shared_optimum_equals_enumeration(
    workload: Workload, rules: Rules, data: st.DataObject
) -> None:
    """Every sequence of every class as a column, every budget as a row."""
    _, found = solved(workload, rules, data)
    lists = outcomes(workload, rules)
    columns = [(i, point) for i, points in enumerate(lists) for point in points]
    objective = np.array([point[0] for _, point in columns])
    spend = np.array([point[1] for _, point in columns])
    rows, limits = [], []
    for budget in found.budgets:
        mine = np.array([i in budget.classes for i, _ in columns])
        paid = np.where(mine, spend, 0.0)
        if math.isfinite(budget.most):
            rows.append(paid)
            limits.append(budget.most * (1 + 1e-12))
        rows.append(-paid)
        limits.append(-budget.least * (1 - 1e-12))
    everyone = np.array([[float(i == n) for i, _ in columns] for n in range(len(lists))])
    best = linprog(objective, np.array(rows), limits, everyone, np.ones(len(lists)))
    assert best.success
    assert found.objective == pytest.approx(best.fun, rel=1e-6)


@fewer
@given(workload=workloads(), rules=rules_of_any_kind, data=st.data())
def test_the_shared_optimum_equals_the_monolithic_program(
    workload: Workload, rules: Rules, data: st.DataObject
) -> None:
    tree, found = solved(workload, rules, data)
    check = plan_shared(workload, tree, solver="milp", **dataclasses.asdict(rules))
    assert found.objective == pytest.approx(check.objective, rel=1e-6)


@fewer
@given(workload=workloads(), rules=rules_of_any_kind, data=st.data())
def test_every_share_and_ceiling_is_kept_and_the_bound_is_met(
    workload: Workload, rules: Rules, data: st.DataObject
) -> None:
    tree, found = solved(workload, rules, data)
    assert found.gap == pytest.approx(0.0, abs=1e-8)
    by_name = {budget.name: budget for budget in found.budgets}
    for part in tree.every:
        budget = by_name[part.name]
        spent = spends(found, budget.classes)
        assert budget.spend == pytest.approx(spent, rel=1e-9, abs=1e-12)
        if part.max_per_hour is not None:
            assert spent <= part.max_per_hour * (1 + 1e-9)
        if part is not tree and all(inner.lends for inner in part.every):
            assert spent >= min(part.per_hour, budget.wanted, budget.most) * (1 - 1e-9)
    kept = sum(
        max(0.0, team.per_hour - by_name[team.name].spend) for team in tree.parts if not team.lends
    )
    assert found.spend + kept <= tree.per_hour * (1 + 1e-9)


@fewer
@given(workload=workloads(), rules=rules_of_any_kind, data=st.data())
def test_a_multiplier_differs_from_the_one_above_only_where_a_bound_binds(
    workload: Workload, rules: Rules, data: st.DataObject
) -> None:
    _, found = solved(workload, rules, data)
    by_name = {budget.name: budget for budget in found.budgets}
    for budget in found.budgets[1:]:
        above = by_name[budget.above or ""].multiplier
        if budget.multiplier > above:
            assert budget.spend == pytest.approx(budget.most, rel=1e-6)
        if budget.multiplier < above:
            assert budget.spend == pytest.approx(budget.least, rel=1e-6)


@fewer
@given(workload=workloads(), rules=rules_of_any_kind, factor=factors)
def test_one_pot_is_a_tree_without_parts(workload: Workload, rules: Rules, factor: float) -> None:
    how = dataclasses.asdict(rules)
    budget = boa.frontier(workload, **how).cheapest * factor
    alone = boa.plan(workload, budget, **how)
    pot = plan_shared(workload, Budget(name="lab", per_hour=budget), **how)
    assert pot.objective == pytest.approx(alone.objective, rel=1e-9)
    assert pot.shadow_price == pytest.approx(alone.shadow_price, rel=1e-9)


@fewer
@given(workload=workloads(), rules=rules_of_any_kind, data=st.data())
def test_no_team_is_slower_than_alone_with_its_share(
    workload: Workload, rules: Rules, data: st.DataObject
) -> None:
    """What a share by right means: the team's own objective is no worse than on a cluster of its
    own that its share pays for."""
    tree, found = solved(workload, rules, data)
    how = dataclasses.asdict(rules)
    for team in tree.parts:
        if team.parts or not team.classes or team.max_per_hour is not None:
            continue
        own = Workload(
            gpu_types=workload.gpu_types,
            classes=tuple(c for c in workload.classes if c.name in team.classes),
        )
        if not own.arrivals_per_hour or boa.frontier(own, **how).cheapest > team.per_hour:
            continue
        alone = boa.plan(own, team.per_hour, **how)
        got = {c.name: c.jct for c in found.outcome.classes}
        weighted = sum(c.weight * c.arrivals_per_hour * got[c.name] for c in own.classes)
        assert weighted / own.weighted_arrivals_per_hour <= alone.objective * (1 + 1e-8)


@fewer
@given(workload=workloads(), data=st.data())
def test_one_price_has_every_class_do_what_its_own_price_says(
    workload: Workload, data: st.DataObject
) -> None:
    """Weights divided by how dear money is: the same sequences are best at one multiplier."""
    _, found = solved(workload, Rules(), data)
    as_one = at_one_price(found)
    ratios = [mu / found.shadow_price for mu in found.multipliers if found.shadow_price]
    assume(ratios and all(1 / 4 < ratio < 4 for ratio in ratios))
    pricing = Pricing.of(as_one.workload, Rules())
    for i, planned in enumerate(found.outcome.classes):
        weight = pricing.chains[i].weight
        best = pricing.best(i, as_one.shadow_price)
        value = weight * planned.jct + as_one.shadow_price * planned.cost
        assert value == pytest.approx(
            weight * best.time + as_one.shadow_price * best.cost, rel=1e-7
        )


@fewer
@given(workload=workloads(), rules=rules_of_any_kind, data=st.data())
def test_while_jobs_run_there_is_always_a_plan(
    workload: Workload, rules: Rules, data: st.DataObject
) -> None:
    """Shares and ceilings that cannot all be kept are loosened, never an error."""
    cheapest = boa.frontier(workload).cheapest
    names = tuple(c.name for c in workload.classes)
    tree = Budget(
        name="lab",
        per_hour=cheapest * data.draw(st.sampled_from([0.5, 1.0 + 1e-9, 1.3])),
        parts=(
            Budget(name="a", per_hour=cheapest * 0.3, max_per_hour=1e-3, classes=names[:1]),
            Budget(name="b", per_hour=cheapest * 0.2, lends=False),
        ),
    )
    solution, needed = within_shares(workload, tree)
    assert (needed is None) == (tree.per_hour >= cheapest)
    assert solution.spend <= max(tree.per_hour, cheapest) * (1 + 1e-6)


def test_what_is_hoped_of_a_class_counts_at_its_teams_price_too() -> None:
    classes = tuple(
        JobClass(
            name=name,
            arrivals_per_hour=1.0,
            epochs=(Epoch(work=3600.0, speedups={"T4": Amdahl(0.9)}),),
        )
        for name in ("one", "other")
    )
    hopes = {found.name: found for found in classes}
    workload = Workload(gpu_types={"T4": GpuType(name="T4")}, classes=classes, hopes=hopes)
    poor = Budget(name="poor", max_per_hour=1.2, classes=("other",))
    found = at_one_price(plan_shared(workload, Budget(name="lab", per_hour=6.0, parts=(poor,))))
    one, other = found.workload.classes
    assert one.weight > other.weight
    assert [found.workload.hopes[c.name].weight for c in (one, other)] == [one.weight, other.weight]
