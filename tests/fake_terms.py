"""The part of a service in memory that changes single jobs."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from boa.errors import BoaError, InputError
from boa.formats.job_changes import read_changes
from boa.formats.sweep import SweepSpec, drawn
from boa.model.access import Caller
from boa.model.cluster import JobId
from boa.model.job import JobRecord, JobSpec
from boa.model.job_spec import amended
from boa.model.sweep import Sweep


class FakeTerms:
    """For a `FakeControl`, whose jobs these are."""

    active: dict[JobId, JobRecord]
    put: Callable[[JobRecord], JobRecord]
    submit: Callable[..., "Future[JobRecord]"]
    stop: Callable[..., "Future[JobRecord]"]
    sweeps: dict[str, Sweep]
    _write_down: Callable[..., None]

    def pause(
        self, job: JobId, *, force: bool = False, by: Caller | None = None
    ) -> "Future[JobRecord]":
        return self._change(job, by, "pause", lambda one: replace(one, paused=True))

    def resume(self, job: JobId, *, by: Caller | None = None) -> "Future[JobRecord]":
        return self._change(job, by, "resume", lambda one: replace(one, paused=False))

    def change(
        self, job: JobId, changes: Any, *, force: bool = False, by: Caller | None = None
    ) -> "Future[JobRecord]":
        def changed(one: JobRecord) -> JobRecord:
            return replace(one, spec=amended(one.spec, read_changes(one.spec, changes)))

        return self._change(job, by, "job set", changed)

    def resubmit(
        self,
        job: JobId,
        spec: JobSpec,
        *,
        continued: bool = False,
        owner: str = "",
        team: str = "",
        by: Caller | None = None,
    ) -> "Future[JobRecord]":
        return self.submit(spec, owner=owner, team=team, by=by)

    def submit_sweep(
        self, spec: SweepSpec, *, owner: str = "", team: str = "", by: Caller | None = None
    ) -> "Future[Sweep]":
        draws = drawn(spec)
        jobs = []
        for one in draws:
            job = self.submit(one.spec, owner=owner, team=team, by=by).result()
            name = f"s{len(self.sweeps) + 1}"
            jobs.append(self.put(replace(job, sweep=name, drawn=one.values)))
        sweep = Sweep(
            id=f"s{len(self.sweeps) + 1}",
            name=spec.name or spec.job.job_class,
            job_class=spec.job.job_class,
            made_at=jobs[0].submitted_at,
            jobs=tuple(job.id for job in jobs),
            epochs=spec.job.epochs,
            owner=owner,
            team=team,
            halving=spec.halving,
        )
        self.sweeps[sweep.id] = sweep
        future: Future[Sweep] = Future()
        future.set_result(sweep)
        return future

    def stop_sweep(self, name: str, *, by: Caller | None = None) -> "Future[Sweep]":
        sweep = self.sweeps[name]
        for job in sweep.jobs:
            self.stop(job, by=by)
        outcomes = dict.fromkeys(sweep.jobs, "stopped")
        sweep = self.sweeps[name] = replace(sweep, outcomes=outcomes, ended_at=1.0)
        future: Future[Sweep] = Future()
        future.set_result(sweep)
        return future

    def _change(
        self, job: JobId, by: Caller | None, what: str, do: Callable[[JobRecord], JobRecord]
    ) -> "Future[JobRecord]":
        future: Future[JobRecord] = Future()
        try:
            if job not in self.active:
                raise InputError("job", job, "one that can be changed", "it has ended")
            self._write_down(by, what, job)
            future.set_result(self.put(do(self.active[job])))
        except BoaError as problem:
            future.set_exception(problem)
        return future
