"""What users ask for: each changes the draft, or raises what they did wrong. All pure."""

from collections.abc import Mapping
from dataclasses import replace

from boa.control.snapshot import NoSuchJob
from boa.control.state import Draft
from boa.errors import InputError
from boa.model.cluster import JobId
from boa.model.job import JobRecord, JobSpec
from boa.model.workload import GpuType
from boa.units import GpuName


def submit(draft: Draft, spec: JobSpec, gpu_types: Mapping[GpuName, GpuType]) -> JobRecord:
    unknown = [name for name in spec.gpus.types if name not in gpu_types]
    if unknown:
        expected = f"GPU types that can be rented here: {', '.join(gpu_types)}"
        raise InputError("gpus.types", unknown[0], expected)
    state = draft.state
    serial = state.serials.get(spec.job_class, 0)
    job = JobRecord(
        id=str(state.next_job), spec=spec, serial=serial, submitted_at=draft.now, reason="new"
    )
    state.next_job += 1
    state.serials[spec.job_class] = serial + 1
    draft.put_meta("serials", dict(state.serials))
    draft.put_job(job)
    draft.arrived.append(job)
    draft.count(submitted=1)
    draft.tell("submitted", f"job {job.id} ({job.name}, class {job.job_class})", job=job.id)
    return job


def stop(draft: Draft, job_id: JobId, known: JobRecord | None) -> JobRecord:
    """`known` is what the store has of a job that is not active."""
    job = draft.jobs.get(job_id)
    if job is None:
        if known is None:
            raise NoSuchJob(job_id)
        return known
    if job.stop_requested:
        return job
    draft.tell("stop", f"job {job.id} ({job.name}) is to stop", job=job.id)
    job = replace(job, stop_requested=True, reason="stop requested")
    if job.run is None:
        draft.count(stopped=1)
        job = replace(job, state="stopped", ended_at=draft.now, allocation=None)
    return draft.put_job(job)
