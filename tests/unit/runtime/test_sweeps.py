"""Sweeps kept by the real loop on a virtual clock: one class, losers end early."""

from dataclasses import replace
from typing import Any

import pytest

from boa.errors import InputError
from boa.formats.sweep import Drawn, read_sweep
from boa.model.access import Caller
from boa.model.job import After
from boa.model.records import EpochEnd, Report
from boa.model.sweep import Halving, Sweep
from boa.scheduler.refusals import NoSuchSweep
from live import Live, asked, profile, spec

NET = profile("net", work=(600.0,) * 9, alpha=0.9)
ALICE = Caller(name="alice", role="member", address="10.0.0.7")


def sweep_of(count: int = 9, halving: Any = None, **job: Any) -> Any:
    said = {"class": "net", "run": "true", "launcher": "single", "epochs": 9, **job}
    body: dict[str, Any] = {"job": said, "parameters": {"x": list(range(1, count + 1))}}
    return read_sweep(body if halving is None else {**body, "halving": halving})


def reporting(live: Live, worth: Any = float) -> None:
    """Jobs whose loss is their parameter, over the epochs that they have done."""

    def report(said: Report) -> None:
        job = live.loop.snapshot.jobs.get(said.job) or live.loop.state.jobs.get(said.job)
        drawn = {} if job is None else job.drawn
        loss = worth(drawn["x"]) / (said.epoch + 1) if "x" in drawn else None
        live.loop.report(replace(said, loss=loss))

    live.engine.report = report


def test_a_sweep_is_of_one_class_and_its_jobs_know_their_parameters(lives: Any) -> None:
    live = lives(NET)
    sweep = asked(live, live.loop.submit_sweep(sweep_of(3), owner="alice", by=ALICE))
    assert (sweep.id, sweep.jobs, sweep.job_class) == ("s1", ("1", "2", "3"), "net")
    jobs = [live.job(job) for job in sweep.jobs]
    assert {job.job_class for job in jobs} == {"net"}
    assert [job.drawn for job in jobs] == [{"x": "1"}, {"x": "2"}, {"x": "3"}]
    assert jobs[2].spec.run == ("sh", "-c", "true --x 3")
    (line,) = live.store.audit()
    assert (line.entry.what, line.entry.subject) == ("sweep", "s1")
    live.crash()
    assert live.loop.snapshot.sweeps["s1"] == sweep
    assert asked(live, live.loop.submit_sweep(sweep_of(2))).id == "s2"
    live.finish()
    ended = live.loop.snapshot.sweeps["s1"]
    assert ended.outcome == "succeeded"
    assert ended.ended_usd == pytest.approx(sum(live.job(job).cost_usd for job in ended.jobs))


@pytest.mark.parametrize("billing", ["gpu", "node"])
def test_losers_end_early_and_the_best_goes_on_to_the_end(lives: Any, billing: str) -> None:
    live = lives(NET, budget=20.0, billing=billing)
    reporting(live)
    sweep = asked(live, live.loop.submit_sweep(sweep_of(9, {"factor": 3})))
    live.finish()
    ended = live.loop.snapshot.sweeps[sweep.id]
    states = [live.job(job).state for job in sweep.jobs]
    assert states == ["succeeded"] + ["stopped"] * 8
    assert {live.job(job).stop_why for job in sweep.jobs[1:]} == {"halving"}
    assert "do better" in live.job("9").reason
    assert ended.outcome == "succeeded", "losers have not failed"
    early = [live.job(job).epoch for job in sweep.jobs[3:]]
    assert max(early) <= 3, "they ended long before the ninth epoch"
    assert sorted(ended.rungs, key=int) == ["1", "3"]


def test_a_higher_metric_may_be_the_better_one_and_nan_is_worst(lives: Any) -> None:
    live = lives(NET, budget=20.0)

    def report(said: Report) -> None:
        value = float("nan") if said.job == "4" else float(said.job)
        live.loop.report(replace(said, metrics={"acc": value}))

    live.engine.report = report
    halving = {"metric": "acc", "better": "max", "factor": 2}
    sweep = asked(live, live.loop.submit_sweep(sweep_of(4, halving)))
    live.finish()
    assert [live.job(job).state == "succeeded" for job in sweep.jobs] == [False, False, True, False]


def test_a_job_that_is_heard_late_is_judged_by_what_it_had_come_to_at_the_rung(lives: Any) -> None:
    live = lives(NET, budget=20.0)

    def report(said: Report) -> None:
        late, x = said.job == "9", float(said.job)
        if late and said.epoch < 3:
            return  # the service is away, for this one
        ends = [EpochEnd(epoch=n, values={"loss": x / (n + 1)}) for n in range(1, said.epoch + 1)]
        live.loop.report(replace(said, loss=x / (said.epoch + 1), ends=tuple(ends) if late else ()))

    live.engine.report = report
    sweep = asked(live, live.loop.submit_sweep(sweep_of(9, {"factor": 3})))
    live.finish()
    ended = live.loop.snapshot.sweeps[sweep.id]
    assert ended.rungs["1"]["9"] == 4.5, "not 9 / 4, which it had by then"
    assert live.job("9").state == "stopped"
    assert "after 1 epoch: 3 do better" in live.job("9").reason
    assert {"1", "2", "3"} <= ended.rungs["3"].keys()


def test_a_loss_that_is_no_number_loses_though_the_one_before_was_best(lives: Any) -> None:
    live = lives(NET, budget=20.0)

    def report(said: Report) -> None:
        diverged = said.job == "1"
        loss = None if diverged and said.epoch else float(said.job)
        ends = [EpochEnd(epoch=n, values={"loss": loss}) for n in range(1, said.epoch + 1)]
        live.loop.report(replace(said, loss=loss, ends=tuple(ends)))

    live.engine.report = report
    sweep = asked(live, live.loop.submit_sweep(sweep_of(3, {"factor": 3})))
    live.finish()
    assert [live.job(job).state for job in sweep.jobs] == ["stopped", "succeeded", "stopped"]
    assert "loss that is no number after 1 epoch" in live.job("1").reason


def test_a_service_that_is_killed_again_and_again_keeps_the_same_jobs_once(lives: Any) -> None:
    live = lives(NET, budget=20.0)
    reporting(live)
    sweep = asked(live, live.loop.submit_sweep(sweep_of(9, {"factor": 3})))
    for _ in range(12):
        live.advance(250.0)
        live.crash()
    live.finish()
    states = [live.job(job).state for job in sweep.jobs]
    assert states == ["succeeded"] + ["stopped"] * 8
    events = [one.event for one in live.store.events(limit=1000)]
    told = [event.job for event in events if event.kind == "stop"]
    assert sorted(told) == sorted(sweep.jobs[1:]), "each loser is stopped once"
    ended = live.loop.snapshot.sweeps[sweep.id]
    assert ended.ended_usd == pytest.approx(sum(live.job(job).cost_usd for job in sweep.jobs))


def test_without_a_metric_nobody_is_given_up(lives: Any) -> None:
    live = lives(NET, budget=20.0)
    sweep = asked(live, live.loop.submit_sweep(sweep_of(3, {"metric": "never"})))
    live.finish()
    assert {live.job(job).state for job in sweep.jobs} == {"succeeded"}


def test_where_gpus_are_short_a_job_waits_for_others_of_its_sweep(lives: Any) -> None:
    live = lives(NET, budget=20.0, max_nodes={"T4": 1}, billing="node")
    reporting(live, worth=lambda x: 10.0 - float(x))
    sweep = asked(live, live.loop.submit_sweep(sweep_of(9, {"factor": 3}, gpus={"min": 2})))
    live.finish()
    assert [live.job(job).state == "succeeded" for job in sweep.jobs] == [False] * 8 + [True]
    first = live.job("1")
    assert first.epoch <= 2, "it waited at its rung, and lost"
    assert not any(live.job(job).parked and not live.job(job).ended for job in sweep.jobs)


def test_a_job_may_start_after_a_whole_sweep(lives: Any) -> None:
    live = lives(NET, budget=20.0)
    reporting(live)
    sweep = asked(live, live.loop.submit_sweep(sweep_of(3, {"factor": 3})))
    later = live.submit(spec("net", epochs=9, after=(After(sweep.id),)))
    assert live.job(later).reason == "waits for sweep s1"
    live.finish()
    assert live.job(later).state == "succeeded"
    assert live.job(later).started_at >= live.loop.snapshot.sweeps["s1"].ended_at
    soon = live.submit(spec("net", epochs=9, after=(After(sweep.id),)))
    assert live.job(soon).awaits == ()
    with pytest.raises(InputError, match=r"after\[0\]"):
        asked(live, live.loop.submit(spec("net", after=(After("s7"),))))


def test_a_sweep_is_stopped_whole(lives: Any) -> None:
    live = lives(NET)
    sweep = asked(live, live.loop.submit_sweep(sweep_of(4)))
    asked(live, live.loop.stop_sweep(sweep.id, by=ALICE))
    assert {live.job(job).state for job in sweep.jobs} == {"stopped"}
    assert live.loop.snapshot.sweeps["s1"].outcome == "stopped"
    assert live.loop.state.sweeps == {}
    asked(live, live.loop.stop_sweep(sweep.id))
    with pytest.raises(NoSuchSweep, match="s9"):
        asked(live, live.loop.stop_sweep("s9"))


def test_a_sweep_that_cannot_run_is_refused_whole(lives: Any) -> None:
    live = lives(NET)
    with pytest.raises(InputError, match=r"job\.gpus\.types"):
        asked(live, live.loop.submit_sweep(sweep_of(3, gpus={"types": ["H900"]})))
    assert not live.loop.snapshot.jobs
    assert not live.loop.snapshot.sweeps


def test_a_sweep_is_the_same_after_it_was_stored() -> None:
    sweep = Sweep(
        id="s1",
        name="n",
        job_class="net",
        made_at=3.0,
        jobs=("1", "2"),
        epochs=9,
        halving=Halving(metric="acc", better="max"),
        rungs={"1": {"1": 0.5}},
        outcomes={"2": "failed"},
    )
    assert Sweep.read(sweep.document()) == sweep
    assert Drawn({}, spec("net")).values == {}
