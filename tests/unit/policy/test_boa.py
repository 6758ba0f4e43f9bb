"""BOA as a policy: who gets which variant, and when the plan is made anew."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.errors import BudgetTooSmall
from boa.model.cluster import Allocation, ClusterView, Decision, JobView, Share
from boa.model.plan import ClassPlan, Plan, Variant
from boa.model.speedup import Amdahl, Floats, Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.policy.boa import Boa, Planned, dealt_to, planned_of
from boa.scheduler.plan.planning import REPLAN_S, inline_planner, plan_now
from boa.solver.planner import plan as solve

T4 = {"T4": GpuType(name="T4", price=1.0, gpus_per_node=4)}


def workload(work: float = 3600.0) -> Workload:
    """One class that can run on 1 or 4 GPUs, first scaling badly, then well."""
    speedups = (Table.of({1: 1.0, 4: 1.5}), Table.of({1: 1.0, 4: 3.5}))
    epochs = tuple(Epoch(work=work, speedups={"T4": curve}) for curve in speedups)
    one = JobClass(name="one", arrivals_per_hour=1.0, epochs=epochs, rescale_s=60.0, max_gpus=4)
    return Workload(gpu_types=T4, classes=(one,))


@dataclass
class Fixture:
    """A forecast that says what it is told to, and counts how often it was asked."""

    says: Workload
    version: int = 1
    asked: int = 0

    def workload(self, now: float = 0.0, active: object = None) -> Workload:
        self.asked += 1
        return self.says

    def units(self, job_class: str) -> tuple[float, ...]:
        return ()


@dataclass(frozen=True)
class Unknown:
    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return None


def job(
    serial: int = 0, epoch: int = 0, note: object = None, held: Allocation | None = None
) -> JobView:
    """One that waits, or one that holds GPUs."""
    name = f"job-{serial}"
    return JobView(
        id=name,
        job_class="one",
        arrival=0.0,
        serial=serial,
        epoch=epoch,
        prediction=Unknown(),
        allocation=held,
        note=note,
    )


class Planning:
    """BOA under the plans of one forecast, which may change."""

    def __init__(self, budget: float, says: Workload) -> None:
        self.budget, self.forecast = budget, Fixture(says)
        self.planner = inline_planner(self.forecast)

    def decide(self, *jobs: JobView, now: float = 0.0) -> Decision:
        memory = plan_now(self.planner, now, self.budget)
        return Boa().decide(ClusterView(now=now, jobs=jobs, nodes=(), gpu_types=T4, memory=memory))


def planned(decision: Decision) -> Planned:
    assert isinstance(decision.memory, Planned)
    return decision.memory


# Who gets what


def test_a_budget_between_two_widths_is_met_by_a_mix_of_jobs() -> None:
    decision = Planning(2.5, workload()).decide(*map(job, range(400)))
    solution = planned(decision).solution
    variants = solution.plan["one"].variants
    assert len(variants) == 2
    assert solution.spend == pytest.approx(2.5)
    given_to = Counter(share.note for share in decision.shares.values())
    for variant in variants:
        assert given_to[variant] == pytest.approx(400 * variant.share, abs=2)


@given(
    cuts=st.lists(st.integers(1, 999), min_size=1, max_size=3, unique=True),
    jobs=st.integers(1, 300),
)
def test_after_any_number_of_jobs_every_share_is_met_almost_exactly(
    cuts: list[int], jobs: int
) -> None:
    edges = [0, *sorted(cuts), 1000]
    variants = tuple(
        Variant((high - low) / 1000, ("T4",), (float(n),))
        for n, (low, high) in enumerate(pairwise(edges), start=1)
    )
    dealt = Counter(dealt_to(variants, serial) for serial in range(jobs))
    for variant in variants:
        assert abs(dealt[variant] - jobs * variant.share) < 3.1
    for variant in (variants[0], variants[-1]):  # with two, as usual, these are all
        assert abs(dealt[variant] - jobs * variant.share) < 2.1


def test_a_job_gets_the_same_whoever_else_is_there() -> None:
    boa = Planning(2.5, workload())
    together = boa.decide(*map(job, range(20))).shares
    for serial in range(20):
        alone = boa.decide(job(serial)).shares
        assert alone == {f"job-{serial}": together[f"job-{serial}"]}


def with_plan(*variants: Variant) -> Planned:
    """A plan of these variants for a class of as many epochs."""
    one = workload().classes[0]
    longer = replace(one, epochs=one.epochs[:1] * len(variants[0].widths))
    solution = solve(Workload(gpu_types=T4, classes=(longer,)), 99.0)
    plan = Plan((ClassPlan(name="one", variants=variants),))
    return planned_of(replace(solution, plan=plan), version=1, at=0.0)


def shares_under(planned: Planned, *jobs: JobView) -> Mapping[str, Share]:
    seen = ClusterView(now=1e9, jobs=jobs, nodes=(), gpu_types=T4, memory=planned)
    return Boa().decide(seen).shares


def test_the_next_change_of_width_is_named() -> None:
    planned = with_plan(Variant(1.0, ("T4",) * 5, (1, 1, 4, 4, 2)))
    shares = [shares_under(planned, job(epoch=e))["job-0"] for e in range(5)]
    assert [share.width for share in shares] == [1, 1, 4, 4, 2]
    assert [share.until for share in shares] == [2, 2, 4, 4, None]


def test_a_change_of_type_is_a_change_though_the_width_is_not() -> None:
    share = shares_under(with_plan(Variant(1.0, ("T4", "V100"), (2, 2))), job())["job-0"]
    assert share.until == 1


def test_an_epoch_that_the_plan_does_not_know_is_run_like_its_last() -> None:
    planned = with_plan(Variant(1.0, ("T4",) * 2, (1, 4)))
    shares = shares_under(planned, job(0, epoch=2), job(1, epoch=99))
    assert {(share.width, share.until) for share in shares.values()} == {(4, None)}


def test_a_job_of_a_class_that_is_not_in_the_plan_waits() -> None:
    planned = with_plan(Variant(1.0, ("T4",), (1,)))
    stranger = replace(job(1), job_class="another")
    assert list(shares_under(planned, job(0), stranger)) == ["job-0"]


# When the plan is made


def test_a_budget_that_cannot_keep_up_is_an_error_at_the_start() -> None:
    with pytest.raises(BudgetTooSmall) as caught:
        Planning(1.0, workload()).decide(job())
    assert caught.value.needed == pytest.approx(2 + 60 / 3600)  # two hours and a start, one GPU


def test_a_budget_that_turns_out_too_small_buys_the_cheapest_plan() -> None:
    boa = Planning(2.5, workload())
    boa.decide(job())
    boa.forecast.says, boa.forecast.version = workload(work=7200.0), 2
    again = boa.decide(job(), now=REPLAN_S)
    assert planned(again).solution.spend == pytest.approx(4 + 60 / 3600)
    assert again.shares["job-0"].width == 1


def test_plans_are_made_anew_only_after_a_while_and_for_a_reason() -> None:
    boa = Planning(2.5, workload())
    forecast = boa.forecast
    first = boa.decide(job(), now=100.0)
    assert forecast.asked == 1

    def later(now: float) -> Planned:
        return planned(boa.decide(job(1), now=now))

    assert later(100.0 + 2 * REPLAN_S) is first.memory, "nothing is new"
    forecast.version = 2
    assert later(100.0 + REPLAN_S - 1) is first.memory, "too soon"
    assert forecast.asked == 1
    second = later(100.0 + REPLAN_S)
    assert forecast.asked == 2
    assert (second.plans, second.version, second.at) == (2, 2, 100.0 + REPLAN_S)
    assert second.report["plans"] == 2


def test_a_running_job_keeps_its_variant_when_the_plan_changes() -> None:
    boa = Planning(2.2, workload())
    first = boa.decide(job(epoch=1))
    old = first.shares["job-0"]
    boa.forecast.says, boa.forecast.version = workload(work=60.0), 2
    running = job(epoch=1, note=old.note, held=Allocation("T4", ((0, old.width),)))
    second = boa.decide(running, job(1), now=REPLAN_S)
    assert planned(second).plans == 2
    assert second.shares["job-0"] == old, "a minute's work is not worth a rescaling of a minute"
    assert second.shares["job-1"].note != old.note
    assert (old.width, second.shares["job-1"].width) == (3, 4)


def test_what_was_planned_is_reported() -> None:
    decision = Planning(2.5, workload()).decide(job())
    solution = planned(decision).solution
    assert planned(decision).report == {
        "planned_jct_s": solution.average_jct,
        "planned_spend_per_hour": solution.spend,
        "plans": 1,
    }


def test_widths_are_whole_numbers_on_smooth_curves_too() -> None:
    smooth = Epoch(work=3600.0, speedups={"T4": Amdahl(0.9)})
    one = replace(workload().classes[0], epochs=(smooth,))
    boa = Planning(1.2, Workload(gpu_types=T4, classes=(one,)))
    shares = boa.decide(*map(job, range(30))).shares
    assert {type(share.width) for share in shares.values()} == {int}
    assert len({share.width for share in shares.values()}) == 2
