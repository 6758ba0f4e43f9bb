"""An engine that acts out class profiles in the clock's time, without any process.

For tests that step the real control loop through days in seconds, and for load tests: everything
but the training is real.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from boa.clock import Clock
from boa.engines.base import Launch, LogFile, RunEvent, RunKey
from boa.model.cluster import JobId
from boa.model.live import Report
from boa.model.profile import ClassProfile
from boa.units import Seconds

NEVER: Seconds = float("inf")
CLOSE = 1e-9
"""Relative: work that is this near to done is done."""


@dataclass(slots=True)
class _Acted:
    """One run being acted out."""

    launch: Launch
    profile: ClassProfile
    began: Seconds
    clock: Seconds
    """Progress is known up to here; later than now while the job is still starting."""
    epoch: int
    done: float
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
        """The end of the current epoch."""
        if self.ended is not None or self.rate <= 0:
            return NEVER
        return self.clock + (self.profile.work[self.epoch] - self.done) / self.rate


class ScriptedEngine:
    def __init__(
        self,
        clock: Clock,
        profiles: Mapping[str, ClassProfile],
        report: Callable[[Report], None] = lambda report: None,
    ) -> None:
        self._clock, self._profiles = clock, profiles
        self.report = report
        self._runs: dict[RunKey, _Acted] = {}
        self._checkpoints: dict[JobId, tuple[int, float]] = {}
        self.started: list[RunKey] = []
        """Every start that was not a repetition, in order."""

    def start(self, launch: Launch) -> None:
        if launch.key in self._runs or launch.key in self.started:
            return
        self.started.append(launch.key)
        profile, now = self._profiles[launch.spec.job_class], self._clock.now()
        epoch, done = self._checkpoints.get(launch.key.job, (0, 0.0))
        self._runs[launch.key] = _Acted(launch, profile, now, now + profile.rescale_s, epoch, done)

    def stop(self, key: RunKey, grace_s: Seconds) -> None:
        run = self._runs.get(key)
        if run is None or run.ended is not None:
            return
        self._advance(run)
        if run.ended is None:
            run.ended = RunEvent(key=key, ended=True, exit_code=0, stopped=True)
            run.ended_at = self._clock.now()

    def kill(self, key: RunKey, exit_code: int | None = -9) -> None:
        """A worker dies: what it did since its last epoch boundary is lost."""
        run = self._runs[key]
        if run.ended is None:
            run.ended = RunEvent(key=key, ended=True, exit_code=exit_code)
            run.ended_at = self._clock.now()

    def poll(self) -> Sequence[RunEvent]:
        """Ages are in the clock's seconds."""
        found = []
        for key, run in self._runs.items():
            if not run.told:
                run.told = True
                found.append(RunEvent(key=key, ended=False))
            if run.ended is None:
                self._advance(run)
            if run.ended is not None:
                age_s = max(self._clock.now() - run.ended_at, 0.0)
                found.append(replace(run.ended, age_s=age_s))
        return found

    def runs(self) -> Collection[RunKey]:
        return list(self._runs)

    def forget(self, key: RunKey) -> None:
        self._runs.pop(key, None)

    def logs(self, job: JobId) -> Sequence[LogFile]:
        return ()

    def close(self) -> None:
        return

    def wakes_at(self) -> Seconds:
        """When something next happens by itself."""
        return min((run.wakes_at() for run in self._runs.values()), default=NEVER)

    def _advance(self, run: _Acted) -> None:
        now = self._clock.now()
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
                run.ended = RunEvent(key=run.launch.key, ended=True, exit_code=0)
                run.ended_at = run.clock
            elif full:
                self._say(run)
        self._checkpoints[run.launch.key.job] = (run.epoch, run.done)

    def _say(self, run: _Acted) -> None:
        key = run.launch.key
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
