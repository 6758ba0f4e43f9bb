"""Documents and addresses of jobs, as requests have them."""

from collections.abc import Mapping
from typing import Any

from boa.errors import InputError
from boa.model.job_spec import JobSpec


def document_of(spec: JobSpec | Mapping[str, Any]) -> dict[str, Any]:
    from boa.formats.job import job_document  # which most requests do without

    return job_document(spec) if isinstance(spec, JobSpec) else dict(spec)


def unsent(spec: JobSpec | Mapping[str, Any]) -> dict[str, Any]:
    """A job that is asked about and not submitted: nothing is packed or read for it."""
    left_out = ("package", "env_file")
    return {key: value for key, value in document_of(spec).items() if key not in left_out}


def job_path(job: str) -> str:
    if not job.isascii() or not job.isdecimal():
        raise InputError("job", job, "the id of a job (boa ps --all lists them)")
    return f"jobs/{job}"
