"""Where nodes are billed: what is said of jobs that wait, and what nodes are worth meanwhile."""

from pathlib import Path

from boa.model.job import GpuLimits
from boa.scheduler.words.of_keeping import WAITS
from live import BILLINGS, Live, asked, config, prior, profile, spec

KNOWN = profile("known", work=(7200.0,))


def begun(folder: Path, **fields: object) -> Live:
    priors = {"known": prior(KNOWN, per_hour=2.0)}
    settings = config(folder, provision_s=120.0, priors=priors, **{"billing": "node", **fields})
    return Live(settings, {"known": KNOWN})


def test_a_job_waits_for_the_node_that_boots_for_it(tmp_path: Path) -> None:
    live = begun(tmp_path)
    job = live.submit(spec("known"))
    live.advance(5.0, tick=5.0)
    assert live.job(job).reason == WAITS["boot"]
    node = min(live.loop.snapshot.weighed.keys() & live.loop.snapshot.nodes.keys())
    rented = live.loop.snapshot.weighed[node].worth_per_hour
    live.advance(60.0, tick=60.0)
    assert live.loop.snapshot.weighed[node].worth_per_hour == rented, "as it was when rented"
    live.advance(90.0, tick=30.0)
    assert live.job(job).reason == ""
    live.close()


def test_a_job_waits_where_no_further_node_may_be_rented(tmp_path: Path) -> None:
    live = begun(tmp_path, max_nodes={"T4": 1})
    for _ in range(5):
        job = live.submit(spec("known"))
    live.advance(600.0)
    assert live.job(job).reason == WAITS["no_room"]
    live.close()


@BILLINGS
def test_a_job_that_waits_for_the_cap_is_told_the_cap_and_where_it_came_from(
    tmp_path: Path, billing: str
) -> None:
    live = begun(tmp_path, max_spend=4.0, billing=billing)
    for _ in range(6):
        live.submit(spec("known"))
    live.advance(600.0)
    waiting = [job.reason for job in live.loop.snapshot.jobs.values() if job.run is None]
    configured = "the cap of $4.00/h (max_spend_per_hour of the configuration) leaves"
    assert len(waiting) == 2, "a node has four GPUs"
    assert all(configured in reason for reason in waiting), waiting
    asked(live, live.loop.set_budget(None, 5.0))
    live.advance(600.0)
    waiting = [job.reason for job in live.loop.snapshot.jobs.values() if job.run is None]
    when = "1970-01-12 13:56 UTC"
    set_now = f"the cap of $5.00/h (set at run time on {when}; the configuration says $4.00/h)"
    assert all(set_now in reason for reason in waiting), waiting
    live.close()


def test_a_job_too_large_for_the_cap_is_not_said_to_wait_half_an_hour(tmp_path: Path) -> None:
    live = begun(tmp_path, max_spend=4.0)
    job = live.submit(spec("known", gpus=GpuLimits(min=8, max=16)))
    live.advance(3600.0)
    assert "would cost more than the cap of $4.00/h" in live.job(job).reason
    live.close()
