"""Evidence that jobs keep their work at a stop: their own reports, and what stops have shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boa.model.job import JobRecord
from boa.model.records import Report
from boa.replacing import replace

LOST_FOR_KEPT = 4
"""Stops that kept the work which outweigh one that lost it."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Evidence on how jobs of a class survive a stop."""

    kept: int = 0
    """Stops after which a job went on from where it was, or from a checkpoint."""
    lost: int = 0
    """Stops after which a job began again from zero."""

    @property
    def believed(self) -> bool | None:
        """Whether stops keep the work of such jobs: None, their own word counts; False, it does
        not, since too many stops have lost work."""
        return None if LOST_FOR_KEPT * self.lost <= self.kept else False

    def heard(self, job: JobRecord, report: Report) -> "Saving":
        """Take in a report; `job` is as it was before."""
        kept = kept_its_work(job, report)
        if kept is None:
            return self
        return replace(self, kept=self.kept + kept, lost=self.lost + (not kept))

    def as_document(self) -> dict[str, Any]:
        """Return the JSON form that the store keeps."""
        return {"kept": self.kept, "lost": self.lost}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Saving":
        """Read back what `as_document` returned."""
        return cls(document["kept"], document["lost"])


def kept_its_work(job: JobRecord, report: Report) -> bool | None:
    """Return whether a job kept its work at BOA's last stop, by the first report after it.

    None where the report shows neither: it is not the first, no stop of BOA's came before it, or
    there was nothing to lose.
    """
    stopped = job.run is not None and (job.run.moved or job.run.resumed)
    return went_on(job, report) if stopped else None


def went_on(job: JobRecord, report: Report) -> bool | None:
    """Return whether a run went on from work of the runs before it, by its first report.

    None where the report shows neither. `job` is as it was before the report.
    """
    run = job.run
    if run is None or run.reported_at is not None or not (job.epoch or job.progress):
        return None
    return report.epoch > 0 or report.progress - report.units > 0


def shown(job: JobRecord, report: Report) -> JobRecord:
    """Return the job with what a report shows of how it keeps its work.

    A run that began from zero shows that what was taken for a checkpoint was none. Where the job
    had said that it saves, or had a file, and was asked to stop, it is not believed again until a
    later stop keeps its work.
    """
    saves = job.saves if report.saves is None else report.saves
    saved_at, starts_over = job.saved_at, job.starts_over
    if went_on(job, report) is False:
        failed = kept_its_work(job, report) is False
        starts_over = starts_over or (failed and bool(job.saves or saved_at is not None))
        saved_at = None
    elif kept_its_work(job, report):
        starts_over = False
    if (saves, saved_at, starts_over) == (job.saves, job.saved_at, job.starts_over):
        return job  # as nearly every report leaves it
    return replace(job, saves=saves, saved_at=saved_at, starts_over=starts_over)
