"""Widths that nobody has run: who tries them, when, and what that may cost."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import Allocation, ClusterView, JobView, Share
from boa.model.speedup import Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.policy.boa import Boa, Planned, planned_of
from boa.policy.trials import MOST, TRIERS, Trials, cheapest_hoped, trials_of, tries, with_trials
from boa.scheduler.plan.calculator import PlanQuestion, solved
from boa.solver.planner import evaluate, frontier
from boa.solver.planner import plan as solve
from strategies import numbers, workloads

T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)


def net(at_four: float, *, per_hour: float = 4.0, most: int = 2) -> JobClass:
    """Speedups at 1, 2 and 4 GPUs, of which plans may use the first two."""
    table = Table.of({1: 1.0, 2: 1.8, 4: at_four})
    epoch = Epoch(work=3600.0, speedups={"T4": table})
    return JobClass(
        name="net", arrivals_per_hour=per_hour, epochs=(epoch,), rescale_s=30.0, max_gpus=most
    )


def workload(hoped: float, expected: float = 2.6) -> Workload:
    hopes = {"net": net(hoped, most=4)} if hoped else {}
    return Workload(gpu_types={"T4": T4}, classes=(net(expected),), hopes=hopes)


def planned(of: Workload, budget: float) -> Planned:
    solution, trials = with_trials(solve(of, budget))
    return planned_of(solution, 1, 0.0, 1, trials)


class Unknown:
    def rates(self, gpu: str, epoch: int) -> None:
        return None


def share(
    by: Planned, serial: int, width: int = 0, left: float = 1.0, note: object = None
) -> Share:
    held = Allocation("T4", ((0, width),)) if width else None
    view = JobView(
        id="a",
        job_class="net",
        arrival=0.0,
        serial=serial,
        epoch=0,
        left=left,
        prediction=Unknown(),
        allocation=held,
        service=1.0 if width else 0.0,
        note=note,
    )
    asked = ClusterView(now=0.0, jobs=[view], nodes=(), gpu_types={"T4": T4}, memory=by)
    return Boa().decide(asked).shares["a"]


def test_what_may_be_much_better_is_tried() -> None:
    trials = trials_of(solve(workload(3.9), 8.0))
    assert trials.variants["net"].widths == (4,)


def test_nothing_is_tried_where_all_is_known_or_little_to_be_hoped_for() -> None:
    assert trials_of(solve(workload(0.0), 8.0)) == Trials()
    assert trials_of(solve(workload(1.82), 8.0)).variants == {}


def test_what_is_expected_to_cost_more_than_it_may_save_to_a_day_of_jobs_is_not_tried() -> None:
    often = workload(2.7, expected=1.2)
    seldom = replace(often, classes=(replace(often.classes[0], arrivals_per_hour=0.01),))
    assert trials_of(solve(often, 80.0)).variants
    assert not trials_of(solve(seldom, 80.0)).variants


@given(first=st.integers(0, 10_000), count=st.integers(1, 200))
def test_one_job_in_five_tries(first: int, count: int) -> None:
    found = sum(tries(serial) for serial in range(first, first + count))
    assert abs(found - TRIERS * count) <= 3


def test_the_first_job_of_a_class_tries_and_the_four_after_it_do_not() -> None:
    assert [tries(serial) for serial in range(5)] == [True, False, False, False, False]


def test_only_those_who_try_leave_the_plan() -> None:
    by = planned(workload(3.9), 8.0)
    offered = {width for variant in by.by_class["net"] for width in variant.widths}
    assert share(by, 0).width == 4
    assert {share(by, serial).width for serial in range(1, 5)} <= offered <= {1, 2}


def test_a_running_job_tries_only_if_enough_is_left_to_gain() -> None:
    by = planned(workload(3.9), 8.0)
    assert share(by, 0, width=2, left=1.0).width == 4
    assert share(by, 0, width=2, left=0.02).width == 2


def test_a_trial_goes_on_until_it_is_known() -> None:
    by = planned(workload(3.9), 8.0)
    trial = by.trials.variants["net"]
    assert share(by, 0, width=4, left=0.7, note=trial) == share(by, 0)


def test_a_width_that_was_tried_in_vain_is_left_though_money_is_left_over() -> None:
    before = planned(workload(3.9), 1000.0)
    after = planned(workload(0.0, expected=1.81), 1000.0)
    assert after.solution.shadow_price == pytest.approx(0.0, abs=1e-9)
    trial = before.trials.variants["net"]
    assert share(after, 0, width=4, left=0.5, note=trial).width == 2
    assert share(after, 0, width=4, left=0.01, note=trial).width == 4, "it ends before it moved"


def hopeful_copy(of: Workload, factor: float) -> Workload:
    """Every curve may be better by this factor."""
    hopes = {
        c.name: replace(c, epochs=tuple(replace(e, work=e.work / factor) for e in c.epochs))
        for c in of.classes
    }
    return replace(of, hopes=hopes)


@given(known=workloads(max_types=1), factor=numbers(1.0, 1.5), more=numbers(1.01, 3.0))
def test_plan_and_trials_together_spend_no_more_than_the_budget(
    known: Workload, factor: float, more: float
) -> None:
    known = replace(known, classes=tuple(replace(c, max_jct_s=None) for c in known.classes))
    budget = frontier(known).cheapest * more
    solution, trials = with_trials(solve(hopeful_copy(known, factor), budget))
    assert trials.spend <= MOST * budget * (1 + 1e-9)
    spent = solution.spend
    plans = solution.plan.by_class()
    for name, variant in trials.variants.items():
        job_class = next(c for c in known.classes if c.name == name)
        alone = Workload(gpu_types=known.gpu_types, classes=(job_class,))
        one = replace(plans[name], variants=(replace(variant, share=1.0),))
        tried = evaluate(alone, replace(solution.plan, classes=(one,))).spend
        usual = evaluate(alone, replace(solution.plan, classes=(plans[name],))).spend
        spent += TRIERS * (tried - usual)
    assert spent <= budget * (1 + 0.5 * MOST)


def test_a_budget_that_hopes_may_meet_is_no_error_and_one_that_they_cannot_is() -> None:
    of = workload(3.9)
    cheapest, hoped = frontier(of).cheapest, cheapest_hoped(hopeful_copy(of, 1.5))
    assert hoped < cheapest
    between, below = (hoped + cheapest) / 2, hoped * 0.99
    answers = [solved(PlanQuestion(hopeful_copy(of, 1.5), b, 1)) for b in (between, below)]
    assert [answer.too_small is not None for answer in answers] == [True, True]
    assert [answer.hopeless for answer in answers] == [False, True]


def test_hopes_are_no_part_of_what_a_workload_is() -> None:
    assert workload(3.9) == workload(0.0)
