"""Commitments: dollars that jobs in the system will still cost, and what arrivals come to."""

from collections.abc import Mapping, Sequence

import numpy as np

from boa.model.cluster import JobView
from boa.model.speedup import Floats
from boa.model.workload import Workload
from boa.policy.market.worth import Worth, fresh_job
from boa.units import Usd, UsdPerHour


def to_go(jobs: Sequence[JobView], worths: Mapping[str, Worth]) -> Usd:
    """Dollars of the rest of these jobs, each on what it is worth; 0 for unknown classes."""
    by_class: dict[str, list[int]] = {}
    for n, job in enumerate(jobs):
        by_class.setdefault(job.job_class, []).append(n)
    each = np.zeros(len(jobs))
    for name, places in by_class.items():
        if name in worths:
            each[places] = _to_go([jobs[n] for n in places], worths[name])
    return sum(each.tolist())  # by job: classes may come and go, and sums are rounded


def _to_go(jobs: Sequence[JobView], worth: Worth) -> Floats:
    course = worth.course
    last = len(course.times) - 1
    epochs = np.array([min(job.epoch, last) for job in jobs], dtype=np.int64)
    left = np.array([min(max(job.left, 0.0), 1.0) for job in jobs])
    on = np.array([course.column(job.allocation) for job in jobs], dtype=np.int64)
    resumes = np.array([job.resumes_in for job in jobs])
    seconds = left[:, None] * course.times[epochs]
    values = worth.values * (seconds + course.rescale_s) + worth.afters[epochs]
    every = np.arange(len(epochs))
    stays = worth.values[on] * (seconds[every, on] + resumes) + worth.afters[epochs, on]
    state = values.argmin(axis=1)
    stay = (on >= 0) & (stays <= values[every, state])
    state = np.where(stay, on, state)
    pause = np.where(stay, resumes, course.rescale_s)
    paid = (seconds[every, state] + pause) * course.rates[state] + worth.dollars[epochs, state]
    return np.asarray(paid)


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
