"""The jobs that a new one waits for, and until when."""

import math

from hypothesis import given
from hypothesis import strategies as st

from boa.scheduler.plan.queue_ahead import Ahead, Queue, free_gpus, most_gpus, queue_for


def asked(width: int, *jobs: Ahead, most: float = 4.0, free: int = 0) -> Queue:
    return queue_for("T4", width, jobs, most=most, free=free, boot_s=90.0)


def running(job: str, width: int, left_s: float | None) -> Ahead:
    return Ahead(job, "T4", width, left_s, True)


def waiting(job: str, width: int, left_s: float | None) -> Ahead:
    return Ahead(job, "T4", width, left_s, False)


def test_a_job_that_finds_free_gpus_starts_at_once() -> None:
    found = asked(2, free=2)
    assert (found.wait_s, found.boot_s, found.waiting) == (0.0, 0.0, 0)


def test_one_that_needs_a_new_node_waits_for_it() -> None:
    found = asked(2, free=1)
    assert (found.wait_s, found.boot_s) == (90.0, 90.0)


def test_nobody_waits_where_nothing_bounds_the_gpus() -> None:
    assert asked(64, running("1", 500, None), most=math.inf).wait_s == 90.0


def test_it_waits_for_those_before_it_and_for_those_that_run() -> None:
    jobs = (running("1", 4, 100.0), waiting("2", 4, 50.0), waiting("3", 2, 10.0))
    found = asked(4, *jobs)
    assert found.wait_s == 160.0
    assert (found.waiting, found.gpus, found.jobs) == (2, 6, ("2", "3"))


def test_whoever_nobody_knows_the_end_of_makes_the_wait_unknown() -> None:
    assert asked(4, running("1", 4, None)).wait_s is None
    assert asked(2, running("1", 2, None)).wait_s == 90.0
    assert asked(5).wait_s is None, "there are never so many"


def test_jobs_on_other_types_do_not_count() -> None:
    other = Ahead("1", "A100", 4, None, True)
    assert asked(4, other).wait_s == 90.0


def test_limits_on_nodes_and_on_spend_bound_the_gpus() -> None:
    assert most_gpus(4, 4.0, 3, None) == 12
    assert most_gpus(4, 4.0, None, 9.0) == 8
    assert most_gpus(4, 4.0, 1, 9.0) == 4
    assert most_gpus(4, 4.0, None, None) == math.inf


def test_gpus_that_are_held_are_not_free() -> None:
    assert free_gpus("T4", [("T4", 4), ("A100", 8), ("T4", 4)], {"T4": 3}) == 5
    assert free_gpus("T4", [("T4", 4)], {"T4": 9}) == 0


JOBS = st.lists(st.tuples(st.integers(1, 4), st.floats(0.0, 1e4), st.booleans()), max_size=8)


@given(JOBS, st.integers(1, 4))
def test_another_job_before_it_never_shortens_the_wait(
    jobs: list[tuple[int, float, bool]], width: int
) -> None:
    made: list[Ahead] = []
    free = 4
    for number, (gpus, left_s, runs) in enumerate(jobs):
        runs = runs and gpus <= free
        free -= gpus if runs else 0
        made.append(Ahead(f"{number}", "T4", gpus, left_s, runs))
    before = asked(width, *made).wait_s
    after = asked(width, *made, waiting("99", 4, 10.0)).wait_s
    assert before is not None
    assert after is not None
    assert after >= before - 90.0, "but for a node that was to boot meanwhile"
