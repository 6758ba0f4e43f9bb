"""The exchange rate that reasons are given with is the one that the plan was made with."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

import boa
from boa.model import Workload
from boa.scheduler.plan.why import why
from boa.solver.objective import Rules
from strategies import workloads

RULES = [Rules(), Rules(billing="node"), Rules(routing="migrate"), Rules(rescaling=False)]
factors = st.sampled_from([1.01, 1.1, 1.4, 2.0, 4.0])


@given(workload=workloads(), rules=st.sampled_from(RULES), factor=factors)
def test_at_its_rate_no_other_width_of_a_stretch_is_worth_more(
    workload: Workload, rules: Rules, factor: float
) -> None:
    """time + rate · cost, rescaling at the beginning of the stretch included on both sides."""
    uncapped = dataclasses.replace(
        workload,
        classes=tuple(dataclasses.replace(c, max_jct_s=None) for c in workload.classes),
    )
    options = dataclasses.asdict(rules)
    budget = boa.frontier(uncapped, **options).cheapest * factor
    solution = boa.plan(uncapped, budget, **options)
    for job_class in uncapped.classes:
        found = why(solution, job_class.name)
        assert found is not None
        for variant in found.variants:
            for stretch in variant.epochs:
                worth = {
                    c.width: c.time_s + found.seconds_per_usd * c.cost_usd for c in stretch.choices
                }
                least = min(worth.values())
                assert worth[stretch.width] == pytest.approx(least, rel=1e-7)


@given(workload=workloads(), factor=factors)
def test_the_stretches_of_a_plan_add_up_to_what_it_expects(
    workload: Workload, factor: float
) -> None:
    budget = boa.frontier(workload).cheapest * factor
    solution = boa.plan(workload, budget)
    for outcome in solution.outcome.classes:
        found = why(solution, outcome.name)
        assert found is not None
        planned = [
            (variant.share, choice)
            for variant in found.variants
            for stretch in variant.epochs
            for choice in stretch.choices
            if choice.width == stretch.width
        ]
        assert sum(share * c.time_s for share, c in planned) == pytest.approx(outcome.jct)
        assert sum(share * c.cost_usd for share, c in planned) == pytest.approx(outcome.cost)
