"""Rules of `bench/campaign.py --virtual`: each finds a decision that breaks it, and no other."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from _campaign import fairness
from _campaign.fairness import Truth
from boa.model.cluster import Allocation
from boa.model.job import GpuLimits, JobRecord, Run
from boa.model.records import NodeRecord
from boa.scheduler.state import State
from stored import job as record
from stored import spec

NODES = {
    id: NodeRecord(
        id=id, token=f"t-{id}", gpu="slot", gpus=2, price=1.0, state="ready", requested_at=0.0
    )
    for id in (1, 2)
}


def on(job: JobRecord, **nodes: int) -> JobRecord:
    """A running job on GPUs of nodes (`n1=2`)."""
    held = tuple((int(name[1:]), count) for name, count in nodes.items())
    given = Allocation("slot", held)
    slots = {node: tuple(range(count)) for node, count in held}
    run = Run(attempt=1, allocation=given, slots=slots, requested_at=0.0, decided_at=0.0)
    return replace(job, run=run, allocation=given, attempts=1, state="running")


def to_have(job: JobRecord, **nodes: int) -> JobRecord:
    """Return a job whose allocation differs from its run."""
    held = tuple((int(name[1:]), count) for name, count in nodes.items())
    return replace(job, allocation=Allocation("slot", held) if held else None)


def job(number: int, priority: Any = "normal", least: int = 1, **fields: Any) -> JobRecord:
    limits = GpuLimits(min=least, max=2)
    return record(number, spec=spec(priority=priority, gpus=limits, **fields))


def state(*jobs: JobRecord, nodes: int = 1) -> State:
    there = {id: NODES[id] for id in range(1, nodes + 1)}
    return State(jobs={one.id: one for one in jobs}, nodes=there, next_job=100)


def truth(takes: Mapping[str, float] | float = 0.0, **fields: Any) -> Truth:
    def seconds(asked: JobRecord, width: int) -> float:
        return takes if isinstance(takes, float) else takes[asked.id]

    return Truth(**{"now": 10_000.0, "takes": seconds, **fields})


def test_last_gpus_are_taken_by_a_job_of_a_higher_priority_alone() -> None:
    for priority, wrong in (("normal", True), ("urgent", False)):
        loser, taker = on(job(1), n1=2), job(2, priority, weight=50.0)
        before, after = state(loser, taker), state(to_have(loser), to_have(taker, n1=2))
        assert bool(list(fairness.taken_wrongly(before, after, truth()))) == wrong


def test_last_gpus_that_go_to_no_one_need_a_lost_node_or_a_cap_as_their_cause() -> None:
    before, after = state(on(job(1), n1=1)), state(to_have(on(job(1), n1=1)))
    assert list(fairness.taken_wrongly(before, after, truth()))
    assert not list(fairness.taken_wrongly(before, after, truth(lost=frozenset({1}))))
    assert not list(fairness.taken_wrongly(before, after, truth(over_cap=lambda job: True)))


def test_a_job_that_urges_elsewhere_excuses_nothing() -> None:
    loser, urgent = on(job(1), n1=2), job(2, "urgent")
    before = state(loser, urgent, nodes=2)
    after = state(to_have(loser), to_have(urgent, n2=2), nodes=2)
    assert list(fairness.taken_wrongly(before, after, truth()))
    assert not fairness.made_way(before, after)


def test_a_narrowed_job_made_way_for_a_higher_priority_alone() -> None:
    for priority, made_way in (("normal", set()), ("urgent", {"1"})):
        loser, taker = on(job(1), n1=2), job(2, priority)
        before = state(loser, taker)
        after = state(to_have(loser, n1=1), to_have(taker, n1=1))
        assert fairness.made_way(before, after) == made_way


def test_a_retry_of_a_job_that_fails_displaces_no_running_one() -> None:
    runs, retry = on(job(1), n1=2), replace(job(2, "urgent"), attempts=3)
    before = state(runs, retry)
    after = state(to_have(runs, n1=1), to_have(retry, n1=1))
    loops = {"2": (9_500.0, 9_900.0)}
    assert list(fairness.displaced(before, after, truth(failures=loops)))
    assert not list(fairness.displaced(before, after, truth(failures={"2": (9_900.0,)})))
    ended = state(to_have(retry, n1=1))
    assert not list(fairness.displaced(before, ended, truth(failures=loops)))
    free = state(on(job(1), n1=1), retry)
    beside = state(on(job(1), n1=1), to_have(retry, n1=1))
    assert not list(fairness.displaced(free, beside, truth(failures=loops)))


def test_a_newcomer_that_delays_a_job_whose_turn_it_is_overtakes_it() -> None:
    first, later = job(1), job(2)
    before, after = state(first, later), state(first, to_have(later, n1=2))
    since = {"1": 9_000.0, "2": 9_900.0}
    slow, quick = truth(900.0), truth(60.0)
    assert list(fairness.overtakers(before, after, slow, since)) == [(first, after.jobs["2"])]
    assert not list(fairness.overtakers(before, after, slow, {"1": 9_900.0}))
    assert not list(fairness.overtakers(before, after, quick, since))
    heavy = replace(later, spec=replace(later.spec, weight=50.0))
    assert list(fairness.overtakers(state(first, heavy), after, slow, since))
    at_once = state(first, on(later, n1=2))
    assert list(fairness.overtakers(before, at_once, slow, since))
    urgent = to_have(job(2, "urgent"), n1=2)
    assert not list(fairness.overtakers(before, state(first, urgent), slow, since))


def test_a_newcomer_does_not_start_before_a_job_that_ran_before() -> None:
    preempted, later = replace(job(2), attempts=1, state="preempted"), job(1)
    before, after = state(preempted, later), state(preempted, to_have(later, n1=2))
    found = list(fairness.overtakers(before, after, truth(900.0), {"2": 9_990.0}))
    assert found == [(preempted, after.jobs["1"])]


def test_a_cap_that_leaves_a_job_nothing_lets_others_start_first() -> None:
    first, later = job(1), job(2)
    before, after = state(first, later), state(first, to_have(later, n1=2))
    barred = truth(900.0, barred=lambda job: job.id == "1")
    assert not list(fairness.overtakers(before, after, barred, {"1": 0.0}))


def test_empty_gpus_are_kept_for_a_job_that_came_first_only_while_it_would_be_delayed() -> None:
    wide, narrow = job(1, least=2), job(2)
    waits = state(on(job(3), n1=1), wide, narrow)
    ends = {"3": 10_600.0}
    assert fairness.blocked_by(waits, narrow, truth(900.0, ends=ends)) == wide
    assert fairness.blocked_by(waits, narrow, truth(300.0, ends=ends)) is None
    earlier = replace(narrow, id="0", submitted_at=50.0)
    alone = state(on(job(3), n1=1), wide, earlier)
    assert fairness.blocked_by(alone, earlier, truth(900.0, ends=ends)) is None
    assert fairness.blocked_by(alone, wide, truth(900.0, ends=ends)) == earlier


def test_a_waiting_job_could_take_what_stoppable_jobs_of_a_lower_priority_hold() -> None:
    runs, urgent = on(job(1), n1=2), job(2, "urgent")
    assert fairness.could_take(state(runs, urgent), urgent, truth()) == ["1"]
    cannot = truth(stoppable=lambda job: False)
    assert not fairness.could_take(state(runs, urgent), urgent, cannot)
    peer = on(job(1, "urgent"), n1=2)
    assert not fairness.could_take(state(peer, urgent), urgent, truth())
    heavy = on(job(1, weight=50.0), n1=2)
    assert fairness.could_take(state(heavy, urgent), urgent, truth()) == ["1"]
    another = job(3, "urgent", least=2)
    assert not fairness.could_take(state(runs, urgent, another), another, truth())
