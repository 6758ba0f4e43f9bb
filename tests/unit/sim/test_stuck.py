"""Simulations end though jobs are left that would never end."""

import pytest

from boa.model.cluster import Allocation
from boa.sim.jobs import ActiveJob
from boa.sim.stuck import NO_PROGRESS_S, NOBODY_RUNS_S, Patience
from simulations import job, planned

PER_NODE = {"T4": 4}


def left(*, holds: bool) -> ActiveJob:
    """One that is waiting, or on GPUs; nothing in it uses its learner."""
    found = ActiveJob(job("a", 0.0, "steady"), planned("steady", PER_NODE), None, 0)  # type: ignore[arg-type]
    if holds:
        found.reallocate(Allocation("T4", ((1, 2),)), 0.0, 30.0)
    return found


@pytest.mark.parametrize(("holds", "longest"), [(False, NOBODY_RUNS_S), (True, NO_PROGRESS_S)])
def test_who_waits_for_a_day_or_makes_no_progress_for_a_month_is_given_up(
    holds: bool, longest: float
) -> None:
    patience, jobs = Patience(None), [left(holds=holds)]
    assert not patience.lost(10.0, jobs, 0)
    assert not patience.lost(10.0 + longest, jobs, 0)
    assert patience.lost(11.0 + longest, jobs, 0)


def test_any_progress_and_any_end_begins_the_wait_anew() -> None:
    patience, waits = Patience(None), left(holds=False)
    assert not patience.lost(0.0, [waits], 0)
    waits.done = 0.5
    assert not patience.lost(NOBODY_RUNS_S + 1, [waits], 0)
    assert not patience.lost(2 * NOBODY_RUNS_S + 1, [waits], 1), "another job ended"
    assert not patience.lost(3 * NOBODY_RUNS_S + 1, [waits], 1)
    assert patience.lost(3 * NOBODY_RUNS_S + 2, [waits], 1)


def test_without_jobs_nothing_is_lost() -> None:
    patience = Patience(None)
    assert not patience.lost(0.0, [], 3)
    assert not patience.lost(10 * NO_PROGRESS_S, [], 3)


def test_long_rounds_get_ten_of_them() -> None:
    patience, waits = Patience(NOBODY_RUNS_S), [left(holds=False)]
    assert not patience.lost(0.0, waits, 0)
    assert not patience.lost(10 * NOBODY_RUNS_S, waits, 0)
    assert patience.lost(10 * NOBODY_RUNS_S + 1, waits, 0)
