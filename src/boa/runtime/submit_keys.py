"""Keys of submissions: what was submitted under one is not submitted again."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from boa.errors import InputError
from boa.formats.job import job_document
from boa.model.job import JobSpec
from boa.scheduler.state import Draft
from boa.units import Seconds

PREFIX = "key/"
KEPT_S: Seconds = 30 * 86_400.0
"""How long a key is remembered."""


class SubmitKeys:
    """For the loop's own thread; what is not stored yet stands in the draft."""

    def __init__(self, meta: Mapping[str, Any]) -> None:
        self._used = {key: value for key, value in meta.items() if key.startswith(PREFIX)}

    def job(self, draft: Draft, owner: str, spec: JobSpec, inside: str = "") -> str | None:
        """The job that was submitted so before; None: none was. Raises if it was another."""
        if not spec.key:
            return None
        name = _name(owner, spec.key)
        found = draft.changes.meta.get(name) or self._used.get(name)
        if found is None or found["at"] < draft.now - KEPT_S:
            return None
        if found["spec"] != _digest(spec):
            job, expected = found["job"], "another key: one is for one job, or the same job again"
            raise InputError(f"{inside}key", spec.key, expected, f"was used for job {job}")
        return str(found["job"])

    def note(self, draft: Draft, owner: str, spec: JobSpec, job: str) -> None:
        """To be stored with the job."""
        if spec.key:
            used = {"job": job, "spec": _digest(spec), "at": draft.now}
            draft.put_meta(_name(owner, spec.key), used)

    def adopt(self, meta: Mapping[str, Any]) -> None:
        """It is stored."""
        self._used |= {key: value for key, value in meta.items() if key.startswith(PREFIX)}


def _name(owner: str, key: str) -> str:
    return PREFIX + hashlib.sha256(f"{owner}\0{key}".encode()).hexdigest()[:32]


def _digest(spec: JobSpec) -> str:
    document = json.dumps(job_document(spec), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(document.encode()).hexdigest()[:32]
