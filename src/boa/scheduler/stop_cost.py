"""The cost of stopping a run: one quantity, in seconds and dollars, for every decision and text.

A stop costs the time of the rescaling and the work since the last checkpoint. A job that cannot
checkpoint loses all the work of its run, so BOA never stops it by its own decision.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from boa.model.exit_codes import KILLED, KILLED_AFTER_GRACE
from boa.model.job import JobRecord, Run
from boa.model.workload import GpuType
from boa.scheduler.money.months import month_name
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

Saves: TypeAlias = Callable[[JobRecord], bool | None]
"""Whether stops are believed to keep the work of a job's class (`Believed.saves`)."""

LEAST_LOST_S: Seconds = 10.0
"""Work of less than this is lost without asking the job's owner."""


def unknown(job: JobRecord) -> None:
    """Believe nothing of a job's class: its own word counts."""


class StopCost(NamedTuple):
    """Loss of a job when its run is stopped now."""

    rescale_s: Seconds
    """Time from the stop to the next step of training, on GPUs that are ready."""
    lost_s: Seconds
    """Time that the run has put into work which no checkpoint holds."""
    keeps: bool
    """The job can checkpoint: a stop loses no more than `lost_s`, and the rest goes on."""
    per_hour: UsdPerHour
    """Price of the GPUs that the run holds."""

    @property
    def seconds(self) -> Seconds:
        """Seconds of the job that the stop costs in all."""
        return self.rescale_s + self.lost_s

    @property
    def usd(self) -> Usd:
        """Dollars that the stop costs in all."""
        return self.seconds * self.per_hour / SECONDS_PER_HOUR

    @property
    def lost_usd(self) -> Usd:
        """Dollars paid for the work that is lost."""
        return self.lost_s * self.per_hour / SECONDS_PER_HOUR


def stop_cost(
    job: JobRecord,
    now: Seconds,
    *,
    rescale_s: Seconds,
    saves: bool | None,
    gpu: GpuType | None = None,
) -> StopCost:
    """Return what stopping a job's run costs now. A job without a run loses nothing.

    `rescale_s` and `saves` are what is believed of the job's class; `gpu` is the type that the run
    is on, for its price.
    """
    run = job.run
    if run is None:
        return StopCost(0.0, 0.0, True, 0.0)
    per_hour = 0.0 if gpu is None else gpu.price * run.allocation.width
    return StopCost(rescale_s, lost_s(job, run, now, saves), can_checkpoint(job, saves), per_hour)


def can_checkpoint(job: JobRecord, saves: bool | None) -> bool:
    """Return whether a stop keeps a job's work: it saves on request, or has written a checkpoint.

    `saves` is what is believed of its class (`Believed`). A job that began again from zero after a
    stop cannot, whatever files it writes.
    """
    if job.starts_over or saves is False:
        return False
    return saves_on_request(job, saves) or job.saved_at is not None


def saves_on_request(job: JobRecord, saves: bool | None) -> bool:
    """Return whether a job saves when it is asked to stop."""
    if job.starts_over or saves is False:
        return False
    return bool(saves if job.saves is None else job.saves)


def may_stop(job: JobRecord, saves: bool | None) -> bool:
    """Return whether BOA may stop a job's run by its own decision."""
    return agreed(job) or can_checkpoint(job, saves)


def agreed(job: JobRecord) -> bool:
    """Return whether a job's owner has agreed that a stop may lose its work.

    Jobs in the background have, as `preemptible` ones have.
    """
    return job.spec.preemptible or job.background


def needs_consent(job: JobRecord, cost: StopCost) -> bool:
    """Return whether a pause would lose work that the job's owner has not agreed to lose."""
    return cost.lost_s >= LEAST_LOST_S and not agreed(job)


def lost_s(job: JobRecord, run: Run | None, now: Seconds, saves: bool | None) -> Seconds:
    """Return the seconds of a run that no checkpoint will hold if it is stopped now."""
    if run is None or saves_on_request(job, saves) or run.done:
        return 0.0
    return _unsaved_s(job, run, now)


def lost_by_end_s(
    job: JobRecord, run: Run, stopped_at: Seconds, saves: bool | None, exit_code: int | None
) -> Seconds:
    """Return the seconds of a run that no checkpoint holds, now that its stop is over.

    A job that was killed at the end of its grace has not saved, whatever it said. Any other signal
    that ended it shows the same, unless the job itself said that it saves: its launcher may not
    have waited for it. `job` knows of the checkpoint that was found at the end.
    """
    codes = KILLED_AFTER_GRACE if job.saves else KILLED
    if exit_code in codes and not run.done:
        return _unsaved_s(job, run, stopped_at)
    return lost_s(job, run, stopped_at, saves)


def with_stop(
    job: JobRecord, at: Seconds, *, times: int = 0, lost_s: Seconds = 0.0, lost_usd: Usd = 0.0
) -> JobRecord:
    """Return the job with what a stop by BOA's decision has cost, in the month of that moment."""
    month = month_name(at)
    before = job.stops.get(month, (0, 0.0, 0.0))
    after = (before[0] + times, before[1] + lost_s, before[2] + lost_usd)
    return replace(job, stops={**job.stops, month: after})


def _unsaved_s(job: JobRecord, run: Run, now: Seconds) -> Seconds:
    """Return the seconds of a run since its newest checkpoint."""
    since = run.requested_at
    if job.saved_at is not None and not job.starts_over:
        since = max(since, job.saved_at)
    return max(now - since, 0.0)
