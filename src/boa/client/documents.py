"""Documents and addresses of jobs, as requests have them."""

from collections.abc import Mapping
from typing import Any

from boa.errors import InputError
from boa.model.job_spec import JobSpec


def document_of(spec: JobSpec | Mapping[str, Any]) -> dict[str, Any]:
    from boa.formats.job import job_document  # which most requests do without

    return job_document(spec) if isinstance(spec, JobSpec) else dict(spec)


def job_path(job: str) -> str:
    if not job.isascii() or not job.isdecimal():
        raise InputError("job", job, "the id of a job (boa ps --all lists them)")
    return f"jobs/{job}"
