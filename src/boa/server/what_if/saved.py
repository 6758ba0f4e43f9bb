"""Savings of a month: its jobs simulated with fixed widths, and with BOA at several budgets.

A figure of a whole month needs the speeds of all its jobs at widths they never had, which only a
simulation has. So both sides are simulated, on the same jobs with the same speeds, and what
really was spent is nowhere compared with what was not.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from boa.amounts import dollars, duration
from boa.api.reports import Saved, SavedResult, SavedRun
from boa.api.what_if import LeftOut, Simulation
from boa.errors import InputError
from boa.model.profile import ClassProfile
from boa.model.trace import Trace, TraceJob
from boa.server.context import Service, looked_up
from boa.server.what_if.own_trace import LEAST_JOBS, MOST_OWN, Own, own_of, own_world
from boa.server.what_if.runner import SimulationQuestion, Simulations
from boa.sim.sweep import SweepGrid
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, Usd, UsdPerHour

BEFORE, BOA = "reservation", "boa"
BUDGETS = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5)
"""Budgets that BOA is simulated at, as parts of the one in force, to find the same JCT or bill."""
IN_FORCE = BUDGETS.index(1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Widths that people used before BOA."""

    width: int | None = None
    """GPUs of every job; None: the fewest that it can run on."""
    gpu: GpuName | None = None
    """GPU type; None: the first of the service's that the class runs on."""

    def name(self, month: str) -> str:
        """Name that the simulation is found by again."""
        return f"saved {month} {self.width or 'least'} {self.gpu or 'any'}"


def jobs_of_month(
    service: Service, simulations: Simulations, first: Seconds, end: Seconds, before: Before
) -> Own:
    """Jobs that ended in it, as wide as they were before. Blocks on store and control loop."""
    rented = simulations.gpu_types
    if before.gpu is not None and before.gpu not in rented:
        raise InputError("gpu_type", before.gpu, f"one of {', '.join(rented)}")
    types = {gpu: rented[gpu] for gpu in (before.gpu, *rented) if gpu is not None}
    stored = service.store.jobs(ended=True, limit=MOST_OWN)
    ended = [job for job in stored if job.ended_at is not None and first <= job.ended_at < end]
    own = own_of(ended, looked_up(service.control.profiles), types)
    jobs = tuple(_as_before(job, own.profiles[job.application], before) for job in own.trace.jobs)
    return replace(own, trace=Trace(jobs))


def _as_before(job: TraceJob, profile: ClassProfile, before: Before) -> TraceJob:
    """On the widest of the widths that were measured and are no more than what was asked for."""
    if before.width is None:
        return job
    table = profile.rates.get(before.gpu) if before.gpu is not None else None
    table = next(iter(profile.rates.values())) if table is None else table
    known = np.flatnonzero(table.max(axis=(0, 1)) > 0)
    return replace(job, gpus=int(max((k for k in known if k <= before.width), default=known[0])))


def too_thin(own: Own) -> str:
    """Why nothing can be said of these jobs; empty: it can."""
    if own.enough:
        return ""
    number = len(own.trace.jobs)
    known = "1 job" if number == 1 else f"{number} jobs"
    return (
        f"{known} of classes with measured speeds ended in the month ({own.left_out} others did): "
        f"it takes {LEAST_JOBS} to say anything, which did not come all at once"
    )


def question_of(
    own: Own, name: str, simulations: Simulations, budget: UsdPerHour
) -> SimulationQuestion:
    world = own_world(own, list(own.gpu_types))
    budgets = [budget * part for part in BUDGETS]
    return SimulationQuestion(
        trace=name,
        world=world,
        policies=(BOA, BEFORE),
        grid=SweepGrid(budgets=budgets),
        asked=simulations.asked(0, simulations.billing, world.gpu_types),
        points=len(budgets) + 1,
    )


def document(month: str, own: Own, found: Simulation | None, budget: UsdPerHour) -> Saved:
    """`found`: the newest simulation of the month, if there is one."""
    state = "none" if found is None else found["state"]
    saved: Saved = {
        "month": month,
        "state": state,
        "jobs": len(own.trace.jobs),
        "left_out": own.left_out,
        "widths": _widths(own),
        "assumes": assumptions(own),
        "too_thin": too_thin(own),
        "error": "" if found is None else found["error"],
    }
    if found is not None and "result" in found:
        result = result_of(found["result"]["points"], budget)
        if result is None:
            saved["state"] = "failed"
            saved["error"] = _not_simulated(own, found["result"]["left_out"], budget)
        else:
            saved["result"] = result
    return saved


def _not_simulated(own: Own, left_out: Sequence[LeftOut], budget: UsdPerHour) -> str:
    """Which side could not be simulated, why, and what would help."""
    why = {
        "fixed widths" if one["policy"] == BEFORE else "BOA at the budget in force": one["why"]
        for one in left_out
        if one["policy"] == BEFORE or math.isclose(float(one["value"] or 0.0), budget)
    }
    said = [f"{who} could not be simulated: {reason.rstrip('.')}." for who, reason in why.items()]
    said.append(
        f"These jobs came within {duration(own.trace.span_s)}, and the simulation has as many come "
        "all the time: where that was a burst, ask again once the month has jobs of more hours."
    )
    return " ".join(said)


def _widths(own: Own) -> dict[str, str]:
    first = next(iter(own.gpu_types), "")
    found: dict[str, str] = {}
    for job in own.trace.jobs:
        rates = own.profiles[job.application].rates
        gpu = first if first in rates else next(iter(rates))
        found[job.application] = f"{job.gpus} × {gpu}"
    return found


def assumptions(own: Own) -> list[str]:
    return [
        "Both sides are simulated: the jobs that ended in the month, as they came, with the speeds "
        "and the work that the service has learned of their classes and knows from the start.",
        "Before, every job has its fixed width from its start to its end, on nodes that are rented "
        "when it comes and given back when nobody needs them; people who kept a cluster of their "
        "own paid more for idle GPUs.",
        "Prices are today's; a job that failed or was stopped counts for what it had done.",
        f"{own.left_out} jobs are left out: too little was measured of them.",
    ]


def result_of(points: Sequence[Mapping[str, Any]], budget: UsdPerHour) -> SavedResult | None:
    """From the simulated points; None: one that it takes is not there."""
    before = next((_run(point) for point in points if point["policy"] == BEFORE), None)
    boa = {point["value"]: _run(point) for point in points if point["policy"] == BOA}
    now = next((run for value, run in boa.items() if math.isclose(value, budget)), None)
    if before is None or now is None:
        return None
    runs = [(run["cost_usd"], run["average_jct_s"]) for run in boa.values()]
    jct = at_most(runs, before["cost_usd"])
    cost = at_most([(jct_s, usd) for usd, jct_s in runs], before["average_jct_s"])
    found: SavedResult = {
        "before": before,
        "boa": now,
        "jct_at_same_cost_s": jct,
        "cost_at_same_jct_usd": cost,
        "saved_usd": None if cost is None else before["cost_usd"] - cost,
        "sooner_s": None if jct is None else before["average_jct_s"] - jct,
        "words": [],
    }
    return {**found, "words": _words(found)}


def _run(point: Mapping[str, Any]) -> SavedRun:
    hours = (point["span_s"] or point["makespan_s"]) / SECONDS_PER_HOUR
    return {
        "average_jct_s": point["average_jct_s"],
        "cost_usd": point["bill_per_hour"] * hours,
    }


def at_most(points: Sequence[tuple[float, float]], at: float) -> float | None:
    """As `between`; where all points have a smaller first figure, the least second one: with a
    larger first it would be no more."""
    if all(first <= at for first, _ in points):
        return min(second for _, second in points)
    return between(points, at)


def between(points: Sequence[tuple[float, float]], at: float) -> float | None:
    """The second figure where the first is `at`: straight between the logarithms of neighbours;
    None outside of them."""
    ordered = sorted(points)
    for (left, low), (right, high) in pairwise(ordered):
        if left <= at <= right:
            if left == right or left <= 0 or low <= 0 or high <= 0:
                return high
            share = math.log(at / left) / math.log(right / left)
            return math.exp((1 - share) * math.log(low) + share * math.log(high))
    return None


def _words(of: SavedResult) -> list[str]:
    before, boa = of["before"], of["boa"]
    said = [
        f"With fixed widths these jobs would have taken {duration(before['average_jct_s'])} on "
        f"average, for {dollars(before['cost_usd'])} (simulated).",
        f"BOA at the budget in force: {duration(boa['average_jct_s'])}, for "
        f"{dollars(boa['cost_usd'])} (simulated).",
    ]
    cost, jct = of["cost_at_same_jct_usd"], of["jct_at_same_cost_s"]
    said.append(_dollars(before["cost_usd"], cost))
    if jct is None:
        said.append("BOA costs more at every budget that was simulated.")
    else:
        said.append(f"For the same bill BOA takes {duration(jct)} on average, at most.")
    return said


def _dollars(before: Usd, cost: Usd | None) -> str:
    if cost is None:
        return "BOA is slower at every budget that was simulated."
    saved = before - cost
    way = f"{dollars(abs(saved))} {'less' if saved >= 0 else 'more'}"
    return f"For the same average time BOA costs {dollars(cost)} at most: {way}."
