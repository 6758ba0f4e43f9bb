"""Moments at which the scheduler is to be turned though nobody says anything."""

import math
from dataclasses import replace
from typing import Any

from boa.model.cloud import CloudNode
from boa.model.job import JobRecord
from boa.model.records import NodeRecord
from boa.policy.boa import Boa
from boa.policy.rivals.sia_autoscale import SiaAutoscale
from boa.scheduler.decide.decider import UNPLANNED_S
from boa.scheduler.decide.deciders import decider_for
from boa.scheduler.decide.room import Refused
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.money.purse import Purse
from boa.scheduler.observe.messages import CloudListed
from boa.scheduler.observe.sampling import Sampling
from boa.scheduler.plan.calculator import InlineCalculator
from boa.scheduler.plan.planning import Planner
from boa.scheduler.scheduler import BOOT_S, NodeLimits, Scheduler
from boa.scheduler.state import Draft, State
from live import T4
from stored import job, node, running

NOW = 1000.0


def scheduler(*, pacing_h: float = math.inf, policy: Any = None, **limits: Any) -> Scheduler:
    """One that has nothing to wait for by itself: no plan was ever asked for."""
    types = {"T4": T4}
    beliefs = Profiler(types, {}, began=0.0)
    return Scheduler(
        NodeLimits(**limits),
        decider=decider_for(policy or Boa(), gpu_types=types, beliefs=beliefs, round_s=60.0),
        beliefs=beliefs,
        planner=Planner(InlineCalculator(), beliefs, math.inf),
        purse=Purse(10.0, None, pacing_h, NOW),
        sampling=Sampling(1.0, {}),
    )


def state(*records: JobRecord | NodeRecord) -> State:
    return State(
        jobs={known.id: known for known in records if isinstance(known, JobRecord)},
        nodes={known.id: known for known in records if isinstance(known, NodeRecord)},
    )


def test_with_nothing_to_wait_for_it_is_never_due() -> None:
    assert scheduler().wakes_at(state(running(1)), NOW) == math.inf


def test_an_empty_node_is_due_when_it_has_been_kept_warm() -> None:
    empty = node(1, state="ready", billed_from=10.0, ready_at=20.0, empty_since=990.0)
    assert scheduler(keep_warm_s=120.0).wakes_at(state(empty), NOW) == 1110.0


def test_what_is_past_wakes_nobody() -> None:
    empty = node(1, state="ready", billed_from=10.0, ready_at=20.0, empty_since=500.0)
    assert scheduler(keep_warm_s=120.0).wakes_at(state(empty), NOW) == math.inf


def test_a_node_that_does_not_come_up_is_due_just_after_its_time_is_over() -> None:
    booting = node(1, requested_at=900.0)
    due = scheduler().wakes_at(state(booting), NOW)
    assert 900.0 + BOOT_S < due < 900.0 + BOOT_S + 1e-6
    slow = scheduler(provision_s=600.0).wakes_at(state(booting), NOW)
    assert slow > 900.0 + 6000.0, "ten times what it should take"


def test_a_job_is_due_at_its_retry_and_one_without_a_plan_when_it_has_waited_enough() -> None:
    failed = replace(running(1), run=None, retry_at=1030.0)
    assert scheduler().wakes_at(state(failed), NOW) == 1030.0
    waiting = job(2, submitted_at=995.0)
    assert scheduler().wakes_at(state(failed, waiting), NOW) == 995.0 + UNPLANNED_S


def test_a_type_that_was_refused_is_due_when_it_may_be_asked_for_again() -> None:
    of = scheduler()
    of.decider.refused["T4"] = Refused(had=0, until=1060.0, why="none left")
    assert of.wakes_at(state(), NOW) == 1060.0


def test_a_wish_that_a_cloud_took_and_could_not_fulfil_is_as_one_that_it_refused() -> None:
    wished = node(1, requested_at=990.0)
    draft = Draft(state(wished), NOW)
    said = CloudNode(
        token=wished.token, gpu="T4", gpus=4, price=1.0, billed_from=NOW, ready_at=None,
        gone_at=NOW, refused="none left",
    )  # fmt: skip
    of = scheduler(refused_s=60.0)
    of.observe(draft, CloudListed([said], NOW))
    assert not draft.nodes
    assert draft.changes.nodes[1].reason == "none left"
    assert draft.changes.nodes[1].billed_from is None, "nothing is charged"
    assert of.decider.refused["T4"] == Refused(had=0, until=1060.0, why="none left")
    assert [event.kind for event in draft.changes.events] == ["shortage"]
    of.observe(draft, CloudListed([said], NOW))
    assert len(draft.changes.events) == 1, "told once"


def test_rounds_are_due_as_long_as_there_are_jobs() -> None:
    of = scheduler(policy=SiaAutoscale(0.5))
    of.decider.next_round = 1042.0
    assert of.wakes_at(state(running(1)), NOW) == 1042.0
    assert of.wakes_at(state(), NOW) == math.inf


def test_pacing_looks_at_the_ledger_now_and_then_and_without_it_nobody_does() -> None:
    paced = scheduler(pacing_h=24.0)
    assert NOW < paced.wakes_at(state(), NOW) == paced.purse.looks_at < math.inf
    assert scheduler(pacing_h=math.inf).purse.looks_at == math.inf
