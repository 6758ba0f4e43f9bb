"""How long the store keeps what it has in detail. What was paid is kept for good."""

from dataclasses import dataclass

from boa.units import DAY_S, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryKept:
    """Charges of any time stay known by class, day and job, whatever is dropped here."""

    events: int = 200_000
    """The newest so many events."""
    samples_days: float = 90.0
    """Samples of the service, and points of jobs that are as old."""
    jobs_days: float | None = None
    """Jobs that ended so long ago, with their points and the rows of what they held; None: all."""

    @property
    def samples_s(self) -> Seconds:
        return self.samples_days * DAY_S
