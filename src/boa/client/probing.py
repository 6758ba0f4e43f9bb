"""A probe: a job of a class that nobody knows, run for a short while to be estimated."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from boa.client.documents import document_of
from boa.model.job_spec import ENDED, ITS_OWN, JobSpec

if TYPE_CHECKING:
    from boa.api.answers import Health, JobDetails
    from boa.api.estimates import JobEstimate

PAUSE_S = 0.5


class Asked(Protocol):
    """The part of a `Client` that a probe needs."""

    def health(self) -> Health: ...
    def estimate(self, spec: JobSpec | Mapping[str, Any]) -> JobEstimate: ...
    def submit(self, spec: JobSpec | Mapping[str, Any]) -> JobDetails: ...
    def job(self, job: str) -> JobDetails: ...
    def stop(self, job: str) -> JobDetails: ...


def probed(
    client: Asked, spec: JobSpec | Mapping[str, Any], pause_s: float = PAUSE_S
) -> JobEstimate:
    """See `Client.probe`. Whatever happens, the probe is stopped."""
    found = client.estimate(spec)
    offer = found["probe"]
    if offer is None:
        return found
    job = client.submit(_narrow(document_of(spec)))["id"]
    try:
        while True:
            state, found = client.job(job), client.estimate(spec)
            if found["basis"] is not None or state["state"] in ENDED:
                return found
            began = state["started_at"]
            if began is not None and client.health()["now"] - began >= offer["seconds"]:
                return found
            time.sleep(pause_s)
    finally:
        client.stop(job)


def _narrow(job: dict[str, Any]) -> dict[str, Any]:
    """The job on its fewest GPUs, started once, and now: its key is for the job itself."""
    gpus = job.get("gpus") or {}
    least = gpus.get("min", 1)
    rest = {name: value for name, value in job.items() if name not in ITS_OWN}
    name = f"probe of {job['class']}"
    return {**rest, "gpus": {**gpus, "min": least, "max": least}, "retries": 0, "name": name}
