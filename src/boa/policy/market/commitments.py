"""Commitments: dollars that jobs in the system will still cost, and what arrivals come to."""

import ctypes
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from boa import compiled
from boa.model.cluster import JobView
from boa.model.speedup import Floats
from boa.model.workload import Workload
from boa.policy.market.facts import KeptFacts
from boa.policy.market.standings import Standings, standings_of
from boa.policy.market.worth import Worth, fresh_job
from boa.units import Usd, UsdPerHour

_library = compiled.load(__file__, "_prospects")
if _library is not None:
    _library.boa_to_go.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    _library.boa_to_go.restype = None
_resumes_in = attrgetter("resumes_in")


def to_go(
    jobs: Sequence[JobView], worths: Mapping[str, Worth], facts: KeptFacts | None = None
) -> Usd:
    """Dollars of the rest of these jobs, each on what it is worth; 0 for unknown classes. `facts`:
    those that are kept of jobs by these worths' courses."""
    known = (facts or KeptFacts()).of(jobs, worths)
    standings = standings_of(jobs, worths, known)
    compute = to_go_in_python if _library is None else _to_go
    each = np.zeros(len(jobs))
    resumes = np.fromiter(map(_resumes_in, standings.views), float, len(standings.views))
    each[standings.order] = compute(standings, resumes)
    return sum(each.tolist())  # by job: classes may come and go, and sums are rounded


def _to_go(standings: Standings, resumes: Floats) -> Floats:
    """Dollars of each of the standings' jobs; `resumes`: seconds until they make progress."""
    assert _library is not None
    found = np.empty(len(resumes))
    _library.boa_to_go(standings.address, resumes.ctypes.data, found.ctypes.data)
    return found


def to_go_in_python(standings: Standings, resumes: Floats) -> Floats:
    """Return what `_to_go` returns, where there is no C kernel."""
    found = np.empty(len(resumes))
    for worth, rows in standings.by_class():
        found[rows] = _of_class(standings, resumes[rows], worth, rows)
    return found


def _of_class(standings: Standings, resumes: Floats, worth: Worth, rows: slice) -> Floats:
    course = worth.course
    epochs, on = standings.epochs[rows], standings.held[rows]
    seconds = standings.left[rows, None] * course.times[epochs]
    values = worth.values * (seconds + course.rescale_s) + worth.afters[epochs]
    every = np.arange(len(epochs))
    stays = worth.values[on] * (seconds[every, on] + resumes) + worth.afters[epochs, on]
    state = values.argmin(axis=1)
    stay = (on >= 0) & (stays <= values[every, state])
    state = np.where(stay, on, state)
    pause = np.where(stay, resumes, course.rescale_s)
    paid = (seconds[every, state] + pause) * course.rates[state] + worth.dollars[epochs, state]
    return np.asarray(paid)


class Arriving(NamedTuple):
    """Jobs that arrive as is believed, each on what it is worth."""

    dollars: UsdPerHour
    """That they hold …"""
    variance: float
    """… and its variance in an hour, USD², if they come one by one: Σ λ c²."""
    each: Mapping[str, Usd]
    """Dollars of a job, by class."""


def arriving(workload: Workload, worths: Mapping[str, Worth]) -> Arriving:
    known = [job_class for job_class in workload.classes if job_class.name in worths]
    rates = np.array([job_class.arrivals_per_hour for job_class in known])
    each = np.array([fresh_job(worths[job_class.name])[1] for job_class in known])
    names = (job_class.name for job_class in known)
    return Arriving(
        dollars=float(np.sum(rates * each)),
        variance=float(np.sum(rates * each**2)),
        each=dict(zip(names, each.tolist(), strict=True)),
    )
