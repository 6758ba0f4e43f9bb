"""The real loop on a virtual clock: jobs whose next nodes are not there yet."""

from dataclasses import replace
from typing import Any

from boa.model.job import GpuLimits
from live import BILLINGS, LONG, profile, spec


@BILLINGS
def test_a_job_goes_on_where_it_is_while_its_next_nodes_boot(lives: Any, billing: str) -> None:
    live = lives(LONG, per_hour=0.2, budget=1.0, provision_s=300.0, billing=billing)
    job_id = live.submit(spec("long"))
    live.advance(400.0, tick=50.0)
    before = live.job(job_id)
    assert before.state == "running"
    live.loop.set_budget(40.0)
    live.advance(10.0)
    moving = live.job(job_id)
    assert len(live.loop.snapshot.nodes) > 1
    assert moving.run == before.run, "it waits where it works"
    live.advance(400.0, tick=50.0)
    moved = live.job(job_id)
    assert moved.state == "running"
    assert moved.run.allocation.width > before.run.allocation.width


@BILLINGS
def test_a_job_beside_it_does_not_stop_one_that_waits_for_nodes(lives: Any, billing: str) -> None:
    short = profile("short", work=(600.0,), alpha=0.1)
    live = lives(LONG, short, per_hour=0.2, budget=1.0, provision_s=300.0, billing=billing)
    long_id = live.submit(spec("long", gpus=GpuLimits(max=16)))
    live.advance(400.0, tick=50.0)
    live.loop.set_budget(40.0)
    live.advance(10.0)
    before = live.job(long_id)
    short_id = live.submit(spec("short", gpus=GpuLimits(max=1)))
    after = live.job(long_id)
    assert after.state == "running"
    if billing == "gpu":
        assert after.attempts == before.attempts
    else:  # squeezed, instead of having the newcomer wait for a boot
        assert after.run.allocation.width < before.run.allocation.width
        assert live.job(short_id).state == "running"


def test_a_job_that_was_short_before_a_crash_is_looked_at_after_it(lives: Any) -> None:
    live = lives(LONG, per_hour=1.0, budget=100.0, max_nodes={"T4": 1})
    ids = [live.submit(spec("long", gpus=GpuLimits(min=4, max=4))) for _ in range(2)]
    assert [live.job(i).state for i in ids] == ["running", "waiting"]
    live.config = replace(live.config, max_nodes={"T4": 2})
    live.cloud = None
    live.crash()
    assert [live.job(i).state for i in ids] == ["running", "running"]
