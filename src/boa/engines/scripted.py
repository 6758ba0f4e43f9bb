"""An engine that acts out class profiles in the clock's time, without any process.

For tests that step the real control loop through days in seconds, and for load tests: everything
but the training is real. A poll looks only at runs that something happens to, so that thousands
can be acted out.
"""

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from boa.clock import Clock
from boa.model.cluster import JobId
from boa.model.profile import ClassProfile
from boa.model.records import Report
from boa.model.runs import Launch, LogFile, RunEvent, RunKey
from boa.units import Seconds

NEVER: Seconds = float("inf")
CLOSE = 1e-9
"""Relative: work that is this near to done is done."""


@dataclass(slots=True)
class _Acted:
    """One run being acted out."""

    number: int
    """Runs are told of in the order they were started in."""
    launch: Launch
    profile: ClassProfile
    began: Seconds
    clock: Seconds
    """Progress is known up to here; later than now while the job is still starting."""
    epoch: int
    done: float
    says_at: Seconds = NEVER
    """When it next reports by itself."""
    units: float = 0.0
    told: bool = False
    ended: RunEvent | None = None
    ended_at: Seconds = NEVER

    @property
    def rate(self) -> float:
        table = self.profile.rates[self.launch.gpu_type]
        row = int(len(self.launch.slots) > 1)
        return float(table[min(self.epoch, len(table) - 1), row, self.launch.width])

    def wakes_at(self) -> Seconds:
        """The end of the current epoch, or the next report."""
        if self.ended is not None:
            return NEVER
        rate = self.rate
        left = self.profile.work[self.epoch] - self.done
        return min(self.clock + left / rate if rate > 0 else NEVER, self.says_at)


class ScriptedEngine:
    """`report_s`: how often runs report besides at the end of every epoch; None: not at all."""

    def __init__(
        self,
        clock: Clock,
        profiles: Mapping[str, ClassProfile],
        report: Callable[[Report], None] = lambda report: None,
        report_s: Seconds | None = None,
    ) -> None:
        self._clock, self._profiles, self._report_s = clock, profiles, report_s
        self.report = report
        self._runs: dict[RunKey, _Acted] = {}
        self._checkpoints: dict[JobId, tuple[int, float]] = {}
        self._wakes: list[tuple[Seconds, int, _Acted]] = []
        """A heap; of every run that has not ended, one entry that holds."""
        self._pending: dict[int, _Acted] = {}
        """Runs that a poll has something to tell of, whatever the time."""
        self._polled_at: Seconds = clock.now()
        self._seen: set[RunKey] = set()
        self.started: list[RunKey] = []
        """Every start that was not a repetition, in order."""

    def start(self, launch: Launch) -> None:
        if launch.key in self._seen:
            return
        self._seen.add(launch.key)
        self.started.append(launch.key)
        profile, now = self._profiles[launch.spec.job_class], self._clock.now()
        epoch, done = self._checkpoints.get(launch.key.job, (0, 0.0))
        begins = now + profile.rescale_s
        run = _Acted(len(self.started), launch, profile, now, begins, epoch, done)
        if self._report_s is not None:
            run.says_at = begins + self._report_s
        self._runs[launch.key] = self._pending[run.number] = run
        self._set_alarm(run)

    def stop(self, key: RunKey, grace_s: Seconds) -> None:
        run = self._runs.get(key)
        if run is None or run.ended is not None:
            return
        self._advance(run, self._clock.now())
        if run.ended is None:
            self._end(run, RunEvent(key=key, ended=True, exit_code=0, stopped=True))

    def kill(self, key: RunKey, exit_code: int | None = -9) -> None:
        """A worker dies: what it did since it was last looked at is lost."""
        run = self._runs[key]
        if run.ended is None:
            self._advance(run, self._polled_at)
        if run.ended is None:
            self._end(run, RunEvent(key=key, ended=True, exit_code=exit_code))

    def poll(self) -> Sequence[RunEvent]:
        """Ages are in the clock's seconds."""
        now = self._polled_at = self._clock.now()
        for run in self._due(now):
            self._advance(run, now)
            self._set_alarm(run)
        found = []
        for number, run in sorted(self._pending.items()):
            if not run.told:
                run.told = True
                found.append(RunEvent(key=run.launch.key, ended=False))
            if run.ended is not None:
                found.append(replace(run.ended, age_s=max(now - run.ended_at, 0.0)))
            else:
                del self._pending[number]
        return found

    def runs(self) -> Collection[RunKey]:
        return list(self._runs)

    def forget(self, key: RunKey) -> None:
        run = self._runs.pop(key, None)
        if run is not None:
            self._pending.pop(run.number, None)

    def logs(self, job: JobId) -> Sequence[LogFile]:
        return ()

    def close(self) -> None:
        return

    def wakes_at(self) -> Seconds:
        """When something next happens by itself."""
        while self._wakes:
            due, _, run = self._wakes[0]
            if run.ended is None and due == run.wakes_at():
                return due
            heapq.heappop(self._wakes)
        return NEVER

    def _due(self, now: Seconds) -> list[_Acted]:
        found = []
        while (at := self.wakes_at()) <= now and at < NEVER:
            found.append(heapq.heappop(self._wakes)[2])
        return found

    def _set_alarm(self, run: _Acted) -> None:
        if run.ended is None and (due := run.wakes_at()) < NEVER:
            heapq.heappush(self._wakes, (due, run.number, run))

    def _end(self, run: _Acted, event: RunEvent, at: Seconds | None = None) -> None:
        run.ended, run.ended_at = event, self._clock.now() if at is None else at
        self._pending[run.number] = run

    def _advance(self, run: _Acted, now: Seconds) -> None:
        while run.ended is None and run.clock < now:
            work, rate = run.profile.work[run.epoch], run.rate
            left = work - run.done
            made = min(rate * (now - run.clock), left)
            full = made >= left * (1 - CLOSE)
            run.units += made
            run.clock = run.clock + left / rate if full else now
            run.done = 0.0 if full else run.done + made
            run.epoch += full
            if full and run.epoch == len(run.profile.work):
                self._end(run, RunEvent(key=run.launch.key, ended=True, exit_code=0), run.clock)
            elif full or run.clock >= run.says_at:
                self._say(run)
        self._checkpoints[run.launch.key.job] = (run.epoch, run.done)

    def _say(self, run: _Acted) -> None:
        key = run.launch.key
        if self._report_s is not None:
            run.says_at = run.clock + self._report_s
        self.report(
            Report(
                job=key.job,
                attempt=key.attempt,
                uptime_s=run.clock - run.began,
                epoch=run.epoch,
                progress=run.done,
                units=run.units,
            )
        )
