"""What is believed of a job's end agrees with the plan's own figures, and with what comes true."""

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

import boa
from boa.model.cluster import Allocation, Share
from boa.model.job import JobRecord, JobSpec, Run
from boa.model.plan import Variant
from boa.model.workload import Workload
from boa.policy.boa import within_reach
from boa.scheduler.learn.estimates import Estimate, Estimates, EstimatesOfPlan
from boa.scheduler.plan.plan_in_force import PlanState
from boa.solver.objective import evaluate
from boa.solver.solution import Solution
from live import profile, spec
from strategies import numbers, workloads

UNITS = 1000.0
"""In a second of work at speed 1: progress is counted in something else."""


def planned(workload: Workload, solution: Solution) -> PlanState:
    units = {c.name: tuple(UNITS * epoch.work for epoch in c.epochs) for c in workload.classes}
    return PlanState(
        number=1, at=0.0, solution=solution, workload=workload, wall_s=0.0, units=units
    )


def job(name: str, **fields: Any) -> JobRecord:
    said = fields.pop("spec", {})
    made = JobSpec(job_class=name, run=("true",), **said)
    known = {"id": "1", "serial": 0, "submitted_at": 0.0, **fields}
    return JobRecord(spec=made, **known)


def on(gpu: str, width: int, *, reported: bool = True) -> dict[str, Any]:
    """Fields of a job that runs there."""
    allocation = Allocation(gpu, ((1, width),))
    run = Run(
        attempt=1,
        allocation=allocation,
        slots={1: tuple(range(width))},
        state="running",
        requested_at=0.0,
        decided_at=0.0,
        reported_at=1.0 if reported else None,
    )
    return {"state": "running", "allocation": allocation, "run": run}


WORKLOAD = boa.parse_workload(
    {
        "version": 1,
        "gpu_types": {"T4": {"price": 2.0}},
        "classes": [
            {
                "name": "a",
                "arrivals_per_hour": 1.0,
                "rescale_s": 50.0,
                "max_gpus": 4,
                "epochs": [
                    {"work_s": 1000, "speedup": {"T4": {"table": {1: 1, 2: 2, 4: 4}}}},
                    {"work_s": 3000, "speedup": {"T4": {"table": {1: 1, 2: 1.5, 4: 2}}}},
                ],
            }
        ],
    }
)
WIDE_FIRST = Variant(1.0, ("T4", "T4"), (4, 2))
"""1000/4 s, then 3000/1.5 s."""
PLAN = planned(WORKLOAD, boa.plan(WORKLOAD, 10.0))
SHARE = Share("T4", 4, 1, WIDE_FIRST)
PER_S = 2.0 / 3600
"""Dollars of one GPU."""


def of(name: str = "a", **fields: Any) -> Estimate:
    return Estimates(PLAN).of(job(name, **{"share": SHARE, **fields}))


@given(workload=workloads(), budget=numbers(0.1, 60.0))
def test_jobs_that_wait_are_expected_to_take_and_cost_what_the_plan_says(
    workload: Workload, budget: float
) -> None:
    solution, _ = within_reach(workload, budget)
    believed = Estimates(planned(workload, solution))
    for outcome in evaluate(workload, solution.plan, solution.rules).classes:
        variants = solution.plan[outcome.name].variants
        shares = [Share(v.gpu_types[0], int(v.widths[0]), None, v) for v in variants]
        found = [believed.of(job(outcome.name, share=share)) for share in shares]
        weights = [variant.share for variant in variants]
        took = sum(w * (e.left_s or 0.0) for w, e in zip(weights, found, strict=True))
        cost = sum(w * (e.left_usd or 0.0) for w, e in zip(weights, found, strict=True))
        assert took == pytest.approx(outcome.jct)
        assert cost == pytest.approx(outcome.cost)
        assert {estimate.done for estimate in found} == {0.0}


def test_a_running_job_has_the_rest_of_its_epoch_a_rescaling_and_the_epochs_after_it() -> None:
    found = of(progress=250 * UNITS, **on("T4", 4))
    assert found.epochs == 2
    assert found.done == pytest.approx(250 / 4000)
    assert found.left_s == pytest.approx(750 / 4 + 50 + 2000)
    assert found.left_usd == pytest.approx((750 / 4 * 4 + 2050 * 2) * PER_S)


def test_a_job_that_starts_is_still_on_its_way_onto_its_gpus() -> None:
    started = of(**on("T4", 4, reported=False) | {"state": "starting"})
    assert started.left_s == pytest.approx(50 + 250 + 50 + 2000)
    assert started == of(), "as one that waits: nothing of it is done"


def test_nothing_is_known_of_a_job_that_runs_and_has_never_reported() -> None:
    silent = on("T4", 4, reported=False)
    assert of(**silent) == Estimate(2), "perhaps it never will"
    assert of(progress=250 * UNITS, **silent).left_s == pytest.approx(50 + 750 / 4 + 50 + 2000)
    assert of(best_progress=1.0, **silent).done == 0.0, "it begins again, but it does report"


def test_a_job_short_of_gpus_has_this_epoch_on_what_it_holds_and_the_others_as_planned() -> None:
    found = of(**on("T4", 2))
    assert found.left_s == pytest.approx(500 + 2000), "it is as wide as the next epoch wants it"
    assert found.left_usd == pytest.approx(2500 * 2 * PER_S)
    narrow = of(**on("T4", 1))
    assert narrow.left_s == pytest.approx(1000 + 50 + 2000)


def test_a_job_that_moves_has_its_rest_where_it_is_to_be() -> None:
    moving = on("T4", 4) | {"allocation": Allocation("T4", ((1, 2),)), "state": "rescaling"}
    assert of(**moving).left_s == pytest.approx(50 + 500 + 2000)


def test_the_last_epoch_has_nothing_after_it() -> None:
    found = of(epoch=1, progress=1500 * UNITS, **on("T4", 2))
    assert found.done == pytest.approx(2500 / 4000)
    assert found.left_s == pytest.approx(1000)
    over = of(epoch=1, progress=9999 * UNITS, **on("T4", 2))
    assert over.done == pytest.approx(1.0)
    assert over.left_s == 0.0, "more than was expected"


def test_a_job_of_other_work_than_its_class_is_longer_in_every_epoch() -> None:
    double = {"total_work": 8000 * UNITS}
    found = of(spec=double, progress=500 * UNITS, **on("T4", 4))
    assert found.done == pytest.approx(500 / 8000)
    assert found.left_s == pytest.approx(1500 / 4 + 50 + 4000)


def test_a_job_that_has_told_of_the_end_of_its_last_epoch_is_done() -> None:
    assert of(epoch=2, spec={"epochs": 2}, **on("T4", 2)) == Estimate(2, 1.0, 0.0, 0.0)
    assert of(epoch=2, spec={"epochs": 9}, **on("T4", 2)) == Estimate(9), "nobody knows the rest"


def test_a_job_that_nobody_has_decided_on_is_expected_to_get_what_the_plan_has_for_it() -> None:
    variants = PLAN.solution.plan["a"].variants
    courses = {of(share=None, serial=serial).left_s for serial in range(50)}
    assert len(courses) == len(variants)
    assert None not in courses


@pytest.mark.parametrize("width", [3, 64])
def test_a_width_that_the_plan_does_not_know_of_is_no_reason_to_fail(width: int) -> None:
    found = of(**on("A100", width))
    assert (found.left_s, found.left_usd) == (None, None)
    assert found.done == 0.0


def test_ended_jobs_have_nothing_left() -> None:
    assert of(state="succeeded", epoch=1) == Estimate(2, 1.0, 0.0, 0.0)
    assert of("unheard of", state="succeeded") == Estimate(1, 1.0, 0.0, 0.0)
    for state in ("failed", "stopped"):
        found = of(state=state, progress=250 * UNITS)
        assert found == Estimate(2, 250 / 4000), "what it reached"
    assert of("unheard of", state="failed") == Estimate(1)


def test_a_job_whose_file_says_how_many_epochs_it_has_has_so_many_whatever_its_class_has() -> None:
    longer = replace(PLAN, units={**PLAN.units, "a": (100.0,) * 400})
    told = Estimates(longer)
    ended = {"state": "succeeded", "epoch": 30}
    assert told.of(job("a", spec={"epochs": 30}, **ended)).epochs == 30
    assert told.of(job("a", **ended)).epochs == 400, "its file says nothing"


def test_a_job_that_is_being_stopped_has_no_rest() -> None:
    assert of(stop_requested=True, **on("T4", 4)) == Estimate(2, 0.0)


def test_nothing_is_believed_without_a_plan_that_knows_the_class() -> None:
    assert of("unheard of", epoch=4, progress=1.0) == Estimate(5)
    assert EstimatesOfPlan().of(job("a", spec={"epochs": 7}), None) == Estimate(7)
    blind = replace(PLAN, units={})
    assert EstimatesOfPlan().of(job("a"), blind) == Estimate(1)


def test_a_new_plan_is_believed_at_once() -> None:
    believed, waiting = EstimatesOfPlan(), job("a", share=SHARE)
    assert believed.of(waiting, PLAN).left_s == pytest.approx(50 + 250 + 50 + 2000)
    slower = replace(PLAN, units={"a": (2000 * UNITS, 3000 * UNITS)})
    half = believed.of(replace(waiting, progress=1000 * UNITS), slower)
    assert half.left_s == pytest.approx(50 + 125 + 50 + 2000)


def test_what_is_believed_comes_true_where_the_class_is_known(lives: Any) -> None:
    both = profile("both", work=(3600.0, 36_000.0), alpha=0.05)
    both.rates["T4"][1] = profile("steep", alpha=1.0).rates["T4"][0]
    live = lives(both, per_hour=1.0, budget=20.0, billing="gpu")
    name = live.submit(spec("both", epochs=2))
    believed = EstimatesOfPlan()
    said: list[tuple[float, Estimate]] = []
    known = None
    while (record := live.loop.snapshot.jobs.get(name)) is not None:
        if record is not known:  # it has reported, or was moved
            found = believed.of(record, live.loop.snapshot.plan)
            if found.done is None:  # nothing is said before its first report: as planned, then
                starting = replace(record, state="starting")
                found = believed.of(starting, live.loop.snapshot.plan)
            said.append((live.clock.now(), found))
        known = record
        live.advance(min(60.0, live.engine.wakes_at() - live.clock.now()))
    ended = live.job(name)
    for at, found in said:
        assert found.left_s == pytest.approx(ended.ended_at - at, abs=61.0)
    assert said[0][1].left_usd == pytest.approx(ended.cost_usd, rel=0.05)
    parts = [found.done for _, found in said if found.done is not None]
    assert parts[0] == 0.0
    assert parts[-1] == pytest.approx(3600 / 39_600), "when its second epoch began"
    assert parts == sorted(parts)


def test_five_thousand_jobs_take_a_fraction_of_a_second() -> None:
    epochs = [{"work_s": 100, "speedup": {"T4": {"amdahl": 0.9}}} for _ in range(90)]
    classes = [
        {"name": f"class-{n}", "arrivals_per_hour": 1, "rescale_s": 30, "epochs": epochs}
        for n in range(10)
    ]
    workload = boa.parse_workload(
        {"version": 1, "gpu_types": {"T4": {"price": 1.0}}, "classes": classes}
    )
    plan = planned(workload, boa.plan(workload, 40.0))
    jobs = [
        job(f"class-{n % 10}", epoch=n % 90, progress=100.0 * n, **on("T4", 1 + n % 8))
        for n in range(5000)
    ]
    believed = EstimatesOfPlan()
    took = []
    for _ in range(3):
        began = time.process_time()
        found = [believed.of(record, plan) for record in jobs]
        took.append(time.process_time() - began)
    assert all(estimate.left_s is not None for estimate in found)
    assert min(took) < 0.3
