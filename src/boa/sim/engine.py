"""An engine that acts jobs out in the clock's time, without any process.

The physics is `ActiveJob`'s, as everywhere in simulations. With it the service's own scheduler is
simulated (`sim/scheduled.py`), and the real control loop steps through days in seconds in tests
and load tests, where everything but the training is real. A poll looks only at runs that something
happens to, so that thousands can be acted out.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from boa.clock import Clock
from boa.model.cluster import Allocation, JobId, NodeId
from boa.model.profile import ClassProfile
from boa.model.records import Report
from boa.model.runs import Launch, LogFile, RunEvent, RunKey
from boa.model.trace import TraceJob
from boa.replacing import replace
from boa.sim.jobs import NEVER, ActiveJob
from boa.sim.learners import PerfectLearner
from boa.sim.physics import TableTruth
from boa.units import Seconds

EVERY_EPOCH = 0
"""As `ActiveJob.until`: it wakes at the end of every epoch."""
Cast = Callable[[Launch], ActiveJob]
"""The job that a first run is to act out."""
Position: TypeAlias = tuple[int, float]
"""Progress of a job: the epoch that it is in, and the units done of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointing:
    """How an acted job keeps its work."""

    at_stop: bool = True
    """It saves when it is asked to stop, and reports that it does."""
    every_s: Seconds | None = None
    """Seconds of training from one checkpoint to the next; None: no others."""
    reports: bool = True
    """False: the engine alone notices its checkpoints (`RunEvent.saved`)."""


SAVES = Checkpointing()
"""A stop costs no work; a kill costs what was done since the engine was last polled."""
NO_SAVING = Checkpointing(at_stop=False)
"""After every stop it starts over."""


def acting_out(profiles: Mapping[str, ClassProfile]) -> Cast:
    """Jobs of these classes, each as its profile says when its first job starts."""
    known: dict[str, tuple[TableTruth, PerfectLearner]] = {}

    def cast(launch: Launch) -> ActiveJob:
        name = launch.spec.job_class
        if name not in known:
            truth = TableTruth(profile=profiles[name], scales=defaultdict(lambda: 1.0))
            known[name] = (truth, PerfectLearner(truth))
        asked = TraceJob(name=launch.key.job, arrival_s=0.0, application=name)
        job = ActiveJob(asked, *known[name], serial=0)
        job.until = EVERY_EPOCH
        return job

    return cast


@dataclass(slots=True, eq=False)
class _Acted:
    """One run being acted out."""

    number: int
    """Runs are told of in the order they were started in."""
    key: RunKey
    job: ActiveJob
    began: Seconds
    units_before: float
    """Progress that the job had made when this run began."""
    epoch: int
    """The last one that was told of."""
    saving: Checkpointing
    kept: Position
    """The progress that a stop or a kill would leave it, unless it saves then."""
    saved_at: Seconds | None
    """When its newest checkpoint was taken; `began`: the one that it resumed from."""
    ready: bool = False
    """It has reported that it trains."""
    says_at: Seconds = NEVER
    """When it next reports by itself."""
    saves_at: Seconds = NEVER
    """When it next writes a checkpoint without being asked."""
    alarm: tuple[Seconds, int] | None = None
    """Moment and stamp of its newest entry among the engine's, as long as it is there."""
    told: bool = False
    saved_unseen_at: Seconds | None = None
    """When it wrote a checkpoint that the engine has not told of, and the job never will."""
    ended: RunEvent | None = None
    ended_at: Seconds = NEVER

    def wakes_at(self) -> Seconds:
        if self.ended is not None:
            return NEVER
        return min(self.job.wakes_at(), self.says_at, self.saves_at)

    def stops_at(self) -> Seconds:
        """Return when it next has something to report; that alone wakes nothing."""
        at = self.wakes_at()
        return at if self.ready else min(at, max(self.job.resume_at, self.job.clock))


class SimulatedEngine:
    """`report_s`: how often runs report besides when training begins, and when their epoch or
    their newest checkpoint changes; None: not at all. `wakes_ready`: whether the beginning of
    training is something that `wakes_at` tells.
    `cold_s`: added to a start on a node that no run has been on. `interference`: share of its
    speed that a run across nodes loses beside another such run."""

    def __init__(
        self,
        clock: Clock,
        cast: Cast,
        report: Callable[[Report], None] = lambda report: None,
        report_s: Seconds | None = None,
        *,
        cold_s: Seconds = 0.0,
        interference: float = 0.0,
        wakes_ready: bool = True,
    ) -> None:
        self._clock, self._cast, self.report_s = clock, cast, report_s
        self.breaks: Callable[[Launch], str] = lambda launch: ""
        """Last words of a run that fails as soon as it begins; empty: it does not."""
        self.code = 1
        """Exit code of such a run."""
        self.saving: Callable[[Launch], Checkpointing] = lambda launch: SAVES
        """How a run keeps its work, asked when it begins."""
        self._cold_s, self._interference = cold_s, interference
        self._wakes_ready = wakes_ready
        self.report = report
        self.jobs: dict[JobId, ActiveJob] = {}
        """Jobs as far as they have come, checkpoint and all; those that have ended are gone."""
        self.checkpoints: dict[JobId, Position] = {}
        """Where jobs that have not started yet are to go on from."""
        self._runs: dict[RunKey, _Acted] = {}
        self._wakes: list[tuple[Seconds, int, int, _Acted]] = []
        """A heap; of every run that has not ended, one entry that holds."""
        self._pending: dict[int, _Acted] = {}
        """Runs that a poll has something to tell of, whatever the time."""
        self._polled_at: Seconds = clock.now()
        self._warm: set[NodeId] = set()
        self._seen: set[RunKey] = set()
        self.started: list[RunKey] = []
        """Every start that was not a repetition, in order."""

    def start(self, launch: Launch) -> None:
        if launch.key in self._seen:
            return
        self._seen.add(launch.key)
        self.started.append(launch.key)
        now, job = self._clock.now(), self.jobs.get(launch.key.job)
        if job is None:
            job = self.jobs[launch.key.job] = self._cast(launch)
            job.epoch, job.done = self.checkpoints.pop(launch.key.job, (0, 0.0))
        job.advance(now)  # which only lets time pass: it holds nothing
        nodes = {slots.node: len(slots.gpus) for slots in launch.slots}
        cold_s = 0.0 if self._warm.issuperset(nodes) else self._cold_s
        self._warm.update(nodes)
        job.reallocate(
            Allocation(launch.gpu_type, tuple(sorted(nodes.items()))),
            now,
            now + job.truth.rescale_s + cold_s,
        )
        run = _Acted(
            number=len(self.started),
            key=launch.key,
            job=job,
            began=now,
            units_before=_made(job),
            epoch=job.epoch,
            saving=self.saving(launch),
            kept=(job.epoch, job.done),
            saved_at=now if _made(job) else None,
        )
        if self._wakes_ready and run.saving.reports:
            run.says_at = job.resume_at
        elif self.report_s is not None:
            run.says_at = job.resume_at + self.report_s
        if run.saving.every_s is not None:
            run.saves_at = job.resume_at + run.saving.every_s
        self._runs[launch.key] = self._pending[run.number] = run
        self._set_alarm(run)
        self._interfere(now)
        if said := self.breaks(launch):
            self._end(run, RunEvent(key=launch.key, ended=True, exit_code=self.code, said=said))

    def stop(self, key: RunKey, grace_s: Seconds, then: Launch | None = None) -> None:
        run = self._runs.get(key)
        if run is None or run.ended is not None:
            return
        self._advance(run, self._clock.now())
        if run.ended is None:
            if not run.saving.at_stop:
                run.job.epoch, run.job.done = run.kept
            self._end(run, RunEvent(key=key, ended=True, exit_code=0, stopped=True))

    def kill(self, key: RunKey, exit_code: int | None = -9) -> None:
        """A worker dies: what it did since its newest checkpoint is lost, or since it was last
        polled where it keeps none but at a stop."""
        run = self._runs[key]
        if run.ended is None:
            self._advance(run, self._polled_at)
        if run.ended is None:
            if run.saving.every_s is not None or not run.saving.at_stop:
                run.job.epoch, run.job.done = run.kept
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
                found.append(RunEvent(key=run.key, ended=False))
            if run.saved_unseen_at is not None:
                age_s, run.saved_unseen_at = now - run.saved_unseen_at, None
                found.append(RunEvent(key=run.key, ended=False, saved=True, saved_age_s=age_s))
            if run.ended is not None:
                found.append(replace(run.ended, age_s=max(now - run.ended_at, 0.0)))
            else:
                del self._pending[number]
        return found

    def look(self) -> None:
        """Bring every run up to now, and have those report whose epoch has changed."""
        now = self._clock.now()
        for run in self._running():
            self._advance(run, now)
            self._set_alarm(run)

    @property
    def news(self) -> bool:
        """Whether a poll would tell of anything."""
        return bool(self._pending) or self.wakes_at() <= self._clock.now()

    def knows(self, key: RunKey) -> bool:
        """Whether this run was ever started."""
        return key in self._seen

    def runs(self) -> Collection[RunKey]:
        return list(self._runs)

    def forget(self, key: RunKey) -> None:
        run = self._runs.pop(key, None)
        if run is not None:
            self._pending.pop(run.number, None)
            if run.job.finished:
                self.jobs.pop(key.job, None)

    def logs(self, job: JobId) -> Sequence[LogFile]:
        return ()

    def close(self) -> None:
        return

    def wakes_at(self) -> Seconds:
        """When something next happens by itself."""
        while self._wakes:
            due, _, stamp, run = self._wakes[0]
            if run.ended is None and stamp == run.job.stamp and due == run.wakes_at():
                return due
            self._pop()
        return NEVER

    def _pop(self) -> _Acted:
        due, _, stamp, run = heapq.heappop(self._wakes)
        if run.alarm == (due, stamp):
            run.alarm = None
        return run

    def waits_for(self, job: JobId, epoch: int | None) -> None:
        """Have a job wake at the beginning of an epoch (None: only at its end), not of each."""
        acted = self.jobs.get(job)
        if acted is not None and acted.until != epoch:
            acted.until = epoch
            for run in self._running():
                if run.job is acted:
                    self._set_alarm(run)

    def _running(self) -> Iterable[_Acted]:
        return [run for run in self._runs.values() if run.ended is None]

    def _due(self, now: Seconds) -> list[_Acted]:
        found = []
        while (at := self.wakes_at()) <= now and at < NEVER:
            found.append(self._pop())
        return found

    def _set_alarm(self, run: _Acted) -> None:
        if run.ended is None and (due := run.wakes_at()) < NEVER:
            alarm = (due, run.job.stamp)
            if alarm != run.alarm:
                run.alarm = alarm
                heapq.heappush(self._wakes, (due, run.number, run.job.stamp, run))

    def _end(self, run: _Acted, event: RunEvent, at: Seconds | None = None) -> None:
        now = self._clock.now()
        run.ended, run.ended_at = event, now if at is None else at
        self._pending[run.number] = run
        if not run.job.finished:
            run.job.reallocate(None, now, now)
        self._interfere(now)

    def _advance(self, run: _Acted, now: Seconds) -> None:
        """Up to now, stopping wherever it has something to say."""
        job = run.job
        while run.ended is None and job.clock < now:
            job.advance(min(run.stops_at(), now))
            if job.finished:
                self._end(run, RunEvent(key=run.key, ended=True, exit_code=0), job.clock)
                return
            begins = not run.ready and job.clock >= job.resume_at
            saves = job.clock >= run.saves_at
            run.ready = run.ready or begins
            if saves:
                self._save(run)
            if begins or saves or job.epoch != run.epoch or job.clock >= run.says_at:
                self._say(run)

    def _save(self, run: _Acted) -> None:
        job = run.job
        run.kept, run.saved_at = (job.epoch, job.done), job.clock
        run.saves_at = job.clock + (run.saving.every_s or NEVER)
        if not run.saving.reports:
            run.saved_unseen_at = job.clock
            self._pending[run.number] = run

    def _say(self, run: _Acted) -> None:
        job, run.epoch = run.job, run.job.epoch
        run.says_at = NEVER if self.report_s is None else job.clock + self.report_s
        if not run.saving.reports:
            return
        self.report(
            Report(
                job=run.key.job,
                attempt=run.key.attempt,
                uptime_s=job.clock - run.began,
                epoch=job.epoch,
                progress=job.done,
                units=_made(job) - run.units_before,
                saves=run.saving.at_stop or None,
                saved_s=None if run.saved_at is None else run.saved_at - run.began,
            )
        )

    def _interfere(self, now: Seconds) -> None:
        """Runs across nodes that share a node slow each other down."""
        if not self._interference:
            return
        running = list(self._running())
        slow = crowded(run.job for run in running)
        for run in running:
            speed = 1.0 - self._interference if run.job.id in slow else 1.0
            if speed != run.job.speed:
                self._advance(run, now)
                run.job.speed = speed
                run.job.stamp += 1
                self._set_alarm(run)


def _made(job: ActiveJob) -> float:
    """Units of progress so far."""
    return sum(job.work[: job.epoch]) + job.done


def crowded(jobs: Iterable[ActiveJob]) -> set[JobId]:
    """Jobs across nodes that share a node with another such job."""
    across = [job for job in jobs if job.allocation and len(job.allocation.nodes) > 1]
    beside: dict[NodeId, int] = {}
    for job in across:
        assert job.allocation is not None
        for node, _ in job.allocation.nodes:
            beside[node] = beside.get(node, 0) + 1
    return {
        job.id
        for job in across
        if job.allocation and any(beside[node] > 1 for node, _ in job.allocation.nodes)
    }
