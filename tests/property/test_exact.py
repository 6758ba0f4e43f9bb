"""The exact solver against enumeration, against HiGHS, and against its own certificate."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boa
from boa.model import Workload
from boa.solver.objective import Rules
from brute import best_deterministic, best_mixed, cheapest_spend
from strategies import workloads

RULES = [
    Rules(),
    Rules(billing="node"),
    Rules(routing="migrate"),
    Rules(rescaling=False),
    Rules(rescaling=False, routing="epoch"),
]
rules_of_any_kind = st.sampled_from(RULES)
factors = st.sampled_from([1.0, 1.01, 1.1, 1.4, 2.0, 4.0])
small = workloads(max_classes=2, max_epochs=3, max_width=4)


def options(rules: Rules) -> dict[str, object]:
    return dataclasses.asdict(rules)


def cheapest(workload: Workload, rules: Rules) -> float:
    return boa.frontier(workload, **options(rules)).cheapest  # type: ignore[arg-type]


@given(workload=small, rules=rules_of_any_kind, factor=factors)
def test_exact_equals_enumeration(workload: Workload, rules: Rules, factor: float) -> None:
    budget = cheapest_spend(workload, rules) * factor
    found = boa.plan(workload, budget, **options(rules))  # type: ignore[arg-type]
    assert found.objective == pytest.approx(best_mixed(workload, rules, budget), rel=1e-8)


@given(workload=workloads(), rules=rules_of_any_kind, factor=factors)
def test_exact_equals_the_monolithic_program(
    workload: Workload, rules: Rules, factor: float
) -> None:
    budget = cheapest(workload, rules) * factor
    exact = boa.plan(workload, budget, **options(rules))  # type: ignore[arg-type]
    check = boa.plan(workload, budget, solver="milp", **options(rules))  # type: ignore[arg-type]
    assert exact.objective == pytest.approx(check.objective, rel=1e-6)
    assert check.spend <= budget * (1 + 1e-7)


@given(workload=workloads(), rules=rules_of_any_kind, factor=factors)
def test_the_certificate_holds(workload: Workload, rules: Rules, factor: float) -> None:
    """Feasible, at the bound, and the bound is the dual value at the shadow price."""
    budget = cheapest(workload, rules) * factor
    found = boa.plan(workload, budget, **options(rules))  # type: ignore[arg-type]
    again = boa.solver.objective.evaluate(workload, found.plan, rules)
    assert again.spend <= budget * (1 + 1e-9)
    assert found.gap == pytest.approx(0.0, abs=1e-9)
    assert found.shadow_price >= 0.0
    complementary = found.shadow_price * (budget - again.spend)
    assert complementary == pytest.approx(0.0, abs=1e-7 * found.objective)
    assert sum(len(c.variants) > 1 for c in found.plan.classes) <= 1
    for planned in found.plan.classes:
        assert len(planned.variants) <= 2
        if planned.variants:
            assert sum(v.share for v in planned.variants) == pytest.approx(1.0)


@given(workload=small, rules=st.sampled_from(RULES[:4]), factor=factors)
def test_the_deterministic_plan_is_the_best_of_all(
    workload: Workload, rules: Rules, factor: float
) -> None:
    budget = cheapest_spend(workload, rules) * factor
    found = boa.plan(workload, budget, deterministic=True, **options(rules))  # type: ignore[arg-type]
    assert found.proven
    assert all(len(c.variants) == 1 for c in found.plan.classes)
    assert found.spend <= budget * (1 + 1e-9)
    assert found.objective == pytest.approx(best_deterministic(workload, rules, budget), rel=1e-8)
    assert found.objective >= found.lower_bound


@settings(max_examples=30)
@given(workload=workloads(max_epochs=3), rules=st.sampled_from(RULES[:3]), factor=factors)
def test_the_deterministic_plan_equals_the_integer_program(
    workload: Workload, rules: Rules, factor: float
) -> None:
    budget = cheapest(workload, rules) * factor * (1 + 1e-6)
    chosen = options(rules)
    exact = boa.plan(workload, budget, deterministic=True, **chosen)  # type: ignore[arg-type]
    check = boa.plan(
        workload,
        budget,
        solver="milp",
        deterministic=True,
        gap=0.0,
        **chosen,  # type: ignore[arg-type]
    )
    assert exact.objective == pytest.approx(check.objective, rel=1e-5)


@given(workload=workloads(rescaling=False), factor=factors)
def test_without_rescaling_times_the_flag_changes_nothing(
    workload: Workload, factor: float
) -> None:
    budget = cheapest(workload, Rules()) * factor
    with_flag = boa.plan(workload, budget, rescaling=False)
    assert boa.plan(workload, budget).objective == pytest.approx(with_flag.objective, rel=1e-9)


@given(workload=workloads(), factor=factors)
def test_more_freedom_never_hurts(workload: Workload, factor: float) -> None:
    """migrate <= class; no rescaling <= rescaling; per GPU <= per node; mixed <= deterministic."""
    budget = cheapest(workload, Rules(billing="node")) * factor
    plain = boa.plan(workload, budget).objective
    slack = 1 + 1e-9
    assert boa.plan(workload, budget, routing="migrate").objective <= plain * slack
    assert boa.plan(workload, budget, rescaling=False).objective <= plain * slack
    assert plain <= boa.plan(workload, budget, billing="node").objective * slack
    assert plain <= boa.plan(workload, budget, deterministic=True).objective * slack


@given(workload=workloads(), factor=st.floats(0.1, 0.999))
def test_a_budget_below_the_cheapest_is_refused_with_its_name(
    workload: Workload, factor: float
) -> None:
    needed = cheapest(workload, Rules())
    with pytest.raises(boa.BudgetTooSmall) as refusal:
        boa.plan(workload, needed * factor)
    assert refusal.value.needed == pytest.approx(needed, rel=1e-9)
    named = float(str(refusal.value).split("spends ")[1].split()[0])
    assert needed * (1 - 1e-9) <= named <= needed * (1 + 2e-5)
    boa.plan(workload, named)


@given(workload=workloads(), factor=factors, scale=st.floats(0.1, 10.0))
def test_scaling_all_prices_scales_the_budget(
    workload: Workload, factor: float, scale: float
) -> None:
    dearer = dataclasses.replace(
        workload,
        gpu_types={
            name: dataclasses.replace(gpu, price=gpu.price * scale)
            for name, gpu in workload.gpu_types.items()
        },
    )
    budget = cheapest(workload, Rules()) * factor * (1 + 1e-9)
    before = boa.plan(workload, budget)
    after = boa.plan(dearer, budget * scale)
    assert after.objective == pytest.approx(before.objective, rel=1e-6)


@given(workload=workloads(max_classes=2), factor=factors, share=st.floats(0.1, 0.9))
def test_splitting_a_class_in_two_changes_nothing(
    workload: Workload, factor: float, share: float
) -> None:
    first = workload.classes[0]
    halves = (
        dataclasses.replace(first, arrivals_per_hour=first.arrivals_per_hour * share),
        dataclasses.replace(
            first, name="twin", arrivals_per_hour=first.arrivals_per_hour * (1 - share)
        ),
    )
    split = dataclasses.replace(workload, classes=(*halves, *workload.classes[1:]))
    budget = cheapest(workload, Rules()) * factor * (1 + 1e-9)
    whole = boa.plan(workload, budget)
    assert boa.plan(split, budget).objective == pytest.approx(whole.objective, rel=1e-7)


@given(workload=workloads(), factor=factors)
def test_algorithm_1_never_beats_the_optimum(workload: Workload, factor: float) -> None:
    budget = cheapest(workload, Rules()) * factor
    optimum = boa.plan(workload, budget)
    try:
        heuristic = boa.plan(workload, budget, solver="glue")
    except boa.errors.NoPlanFound:
        return
    assert heuristic.spend <= budget * (1 + 1e-9)
    assert heuristic.objective >= optimum.objective * (1 - 1e-9)
    assert heuristic.lower_bound == pytest.approx(optimum.lower_bound)
