"""A month's statement counts what stops by BOA's decision have cost in that month, each once."""

from pathlib import Path

from boa.model.job import GpuLimits
from boa.scheduler.money.costs import month_of
from boa.scheduler.stop_cost import with_stop
from boa.server.render.statements import read_statement
from live import Live, config, profile, spec
from stored import changes

LONG = profile("long", work=(36e6,))


def test_a_stop_counts_in_its_own_month_alone(tmp_path: Path) -> None:
    """The job holds GPUs in two months."""
    live = Live(config(tmp_path), {"long": LONG})
    job = live.submit(spec("long", gpus=GpuLimits(max=1)))
    live.advance(600.0)
    live.clock.advance_to(month_of(live.clock.now())[1] - 300.0)
    live.settle()
    store, money = live.store, live.loop.snapshot.money
    assert store is not None
    now = live.clock.now()
    stopped = with_stop(live.job(job), now, times=2, lost_s=50.0, lost_usd=0.5)
    stopped = with_stop(stopped, now + 600.0, times=1, lost_s=7.0, lost_usd=0.25)
    assert (stopped.preemptions, stopped.lost_s, stopped.lost_usd) == (3, 57.0, 0.75)
    store.commit(changes(jobs=(stopped,)))
    later = now + 3600.0
    counted = [
        read_statement(store, money, *month_of(at), later)["preempted"] for at in (now, later)
    ]
    assert counted == [
        {"times": 2, "lost_s": 50.0, "lost_usd": 0.5},
        {"times": 1, "lost_s": 7.0, "lost_usd": 0.25},
    ]
    live.close()
