"""What another budget, or a wished JCT, would mean: the pure part."""

from dataclasses import replace

import numpy as np
import pytest

import boa
from boa.errors import InputError
from boa.formats.plain_yaml import load_yaml
from boa.model.job import JobRecord, State
from boa.model.plan import ClassPlan, Route, Variant
from boa.model.workload import Workload
from boa.scheduler.plan import preview
from boa.scheduler.plan.preview import ENOUGH, LAST
from boa.solver.frontier import Frontier, sweep
from boa.solver.objective import Rules, holdings
from integration.runner import WORKLOAD
from stored import job as record
from stored import spec

RULES = Rules()


@pytest.fixture
def workload() -> Workload:
    return boa.parse_workload(load_yaml(WORKLOAD))


@pytest.fixture
def frontier(workload: Workload) -> Frontier:
    return sweep(workload, RULES)


def ended(number: int, jct: float, state: State = "succeeded") -> JobRecord:
    at = 100.0 * number
    return record(number, spec=spec(), state=state, submitted_at=at, ended_at=at + jct)


def test_a_budget_that_cannot_keep_up_shows_the_plan_for_the_least_that_could(
    workload: Workload, frontier: Frontier
) -> None:
    found = preview.for_budget(workload, frontier.cheapest / 2)
    assert found.budget == frontier.cheapest / 2
    assert found.too_small == pytest.approx(frontier.cheapest)
    assert found.solution.spend == pytest.approx(frontier.cheapest)
    assert found.left_over == 0.0


def test_a_budget_beyond_the_fastest_plan_leaves_money_over(
    workload: Workload, frontier: Frontier
) -> None:
    found = preview.for_budget(workload, frontier.fastest_budget + 5.0)
    assert found.too_small is None
    assert found.left_over == pytest.approx(5.0)
    assert found.solution.shadow_price == 0.0


@pytest.mark.parametrize("part", [0.01, 0.3, 0.7, 0.99])
def test_a_wished_jct_gets_the_budget_whose_plan_takes_it(
    workload: Workload, frontier: Frontier, part: float
) -> None:
    """Classes have weights here: the plan shown is the one that the service would really make."""
    assert len({c.weight for c in workload.classes}) > 1
    slowest = float(frontier.average_jcts[0])
    wished = frontier.fastest_jct + part * (slowest - frontier.fastest_jct)
    found = preview.for_jct(workload, RULES, wished)
    assert found.solution.average_jct == pytest.approx(wished, rel=1e-6)
    assert found.budget == pytest.approx(found.solution.spend, rel=1e-6)
    again = preview.for_budget(workload, found.budget)
    assert again.solution.average_jct == found.solution.average_jct
    less = preview.for_budget(workload, found.budget * 0.99)
    assert less.solution.average_jct > wished or less.too_small is not None


@pytest.mark.parametrize("factor", [0.5, 0.999])
def test_a_jct_that_no_budget_reaches_names_the_range(
    workload: Workload, frontier: Frontier, factor: float
) -> None:
    with pytest.raises(InputError) as problem:
        preview.for_jct(workload, RULES, frontier.fastest_jct * factor)
    _check_range(problem.value, frontier)


def test_a_jct_longer_than_the_cheapest_plans_names_the_range(
    workload: Workload, frontier: Frontier
) -> None:
    with pytest.raises(InputError) as problem:
        preview.for_jct(workload, RULES, float(frontier.average_jcts[0]) * 1.001)
    _check_range(problem.value, frontier)


def _check_range(problem: InputError, frontier: Frontier) -> None:
    assert problem.field == "jct_s"
    fastest, _, slowest = problem.expected.split()[:3]
    assert float(fastest) == pytest.approx(frontier.fastest_jct, rel=1e-4)
    assert float(slowest) == pytest.approx(float(frontier.average_jcts[0]), rel=1e-4)


def test_both_ends_of_the_range_can_be_had(workload: Workload, frontier: Frontier) -> None:
    for wished in (frontier.fastest_jct, float(frontier.average_jcts[0])):
        found = preview.for_jct(workload, RULES, wished)
        assert found.solution.average_jct == pytest.approx(wished, rel=1e-6)


# P95


def test_a_spread_is_of_the_last_jobs_that_succeeded() -> None:
    jobs = [ended(500, 9e9, "failed"), *(ended(n, 100.0 + n) for n in range(400, 100, -1))]
    found = preview.spread_of(jobs)
    assert len(found) == LAST
    assert sum(found) / LAST == pytest.approx(1.0)
    assert found[0] / found[-1] == pytest.approx(500.0 / 301.0)
    assert preview.spread_of([]) == ()


def test_p95_weights_classes_by_arrivals(workload: Workload) -> None:
    """With every job at its class's mean, the P95 is that of the slow class."""
    solution = preview.for_budget(workload, 12.0).solution
    level = {c.name: (1.0,) * ENOUGH for c in workload.classes}
    found = preview.p95_jct(solution, level)
    slowest = max(outcome.jct for outcome in solution.outcome.classes)
    assert found == pytest.approx(slowest), (
        "0.5 of 6.5 jobs an hour are large: more than one in twenty"
    )
    wider = {**level, "large": (0.5, *[1.0] * (ENOUGH - 2), 1.5)}
    assert preview.p95_jct(solution, wider) == pytest.approx(found, rel=0.05)
    rare = replace(
        solution,
        workload=replace(
            workload,
            classes=tuple(
                replace(c, arrivals_per_hour=0.01) if c.name == "large" else c
                for c in workload.classes
            ),
        ),
    )
    assert preview.p95_jct(rare, level) < found, "one in 600 is large"  # type: ignore[operator]


def test_p95_of_one_class_is_its_jct_times_the_quantile_of_its_spread(workload: Workload) -> None:
    alone = replace(workload, classes=workload.classes[:1])
    solution = preview.for_budget(alone, sweep(alone, RULES).fastest_budget).solution
    spread = tuple(np.linspace(0.5, 1.5, 101))
    assert len(solution.plan["small"].variants) == 1
    found = preview.p95_jct(solution, {"small": spread})
    assert found == pytest.approx(solution.average_jct * np.quantile(spread, 0.95), rel=0.011)


def test_what_variants_differ_by_counts_once_since_the_spread_has_it_already(
    workload: Workload,
) -> None:
    """Of a class with a fast and a slow variant, as its own jobs of the past had them."""
    alone = replace(workload, classes=workload.classes[:1])
    frontier = sweep(alone, RULES)
    solutions = [
        preview.for_budget(alone, frontier.cheapest * factor).solution
        for factor in np.linspace(1.0, 3.0, 41)
    ]
    solution = next(s for s in solutions if len(s.plan["small"].variants) > 1)
    own = [
        (v.share, sum(h.time for h in holdings(alone, alone.classes[0], one, solution.rules)))
        for v in solution.plan["small"].variants
        for one in [ClassPlan(name="small", variants=(replace(v, share=1.0),))]
    ]
    mean = sum(share * jct for share, jct in own)
    spread = [jct / mean for share, jct in own for _ in range(round(1000 * share))]
    slow = max(jct for share, jct in own if share > 0.06)
    found = preview.p95_jct(solution, {"small": tuple(spread)})
    assert found == pytest.approx(slow, rel=1e-2)


def test_p95_is_unknown_until_every_class_that_arrives_has_enough_jobs(workload: Workload) -> None:
    solution = preview.for_budget(workload, 12.0).solution
    enough, few = (1.0,) * ENOUGH, (1.0,) * (ENOUGH - 1)
    assert preview.p95_jct(solution, {"small": enough, "large": few}) is None
    assert preview.p95_jct(solution, {"small": enough}) is None
    assert preview.p95_jct(solution, {"small": enough, "large": enough}) is not None
    gone = tuple(
        replace(c, arrivals_per_hour=0.0) if c.name == "large" else c for c in workload.classes
    )
    without = replace(solution, workload=replace(workload, classes=gone))
    assert preview.p95_jct(without, {"small": enough}) is not None, "nobody comes any more"


# Comparing


def variants(*parts: tuple[float, str, tuple[float, ...]]) -> ClassPlan:
    found = tuple(Variant(share, (gpu,) * len(widths), widths) for share, gpu, widths in parts)
    return ClassPlan(name="small", variants=found)


def test_plans_differ_by_any_width_type_or_share_but_not_by_rounding_or_order() -> None:
    plan = variants((0.6, "T4", (2.0, 4.0)), (0.4, "A100", (1.0, 1.0)))
    same = variants((0.4 + 1e-9, "A100", (1.0, 1.0)), (0.6 - 1e-9, "T4", (2.0, 4.0)))
    assert not preview.differs(plan, same)
    for other in (
        variants((0.6, "T4", (2.0, 3.0)), (0.4, "A100", (1.0, 1.0))),
        variants((0.6, "V100", (2.0, 4.0)), (0.4, "A100", (1.0, 1.0))),
        variants((0.59, "T4", (2.0, 4.0)), (0.41, "A100", (1.0, 1.0))),
        variants((1.0, "T4", (2.0, 4.0))),
    ):
        assert preview.differs(plan, other)
    one = ClassPlan(name="small", routes=((Route(1.0, "T4", 2.0),),))
    two = ClassPlan(name="small", routes=((Route(1.0, "T4", 3.0),),))
    assert preview.differs(one, two)
    assert not preview.differs(one, one)


def test_a_long_frontier_is_thinned_without_losing_its_ends_or_its_shape() -> None:
    budgets = np.geomspace(10.0, 1000.0, 5000)
    whole = Frontier(budgets, 1e5 / budgets, 1e5 / budgets)
    points = preview.thinned(whole, 200)
    assert len(points) <= 200
    assert (points[0], points[-1]) == (whole.breakpoints()[0], whole.breakpoints()[-1])
    told = [point.budget for point in points]
    assert told == sorted(set(told))
    drawn = np.interp(budgets, told, [point.average_jct for point in points])
    assert np.abs(drawn / whole.average_jcts - 1).max() < 1e-3


def test_a_short_frontier_is_told_whole(frontier: Frontier) -> None:
    assert preview.thinned(frontier, 200) == frontier.breakpoints()
