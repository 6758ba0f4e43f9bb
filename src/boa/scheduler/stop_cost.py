"""The cost of stopping a run: one quantity, in seconds and dollars, for every decision and text.

A stop costs the time of the rescaling and the work since the last checkpoint. A job that cannot
checkpoint loses all the work of its run, so BOA never stops it by its own decision.
"""

from typing import NamedTuple

from boa.model.job import JobRecord, Run
from boa.model.workload import GpuType
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour


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
    job: JobRecord, now: Seconds, *, rescale_s: Seconds, saves: bool, gpu: GpuType | None = None
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


def can_checkpoint(job: JobRecord, saves: bool) -> bool:
    """Return whether a stop keeps a job's work: it saves on request, or has written a checkpoint.

    What is believed of its class counts until the job has told of itself.
    """
    return saves_on_request(job, saves) or job.saved_at is not None


def saves_on_request(job: JobRecord, saves: bool) -> bool:
    """Return whether a job saves when it is asked to stop."""
    if job.saves is not None:
        return job.saves
    return saves and (job.run is None or job.run.reported_at is None)


def may_stop(job: JobRecord, saves: bool) -> bool:
    """Return whether BOA may stop a job's run by its own decision.

    Jobs in the background have agreed to be stopped at any time, as `preemptible` ones have.
    """
    return job.spec.preemptible or job.background or can_checkpoint(job, saves)


def lost_s(job: JobRecord, run: Run, now: Seconds, saves: bool) -> Seconds:
    """Return the seconds of a run that no checkpoint will hold if it is stopped now."""
    if saves_on_request(job, saves) or run.done:
        return 0.0
    since = run.requested_at
    if job.saved_at is not None:
        since = max(since, job.saved_at)
    return max(now - since, 0.0)
