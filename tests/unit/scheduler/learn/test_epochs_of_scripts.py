"""Progress of jobs whose scripts have more epochs than their specs name."""

from dataclasses import replace
from typing import Any

import pytest

from boa.model.job import JobRecord
from boa.policy.boa import within_reach
from boa.scheduler.learn.estimates import Estimate, Estimates
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.plan.plan_in_force import PlanState
from profiling import T4, job, packed, planned_class, profiler, report

EPOCH = 60.0
"""Units of an epoch, each of which takes a second."""


def trained(of: Profiler, total: int, *, ended: int, **fields: Any) -> JobRecord:
    """A job of `total` epochs by its script, 29 units into one after some have ended."""
    run = replace(packed(T4, 1), reported_at=1.0)
    known = job(total=total * EPOCH, run=run, state="running", allocation=run.allocation, **fields)
    of.arrived(known, 0.0)
    before = report(0.0, 0.0)
    for epoch in range(ended + 1):
        here = report(epoch * EPOCH + 29.0, epoch * EPOCH + 29.0, epoch, 29.0)
        of.reported(known, before, here)
        if epoch:
            of.epoch_done(known, epoch - 1, EPOCH)
        before = here
    return replace(known, epoch=ended, progress=29.0)


def estimate(of: Profiler, told: JobRecord) -> Estimate:
    workload = of.workload(2000.0)
    assert workload is not None
    solution, _ = within_reach(workload, 10.0)
    units = {known.name: of.units(known.name) for known in workload.classes}
    state = PlanState(
        number=1, at=0.0, solution=solution, workload=workload, wall_s=0.0, units=units
    )
    return Estimates(state).of(told)


def test_progress_of_a_script_with_more_epochs_than_its_spec_is_the_part_of_its_total() -> None:
    of = profiler()
    found = estimate(of, trained(of, 20, ended=2))
    assert found.done == pytest.approx(149 / 1200)
    assert found.epochs == 20
    assert found.left_s == pytest.approx(1200 - 149, rel=0.05)


@pytest.mark.parametrize("epochs", [10, 20, 40])
def test_a_job_with_more_or_fewer_epochs_than_the_last_is_told_by_its_own_total(
    epochs: int,
) -> None:
    of = profiler()
    known = trained(of, epochs, ended=2)
    trained(of, 20, ended=1)
    found = estimate(of, known)
    assert found.done == pytest.approx((2 * EPOCH + 29) / (epochs * EPOCH), rel=0.01)
    assert found.epochs == epochs


def test_the_end_of_an_epoch_does_not_make_a_job_of_a_known_total_shorter() -> None:
    of = profiler()
    trained(of, 20, ended=1)
    assert sum(of.units("net")) == pytest.approx(1200.0)
    assert len(planned_class(of).epochs) == 20


def test_a_policy_is_shown_what_is_left_of_the_total_beyond_the_last_epoch() -> None:
    of = profiler()
    known = trained(of, 40, ended=30)
    trained(of, 20, ended=1)
    assert of.left(known) == pytest.approx(1.0)
    assert of.left(replace(known, epoch=39)) == pytest.approx(31 / 120)


def test_nothing_is_told_of_a_job_beyond_its_epochs_until_an_epoch_was_counted() -> None:
    of = profiler()
    known = trained(of, 20, ended=0)
    assert estimate(of, known).done == pytest.approx(29 / 1200)
    assert estimate(of, replace(known, epoch=2)) == Estimate(3)


def test_the_epochs_of_a_spec_are_believed_while_its_script_keeps_to_them() -> None:
    of = profiler()
    found = estimate(of, trained(of, 20, ended=2, epochs=5))
    assert found.epochs == 5
    assert len(planned_class(of).epochs) == 5
