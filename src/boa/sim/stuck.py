"""How long a simulation waits for jobs that no policy may ever place."""

from collections.abc import Collection

from boa.sim.jobs import ActiveJob
from boa.units import Seconds

NOBODY_RUNS_S: Seconds = 86_400.0
"""With nobody left to arrive and no job on any GPU for so long, the rest will never run."""
NO_PROGRESS_S: Seconds = 30 * 86_400.0
"""Jobs that hold GPUs but are restarted over and over get so long to make any progress."""


class Patience:
    def __init__(self, interval_s: Seconds | None) -> None:
        self._nobody_s = max(NOBODY_RUNS_S, 10 * (interval_s or 0.0))
        self._standing, self._since = -1.0, 0.0

    def lost(self, now: Seconds, jobs: Collection[ActiveJob], ended: int) -> bool:
        """Whether the jobs that are left would never end."""
        waiting = all(job.allocation is None for job in jobs)
        standing = sum(job.epoch + job.done for job in jobs) + ended
        if standing != self._standing:
            self._standing, self._since = standing, now
        longest = self._nobody_s if waiting else NO_PROGRESS_S
        return bool(jobs) and now - self._since > longest
