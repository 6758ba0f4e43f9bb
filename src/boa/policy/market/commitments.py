"""Commitments: dollars that jobs in the system will still cost, and what arrivals come to."""

from collections.abc import Iterable, Mapping

import numpy as np

from boa.model.cluster import JobView
from boa.model.workload import Workload
from boa.policy.market.worth import Worth, fresh_job
from boa.units import Usd, UsdPerHour


def to_go(jobs: Iterable[JobView], worths: Mapping[str, Worth]) -> Usd:
    """Dollars that the rest of these jobs will hold, each on what it is worth; none of unknown
    classes."""
    return sum(_to_go(job, worths[job.job_class]) for job in jobs if job.job_class in worths)


def _to_go(job: JobView, worth: Worth) -> Usd:
    course = worth.course
    epoch = min(job.epoch, len(course.times) - 1)
    left = min(max(job.left, 0.0), 1.0)
    seconds = left * course.times[epoch]
    values = worth.values * (seconds + course.rescale_s) + worth.afters[epoch]
    held = job.allocation
    on = None if held is None else course.index.get((held.gpu, held.width))
    state = int(values.argmin())
    pause = course.rescale_s
    if on is not None:
        stays = worth.values[on] * (seconds[on] + job.resumes_in) + worth.afters[epoch, on]
        if stays <= values[state]:
            state, pause = on, job.resumes_in
    return float((seconds[state] + pause) * course.rates[state] + worth.dollars[epoch, state])


def promised(workload: Workload, worths: Mapping[str, Worth]) -> UsdPerHour:
    """Dollars per hour that jobs hold at the worths' price, if they arrive as is believed."""
    return float(
        np.sum(
            [
                job_class.arrivals_per_hour * fresh_job(worths[job_class.name])[1]
                for job_class in workload.classes
                if job_class.name in worths
            ]
        )
    )
