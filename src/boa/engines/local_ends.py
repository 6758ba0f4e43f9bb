"""Runs of the local engine that do not end by themselves: the service kills what is left."""

import logging
import signal
from collections.abc import Collection, Iterable, Mapping

from boa.engines.local_run import LocalRun
from boa.engines.processes import cgroups, orphans
from boa.model.runs import RunEvent
from boa.units import Seconds

PATIENCE_S: Seconds = 5.0
"""For processes to die of SIGKILL, before it is told that they do not."""
AGAIN_S: Seconds = 1.0
"""Between two attempts at the same."""


_log = logging.getLogger("boa.engines")


def kill_strays(unknown: Collection[int], place: str) -> dict[orphans.Traces, str]:
    """Processes of runs of which nothing is written any more, by mark. Gives what cannot be
    ended."""
    if unknown:
        _log.warning("what is left of %d runs that nobody knows is killed", len(unknown))
    return orphans.kill(
        [orphans.Traces(mark=mark, cgroup=cgroups.path_of(place, mark)) for mark in unknown]
    )


def kill_overdue(runs: Iterable[LocalRun], now: Seconds) -> None:
    """Runs that go on after their grace: their supervisor is stopped, or hangs."""
    late = [run for run in runs if run.kill_at is not None and now >= run.kill_at and not run.dead]
    for run in late:
        run.kill_at, run.overdue = now + AGAIN_S, True
        run.signal_supervisor(signal.SIGKILL)
    if late:
        orphans.kill([run.traces() for run in late])


def not_over(dead: Mapping[LocalRun, RunEvent | None], now: Seconds) -> list[LocalRun]:
    """Kill what is left of them. Gives those of which something still is: they are not over, or
    their jobs would run twice at once."""
    traces = {run: run.traces() for run in dead}
    doubtful = [
        run
        for run, end in dead.items()
        if end is None or end.run_lost or orphans.is_held(traces[run])
    ]
    left = orphans.kill([traces[run] for run in doubtful]) if doubtful else {}
    hindered = [run for run in doubtful if traces[run] in left]
    for run in hindered:
        run.dead_since = now if run.dead_since is None else run.dead_since
        if now >= run.dead_since + PATIENCE_S:
            run.look_at = now + AGAIN_S
            run.hinder(left[traces[run]])
    return hindered
