"""Questions about sweeps: submitted whole, listed in one line each, stopped whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from boa.client.documents import document_of
from boa.client.files import FileQuestions
from boa.errors import InputError
from boa.model.job_spec import JobSpec

if TYPE_CHECKING:
    from boa.api.sweeps import SweepDetails, SweepRow


class SweepQuestions(FileQuestions):
    """The part of `Client` that is about them."""

    def submit_sweep(
        self,
        job: JobSpec | Mapping[str, Any],
        parameters: Mapping[str, Any],
        *,
        draws: int | None = None,
        seed: int = 0,
        halving: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> SweepDetails:
        """A job and the parameters that differ, as a job file's `sweep` has them: lists of values,
        or ranges (`{"low": 1e-5, "high": 1e-2, "log": True}`) with `draws`."""
        rest = {"draws": draws, "halving": halving, "name": name}
        body = {
            "job": self.resolved(document_of(job)),
            "parameters": dict(parameters),
            "seed": seed,
        }
        body |= {key: value for key, value in rest.items() if value is not None}
        return cast("SweepDetails", self._wire.ask("POST", "sweeps", body=body)["sweep"])

    def sweeps(self, *, all: bool = False, limit: int = 100) -> list[SweepRow]:
        """Newest first: those that have jobs which have not ended, or `all`."""
        found = self._wire.ask("GET", "sweeps", {"all": all, "limit": limit})
        return cast("list[SweepRow]", found["sweeps"])

    def sweep(self, sweep: str) -> SweepDetails:
        """With every job of it."""
        return cast("SweepDetails", self._wire.ask("GET", _path(sweep))["sweep"])

    def stop_sweep(self, sweep: str) -> SweepDetails:
        """Ask all of its jobs to stop."""
        found = self._wire.ask("POST", f"{_path(sweep)}/stop")
        return cast("SweepDetails", found["sweep"])


def _path(sweep: str) -> str:
    if not sweep.isascii() or not sweep[1:].isdecimal() or sweep[:1] != "s":
        raise InputError("sweep", sweep, "the id of a sweep, such as s3 (boa sweep list)")
    return f"sweeps/{sweep}"
