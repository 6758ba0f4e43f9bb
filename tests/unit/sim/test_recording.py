"""Figures of a simulation while it runs."""

from typing import Any

import pytest

from boa.model.cluster import Allocation
from boa.sim.jobs import ActiveJob
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.recording import SAMPLE_S, Recording
from boa.sim.settings import Settings
from simulations import job, world

PER_NODE = {"T4": 4}
ASKED = job("a", 5.0, "steady")
OF = world([ASKED], PER_NODE)
KNOWLEDGE = Knowledge(
    OF.truths, OF.gpu_types, ExpectedArrivals.of(OF.trace), Settings(learning="perfect")
)


def active() -> ActiveJob:
    truth = KNOWLEDGE.truth(ASKED)
    return ActiveJob(ASKED, truth, KNOWLEDGE.learner(truth, ASKED), 0)


def on_two() -> ActiveJob:
    found = active()
    found.reallocate(Allocation("T4", ((7, 2),)), 10.0, 40.0)
    return found


def recording(**more: Any) -> Recording:
    return Recording(KNOWLEDGE, 1000.0, **more)


def test_samples_are_due_from_the_beginning_on_each_of_them_once() -> None:
    of = recording()
    assert list(of.due(100.0)) == pytest.approx([0.0, SAMPLE_S, 2 * SAMPLE_S])
    assert list(of.due(100.0)) == []
    assert list(of.due(3 * SAMPLE_S + 1e-6)) == pytest.approx([3 * SAMPLE_S])


def test_a_long_trace_is_sampled_more_seldom_and_never_on_the_beat_of_rounds() -> None:
    most = KNOWLEDGE.settings.samples
    moments = list(Recording(KNOWLEDGE, 60.0 * most).due(60.0 * most))
    assert most * 0.9 < len(moments) <= most
    assert sum(moment % 60.0 == 0.0 for moment in moments) == 1, "the first"


def test_a_sample_counts_who_waits_who_holds_and_what_that_is_worth() -> None:
    of, waits, holds = recording(), active(), on_two()
    of.sample(50.0, [waits, holds], rented_gpus=4)
    (sample,) = of.series
    assert (sample.time, sample.jobs, sample.waiting) == (50.0, 2, 1)
    assert (sample.busy_gpus, sample.rented_gpus) == (2, 4)
    assert sample.efficiency == pytest.approx(2.0 / 1.25 / 4), "as fast as 1.6 of its base width"


def test_with_nothing_rented_there_is_no_efficiency() -> None:
    of = recording()
    of.sample(0.0, [], rented_gpus=0)
    assert of.series[0].efficiency is None


def test_a_start_says_where_and_from_when_on_and_an_end_does_not() -> None:
    told: list[Any] = []
    of = recording(listener=told.append)
    of.tell(10.0, "start", on_two())
    of.tell(90.0, "finish", on_two())
    of.tell_node(3.0, "rent", 7, gpu_type="T4")
    assert told == [
        {
            "time_s": 10.0,
            "event": "start",
            "job": "a",
            "epoch": 0,
            "gpu_type": "T4",
            "width": 2,
            "nodes": [[7, 2]],
            "resume_s": 40.0,
        },
        {"time_s": 90.0, "event": "finish", "job": "a", "epoch": 0},
        {"time_s": 3.0, "event": "rent", "node": 7, "gpu_type": "T4"},
    ]


def test_jcts_by_job_are_kept_only_if_asked_for() -> None:
    ended = on_two()
    ended.clock = 105.0
    for keep, named in ((True, {"a": 100.0}), (False, None)):
        of = recording(keep_jcts=keep)
        of.tally.ended(ended)
        assert of.tally.named == named
        assert list(of.tally.jcts) == [100.0]
