"""Requests about single jobs: submit again, pause, resume, change; each written down."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from boa.errors import InputError
from boa.formats.job_changes import read_changes
from boa.model.access import Caller
from boa.model.cluster import JobId
from boa.model.job import JobRecord, JobSpec
from boa.model.job_spec import AMENDABLE, GpuLimits
from boa.model.service import ServiceConfig
from boa.model.sweep import Sweep
from boa.runtime.audit import audited
from boa.runtime.places import Anywhere, Places
from boa.runtime.submit_keys import SubmitKeys
from boa.runtime.vault import Vault
from boa.scheduler.refusals import NoSuchJob
from boa.scheduler.scheduler import Scheduler
from boa.scheduler.state import Draft
from boa.scheduler.terms import changing
from boa.store.base import Store

_T = TypeVar("_T")


class JobRequests(ABC):
    """The part of `snapshot.Control` that changes jobs."""

    config: ServiceConfig
    scheduler: Scheduler
    store: Store
    vault: Vault
    keys: SubmitKeys
    sweeps: Mapping[str, Sweep]
    places: Places = Anywhere()
    """Knows what jobs name, when they are submitted."""

    @abstractmethod
    def _ask(self, apply: Callable[[Draft], _T]) -> "Future[_T]":
        """Apply it to the next draft; the future ends when that is stored."""

    @abstractmethod
    def submitting(
        self, spec: JobSpec, *, owner: str, team: str, by: Caller | None, what: str
    ) -> Callable[[Draft], JobRecord]:
        """A command that submits a job."""

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
        if continued and not spec.checkpoint_dir:
            spec = replace(spec, checkpoint_dir=str(self.config.data_dir / "checkpoints" / job))
        made = self.submitting(spec, owner=owner, team=team, by=by, what="resubmit")

        def apply(draft: Draft) -> JobRecord:
            writes = _writer(draft, job, spec.checkpoint_dir) if continued else None
            if writes is not None:
                expected = "one that has ended: two jobs cannot write the same checkpoints"
                raise InputError("continue", job, expected, f"job {writes} is active")
            return made(draft)

        return self._ask(apply)

    def pause(
        self, job: JobId, *, force: bool = False, by: Caller | None = None
    ) -> "Future[JobRecord]":
        def apply(draft: Draft) -> JobRecord:
            found = changing.active(draft, job, self.stored(draft, job), "paused")
            cost = self.scheduler.decider.stop_cost(found, draft.now)
            return changing.pause(draft, found, cost, force=force)

        return self._ask(audited(by, "pause", apply, subject=job, look=looker(job, "paused")))

    def resume(self, job: JobId, *, by: Caller | None = None) -> "Future[JobRecord]":
        def apply(draft: Draft) -> JobRecord:
            known = self.stored(draft, job)
            return changing.resume(draft, changing.active(draft, job, known, "resumed"))

        return self._ask(audited(by, "resume", apply, subject=job, look=looker(job, "paused")))

    def change(
        self, job: JobId, changes: Any, *, force: bool = False, by: Caller | None = None
    ) -> "Future[JobRecord]":
        def apply(draft: Draft) -> JobRecord:
            found = changing.active(draft, job, self.stored(draft, job), "changed")
            return changing.amend(
                draft,
                found,
                read_changes(found.spec, changes),
                self.scheduler.decider.gpu_types,
                self.config.max_nodes,
                self.scheduler.decider.stop_cost(found, draft.now),
                force=force,
            )

        def look(draft: Draft) -> dict[str, object] | None:
            found = draft.jobs.get(job)
            if found is None or not isinstance(changes, dict):
                return None
            return {n: _plain(getattr(found.spec, n)) for n in AMENDABLE if n in changes}

        return self._ask(audited(by, "job set", apply, subject=job, look=look))

    def stored(self, draft: Draft, job: JobId) -> JobRecord | None:
        """Record of a job that is not active, from the store."""
        return None if job in draft.jobs else self.store.job(job)

    def found(self, draft: Draft, job: JobId) -> JobRecord:
        found = draft.changes.jobs.get(job) or draft.jobs.get(job) or self.store.job(job)
        if found is None:
            raise NoSuchJob(job)
        return found

    def before(self, draft: Draft, owner: str, specs: Sequence[JobSpec]) -> dict[int, JobRecord]:
        """Jobs that were submitted before under the same key, by their place among these."""
        found, seen = dict[int, JobRecord](), set[str]()
        for number, spec in enumerate(specs):
            if spec.key and spec.key in seen:
                raise InputError(f"jobs[{number}].key", spec.key, "each key once in a request")
            seen.add(spec.key)
            if (job := self.keys.job(draft, owner, spec, f"jobs[{number}].")) is not None:
                found[number] = self.found(draft, job)
        return found

    def outcome(self, name: str) -> str | None:
        """How a job or a sweep has ended that is not active; None: there never was one."""
        if name.startswith("s"):
            sweep = self.sweeps.get(name)
            return None if sweep is None else sweep.outcome
        found = self.store.job(name)
        return None if found is None else found.state


def _writer(draft: Draft, job: JobId, folder: str) -> JobId | None:
    """An active job that writes this one's checkpoints: itself, or one that goes on from them."""
    if job in draft.jobs:
        return job
    return next(
        (other.id for other in draft.jobs.values() if other.spec.checkpoint_dir == folder), None
    )


def looker(job: JobId, what: str) -> Callable[[Draft], Mapping[str, Any] | None]:
    """State of a job and this field of it, before and after a command."""

    def look(draft: Draft) -> Mapping[str, Any] | None:
        found = draft.changes.jobs.get(job) or draft.jobs.get(job)
        return None if found is None else {"state": found.state, what: getattr(found, what)}

    return look


def _plain(value: Any) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, GpuLimits):
        return f"{value.min} to {value.max} of {', '.join(value.types) or 'any type'}"
    return str(value)[:200]
