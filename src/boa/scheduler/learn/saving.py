"""Whether jobs of a class save when they are stopped: what they say, and what stops have shown."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from boa.model.job import JobRecord
from boa.model.records import Report

LOST_FOR_KEPT = 4
"""Stops that kept the work which outweigh one that lost it."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Evidence on how jobs of a class survive a stop."""

    said: bool = False
    """The last job that said whether it saves when it is asked to stop said yes."""
    kept: int = 0
    """Stops after which a job went on from where it was, or from a checkpoint."""
    lost: int = 0
    """Stops after which a job began again from zero."""

    @property
    def believed(self) -> bool:
        """A stop of such a job is expected to keep its work."""
        return self.said and LOST_FOR_KEPT * self.lost <= self.kept

    def heard(self, job: JobRecord, report: Report) -> "Saving":
        """Take in a report; `job` is as it was before."""
        found = self if report.saves is None else replace(self, said=report.saves)
        kept = kept_its_work(job, report)
        if kept is None:
            return found
        return replace(found, kept=found.kept + kept, lost=found.lost + (not kept))

    def as_document(self) -> dict[str, Any]:
        """Return the JSON form that the store keeps."""
        return {"said": self.said, "kept": self.kept, "lost": self.lost}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Saving":
        """Read back what `as_document` returned."""
        return cls(document["said"], document["kept"], document["lost"])


def kept_its_work(job: JobRecord, report: Report) -> bool | None:
    """Return whether a job kept its work at BOA's last stop, by the first report after it.

    None where the report shows neither: it is not the first, no stop of BOA's came before it, or
    there was nothing to lose.
    """
    run = job.run
    if run is None or not run.moved or run.reported_at is not None:
        return None
    if not (job.epoch or job.progress):
        return None
    return report.epoch > 0 or report.progress - report.units > 0
