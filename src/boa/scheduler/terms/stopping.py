"""Stopping a job: on request, or for a reason of its own. All pure."""

from dataclasses import replace
from typing import Any

from boa.model.events import StopCode
from boa.model.job import JobRecord
from boa.scheduler.state import Draft
from boa.scheduler.words.of_terms import stopped_by


def stop_job(
    draft: Draft, job: JobRecord, why: StopCode = "requested", detail: str = ""
) -> JobRecord:
    """A run is asked to end, with its grace time; a job without one is over at once."""
    if job.stop_requested or job.ended:
        return job
    asked = why == "requested"
    job = replace(
        job,
        stop_requested=True,
        stop_why=why,
        stop_detail=detail,
        reason="stop requested" if asked else stopped_by(why, detail),
    )
    draft.tell("stop", job=job.id, name=job.name, **({} if asked else told(job)))
    if job.run is None:
        draft.count(stopped=1)
        job = replace(job, state="stopped", ended_at=draft.now, allocation=None)
        draft.tell(
            "stopped",
            job=job.id,
            name=job.name,
            jct_s=draft.now - job.submitted_at,
            on_gpus_s=job.ran_s,
            cost_usd=job.cost_usd,
            exit_code=job.exit_code,
            **told(job),
        )
    return draft.put_job(job)


def told(job: JobRecord) -> dict[str, Any]:
    """Why a job is stopped, as events have it."""
    return {"why": job.stop_why, **({"detail": job.stop_detail} if job.stop_detail else {})}
