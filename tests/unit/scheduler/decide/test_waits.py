"""Where nodes are billed: what is said of jobs that wait, and what nodes are worth meanwhile."""

from pathlib import Path

from boa.scheduler.words.of_keeping import WAITS
from live import Live, config, prior, profile, spec

KNOWN = profile("known", work=(7200.0,))


def begun(folder: Path, **fields: object) -> Live:
    priors = {"known": prior(KNOWN, per_hour=2.0)}
    settings = config(folder, provision_s=120.0, priors=priors, billing="node", **fields)
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
    live = begun(tmp_path, max_spend=3.0)
    job = live.submit(spec("known"))
    assert live.job(job).reason == WAITS["no_room"]
    live.close()
