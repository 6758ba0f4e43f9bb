"""The part of a service in memory that changes single jobs."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from boa.errors import BoaError, InputError
from boa.formats.job_changes import read_changes
from boa.model.access import Caller
from boa.model.cluster import JobId
from boa.model.job import JobRecord, JobSpec
from boa.model.job_spec import amended


class FakeTerms:
    """For a `FakeControl`, whose jobs these are."""

    active: dict[JobId, JobRecord]
    put: Callable[[JobRecord], JobRecord]
    submit: Callable[..., "Future[JobRecord]"]
    _write_down: Callable[..., None]

    def pause(self, job: JobId, *, by: Caller | None = None) -> "Future[JobRecord]":
        return self._change(job, by, "pause", lambda one: replace(one, paused=True))

    def resume(self, job: JobId, *, by: Caller | None = None) -> "Future[JobRecord]":
        return self._change(job, by, "resume", lambda one: replace(one, paused=False))

    def change(self, job: JobId, changes: Any, *, by: Caller | None = None) -> "Future[JobRecord]":
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
