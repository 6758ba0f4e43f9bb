"""Time on GPUs, waiting and since submission: two of them add up to the third."""

from dataclasses import replace

from boa.model.cluster import Allocation
from boa.model.job import Run
from stored import job


def test_a_pause_and_a_back_off_are_no_time_on_gpus() -> None:
    record = replace(job(1), submitted_at=100.0, ran_s=4.0, state="waiting", run=None)
    assert record.on_gpus_s(119.0) == 4.0
    assert record.since_submission_s(119.0) == 19.0


def test_an_open_run_counts_from_when_it_got_its_gpus() -> None:
    run = Run(
        attempt=2,
        allocation=Allocation(gpu="T4", nodes=((1, 1),)),
        slots={1: (0,)},
        requested_at=110.0,
        decided_at=105.0,
    )
    record = replace(job(1), submitted_at=100.0, ran_s=4.0, state="running", run=run)
    assert record.on_gpus_s(119.0) == 13.0


def test_an_age_stands_still_at_the_end() -> None:
    record = replace(job(1), submitted_at=100.0, ended_at=119.0, ran_s=4.0, state="succeeded")
    assert (record.on_gpus_s(900.0), record.since_submission_s(900.0)) == (4.0, 19.0)
