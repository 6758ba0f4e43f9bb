"""The real loop on a virtual clock: what happens to jobs, nodes and money."""

from pathlib import Path
from typing import Any

import pytest

from boa.clouds.faulty import Faults, FaultyCloud
from boa.clouds.local import LocalCloud
from boa.errors import InputError
from boa.model.job import GpuLimits
from boa.model.runs import RunKey
from boa.scheduler.money.ledger import committed
from boa.scheduler.refusals import NoSuchJob
from live import A100, BILLINGS, HALVES, LONG, T4, Live, config, kinds, prior, profile, spec


def test_a_job_starts_at_arrival_with_its_planned_width(lives: Any) -> None:
    live = lives()
    plan = live.loop.snapshot.plan
    assert plan is not None
    job = live.job(live.submit(spec("halves")))
    assert job.state == "running"
    assert job.started_at == job.submitted_at
    assert job.run is not None
    variants = plan.solution.plan["halves"].variants
    assert job.run.allocation.width in {variant.widths[0] for variant in variants}


def test_a_job_ends_after_rescaling_and_work_at_its_width(lives: Any) -> None:
    live = lives()
    job_id = live.submit(spec("halves", gpus=GpuLimits(max=1)))
    live.finish()
    job = live.job(job_id)
    assert job.state == "succeeded"
    assert job.exit_code == 0
    assert job.ended_at - job.submitted_at == pytest.approx(30.0 + 3600.0)
    assert job.cost_usd == pytest.approx(3630.0 / 3600.0)


def test_a_width_that_changes_between_epochs_is_a_rescaling(lives: Any) -> None:
    both = profile("both", work=(3600.0, 36_000.0), alpha=0.05)
    both.rates["T4"][1] = profile("steep", alpha=1.0).rates["T4"][0]
    live = lives(both, per_hour=1.0, budget=20.0)
    job_id = live.submit(spec("both", epochs=2))
    first = live.job(job_id)
    live.finish()
    done = live.job(job_id)
    assert done.rescalings == 1
    assert done.attempts == 2
    assert first.run is not None
    assert kinds(live, job_id) == ["submitted", "started", "rescaled", "succeeded"]


def test_a_failed_job_is_tried_again_with_longer_and_longer_pauses(lives: Any) -> None:
    live = lives(LONG, backoff_s=10.0)
    job_id = live.submit(spec("long", retries=2))
    waits = []
    for _ in range(2):
        live.engine.kill(RunKey(job_id, live.job(job_id).attempts), exit_code=1)
        live.settle()
        job = live.job(job_id)
        assert job.state == "waiting"
        assert job.retry_at is not None
        waits.append(job.retry_at - live.clock.now())
        live.advance(waits[-1] + 1e-3)
        assert live.job(job_id).state == "running"
    assert waits == pytest.approx([10.0, 20.0])
    live.engine.kill(RunKey(job_id, live.job(job_id).attempts), exit_code=1)
    live.settle()
    job = live.job(job_id)
    assert job.state == "failed"
    assert job.exit_code == 1
    assert job.restarts == 2


def test_progress_since_the_last_failure_forgives_it(lives: Any) -> None:
    many = profile("many", work=(600.0,) * 20, alpha=0.8)
    live = lives(many, backoff_s=1.0)
    job_id = live.submit(spec("many", retries=1, epochs=20, gpus=GpuLimits(max=1)))
    for _ in range(6):
        live.advance(1500.0)
        if live.job(job_id).ended:
            break
        live.engine.kill(RunKey(job_id, live.job(job_id).attempts))
        live.settle()
    live.finish()
    assert live.job(job_id).state == "succeeded"
    assert live.job(job_id).restarts >= 2


def test_stopping_a_running_job_ends_it_and_frees_its_node(lives: Any) -> None:
    live = lives()
    job_id = live.submit(spec("halves"))
    asked = live.loop.stop(job_id)
    live.settle()
    assert asked.result(timeout=0).stop_requested
    assert live.job(job_id).state == "stopped"
    live.advance(60.0)
    assert not live.loop.snapshot.nodes


def test_stopping_twice_or_after_the_end_changes_nothing(lives: Any) -> None:
    live = lives()
    job_id = live.submit(spec("halves"))
    live.finish()
    asked = live.loop.stop(job_id)
    live.settle()
    assert asked.result(timeout=0).state == "succeeded"


def test_an_unknown_job_and_an_unknown_gpu_type_are_refused_by_name(lives: Any) -> None:
    live = lives()
    missing = live.loop.stop("77")
    bad = live.loop.submit(spec("halves", gpus=GpuLimits(types=("H900",))))
    live.settle()
    with pytest.raises(NoSuchJob, match="77"):
        missing.result(timeout=0)
    with pytest.raises(InputError, match=r"H900.*T4"):
        bad.result(timeout=0)
    assert not live.loop.snapshot.jobs


def test_a_single_process_on_several_machines_is_warned_of(lives: Any) -> None:
    elsewhere = lives(engine="ray")
    wide = elsewhere.submit(spec("halves"))
    assert kinds(elsewhere, wide)[:2] == ["submitted", "trouble"]
    narrow = elsewhere.submit(spec("halves", gpus=GpuLimits(max=1)))
    assert "trouble" not in kinds(elsewhere, narrow)


def test_an_empty_node_is_kept_warm_and_then_given_back(lives: Any) -> None:
    live = lives(keep_warm_s=600.0, billing="gpu")
    live.submit(spec("halves"))
    live.finish()
    assert live.loop.snapshot.nodes
    live.submit(spec("halves"))
    assert kinds(live).count("node_rented") == len(live.loop.snapshot.nodes)
    live.finish()
    live.advance(601.0, tick=100.0)
    assert not live.loop.snapshot.nodes
    assert live.loop.snapshot.money.idle > 0


def test_a_class_that_nobody_knows_starts_and_is_learned(lives: Any) -> None:
    live = lives()
    fresh = profile("fresh", work=(1200.0,) * 6, alpha=0.5)
    live.profiles["fresh"] = fresh  # the engine's; nobody tells the service
    for _ in range(12):
        live.submit(spec("fresh", epochs=6, total_work=7200.0, gpus=GpuLimits(max=8)))
        live.finish()
    document = live.loop.class_document("fresh")
    assert document is not None
    rates = live.loop.profiler.prediction("fresh").rates("T4", 0)
    tried = live.loop.profiler.tried("fresh")["T4"]
    assert 1 < tried <= 8
    assert rates is not None
    row = int(tried > 4)
    assert rates[row, tried] == pytest.approx(fresh.rates["T4"][0, row, tried], rel=0.1)


def test_a_new_budget_is_planned_with_at_once(lives: Any) -> None:
    live = lives(per_hour=20.0, budget=30.0)
    before = live.loop.snapshot.plan
    live.advance(60.0)
    asked = live.loop.set_budget(60.0)
    live.settle()
    after = live.loop.snapshot.plan
    assert asked.result(timeout=0).budget == 60.0
    assert before is not None
    assert after is not None
    assert after.solution.average_jct < before.solution.average_jct


def test_a_new_cap_alone_leaves_the_budget_and_what_was_paced_as_they_are(lives: Any) -> None:
    live = lives(per_hour=20.0, budget=30.0)
    live.submit(spec("resnet18"))
    live.advance(3600.0)
    before = live.loop.snapshot.money
    asked = live.loop.set_budget(None, 20.0)
    live.settle()
    after = asked.result(timeout=0)
    assert (after.budget, after.since, after.gain) == (before.budget, before.since, before.gain)
    assert after.spent >= before.spent > 0
    assert (after.max_spend, after.effective) == (20.0, min(before.effective, 20.0))
    said = [stored.event for stored in live.store.events() if stored.event.kind == "budget"]
    assert [event.text for event in said] == ["never more than $20.00/h at a time"]
    assert said[0].data == {"budget": 30.0, "max_spend": 20.0}
    live.loop.set_budget(None, float("inf"))
    live.settle()
    assert live.loop.snapshot.money.max_spend is None


@BILLINGS
def test_with_too_few_gpus_jobs_run_narrower_and_grow_later(lives: Any, billing: str) -> None:
    live = lives(
        LONG, per_hour=1.0, budget=100.0, max_nodes={"T4": 2}, gpu_types={"T4": T4}, billing=billing
    )
    first, second = live.submit(spec("long")), live.submit(spec("long"))
    live.advance(120.0)  # before it has said that it saves, the first is not narrowed
    jobs = [live.job(first), live.job(second)]
    assert all(job.state == "running" for job in jobs), "nobody waits while GPUs can be had"
    assert sum(job.run.allocation.width for job in jobs) <= 8
    if billing == "gpu":  # where nodes are billed, what is not there is not wanted
        assert jobs[0].share.width > 4
        assert "shortage" in kinds(live)
    live.loop.stop(second)
    live.settle()
    live.advance(400.0)  # it was narrowed: it keeps what it has for a while
    assert live.job(first).run.allocation.width == 8


@BILLINGS
def test_a_cloud_that_says_no_sends_jobs_to_another_type_and_is_asked_again(
    tmp_path: Path, billing: str
) -> None:
    types = {"T4": T4, "A100": A100}
    both = profile("both", work=(36_000.0,), alpha=0.9, gpus={"T4": 1.0, "A100": 0.9})
    settings = config(
        tmp_path,
        billing=billing,
        budget=60.0,
        gpu_types=types,
        priors={"both": prior(both, 1.0)},
        refused_s=60.0,
    )
    live = Live(settings, {"both": both})
    local = live.cloud
    assert isinstance(local, LocalCloud)
    no_t4 = _Without("T4", local)
    live.loop.actor._cloud = no_t4
    live.settle()
    job_id = live.submit(spec("both"))
    job = live.job(job_id)
    if billing == "gpu":
        assert job.share is not None
        assert job.share.gpu == "T4"
    assert job.run is not None
    assert job.run.allocation.gpu == "A100"
    assert "shortage" in kinds(live)
    assert any("no T4 left" in line for line in live.logged)
    no_t4.closed = False
    live.advance(130.0, tick=10.0)
    moved = live.job(job_id)
    assert moved.run is not None
    assert moved.run.allocation.gpu == "T4"
    live.close()


class _Without:
    """A cloud that has no more of one type."""

    def __init__(self, gpu: str, cloud: LocalCloud) -> None:
        self._gpu, self._cloud, self.closed = gpu, cloud, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cloud, name)

    def rent(self, token: str, gpu: str) -> None:
        from boa.clouds.base import NoCapacity

        if self.closed and gpu == self._gpu:
            raise NoCapacity(f"no {gpu} left")
        self._cloud.rent(token, gpu)


@BILLINGS
def test_the_hard_cap_is_never_crossed(lives: Any, billing: str) -> None:
    live = lives(
        LONG,
        per_hour=4.0,
        budget=100.0,
        max_spend=13.0,
        provision_s=60.0,
        release_s=60.0,
        billing=billing,
    )

    def charged() -> float:
        return float(sum(n.price * n.gpus for n in live.cloud.nodes() if n.gone_at is None))

    for _ in range(6):
        live.submit(spec("long", gpus=GpuLimits(min=3)))
        assert charged() <= 13.0
        live.advance(900.0, tick=20.0)
        assert charged() <= 13.0
    widths = [j.run.allocation.width for j in live.loop.snapshot.jobs.values() if j.run is not None]
    assert widths == [3, 3, 3, 3], "all twelve in use"
    assert committed(live.loop.snapshot.nodes.values(), live.loop.now()) == 12.0


def test_a_node_that_vanishes_costs_its_jobs_a_restart_and_no_retry(lives: Any) -> None:
    live = lives(LONG, budget=4.0)
    job_id = live.submit(spec("long", retries=0))
    live.advance(600.0)
    node = next(iter(live.loop.snapshot.nodes.values()))
    live.cloud.release(node.token)  # behind the service's back
    live.settle()
    job = live.job(job_id)
    assert "node_lost" in kinds(live)
    assert job.state == "running"
    assert node.id not in job.run.slots
    assert job.restarts == 1
    assert job.failures == 0


def test_a_node_that_nobody_here_knows_is_given_back(lives: Any) -> None:
    live = lives()
    live.cloud.rent("test-999", "T4")
    live.settle()
    listed = {node.token: node for node in live.cloud.nodes()}
    assert listed["test-999"].gone_at is not None


def test_a_cloud_in_trouble_forgets_nothing(tmp_path: Path) -> None:
    settings = config(tmp_path, budget=12.0, priors={"halves": prior(HALVES, 2.0)})
    live = Live(settings, {"halves": HALVES})
    faults = Faults(seed=7, trouble_before=0.2, trouble_after=0.2)
    live.loop.actor._cloud = FaultyCloud(live.cloud, live.clock, faults)  # type: ignore
    live.settle()
    for _ in range(10):
        live.submit(spec("halves"))
        live.advance(1200.0, tick=20.0)
        _try_again_now(live)
    live.finish()
    for _ in range(30):
        live.advance(20.0)
        _try_again_now(live)
    assert live.store is not None
    assert {job.state for job in live.store.jobs()} == {"succeeded"}
    assert not live.loop.snapshot.nodes
    assert all(node.gone_at is not None for node in live.cloud.nodes()), "paid for and forgotten"  # type: ignore[union-attr]
    live.close()


def _try_again_now(live: Live) -> None:
    """What is to be tried again is due."""
    later = live.loop.actor._later
    live.loop.actor._later = type(later)((0.0, task) for _, task in later)


def test_a_machine_whose_clock_is_set_is_told_of_and_nothing_else_happens(
    lives: Any, monkeypatch: Any
) -> None:
    live = lives()
    job_id = live.submit(spec("halves"))
    monkeypatch.setattr(live.clock, "jump", lambda: -7200.0, raising=False)
    live.settle()
    live.settle()
    assert kinds(live).count("clock") == 1
    assert live.job(job_id).state == "running"
