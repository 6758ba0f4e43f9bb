"""Questions about a job's terms: priced before, changed while it is there, submitted again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from boa.client.documents import job_path, unsent
from boa.client.wire import Wire
from boa.model.job_spec import JobSpec

if TYPE_CHECKING:
    from boa.api.answers import JobDetails
    from boa.api.terms import JobTerms


class TermQuestions:
    """The part of `Client` that is about them."""

    _wire: Wire

    def terms(self, spec: JobSpec | Mapping[str, Any]) -> JobTerms:
        """Time and cost of a job, and what its limits and its deadline do. Submits nothing."""
        return cast("JobTerms", self._wire.ask("POST", "jobs/terms", body=unsent(spec)))

    def pause(self, job: str, *, force: bool = False) -> JobDetails:
        """Pause it until it is resumed; `force`: also where work would be lost."""
        return self._changed("POST", f"{job_path(job)}/pause", parameters=_forced(force))

    def resume(self, job: str) -> JobDetails:
        return self._changed("POST", f"{job_path(job)}/resume")

    def change(self, job: str, *, force: bool = False, **fields: Any) -> JobDetails:
        """Other limits or weights, as a job file has them: `weight=3`, `gpus={"max": 4}`,
        `max_cost=None`, `tags={"project": "cats"}`. A deadline is told from now on.
        `force`: make it a background job although a stop would lose its work."""
        return self._changed("PATCH", job_path(job), fields, parameters=_forced(force))

    def resubmit(
        self,
        job: str,
        changes: Mapping[str, Any] | None = None,
        *,
        from_checkpoint: bool = False,
    ) -> JobDetails:
        """Submit it once more, with these fields changed; or to go on where it ended."""
        body = {"changes": dict(changes or {}), "continue": from_checkpoint}
        return self._changed("POST", f"{job_path(job)}/resubmit", body)

    def _changed(
        self,
        method: str,
        path: str,
        body: Any = None,
        parameters: Mapping[str, str] | None = None,
    ) -> JobDetails:
        return cast("JobDetails", self._wire.ask(method, path, parameters, body)["job"])


def _forced(force: bool) -> dict[str, str] | None:
    return {"force": "true"} if force else None
