"""The lab of `bench/month.py`: its jobs, its calendar, and its teams with the rules of each."""

import math
from collections import defaultdict
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from boa.catalogue.arrivals import spec_of_mix, synthetic_trace
from boa.model.budgets import Budget
from boa.model.calendar import DAYS, Calendar, Period
from boa.model.terms import Terms
from boa.model.trace import Trace, TraceJob
from boa.sim.run import World, world_of
from boa.sim.teams import class_of, with_teams
from boa.solver.planner import frontier, plan
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

MIX = {"cifar10": 0.75, "bert": 0.2, "deepspeech2": 0.05}
SUNDAY = 0.6
"""On Sundays: times as many jobs come as else, and times as much is to be spent as by day."""
PRICES = {"day": 1.0, "sunday": 0.8, "night": 0.9}
"""What a GPU costs in a period, over what it usually does."""
MONTH_DAYS = 31
"""Of January 1970, at whose beginning simulations begin."""
AFTER_DAYS = 1
"""Days that go on after a month, so that nothing of an end is seen in it."""
Rule: TypeAlias = Literal["lends and borrows", "borrows: false", "by the month"]


@dataclass(frozen=True, slots=True)
class Team:
    name: str
    part: float
    """Of the budget, by right; as many of the jobs are its own."""
    by_day: float
    """How much more it works at two in the afternoon than on average; at two at night less."""
    rule: Rule
    cap: float | None = None
    """The most that its jobs hold at any moment, over the budget of a week on average."""


TEAMS = (
    Team("vision", 0.3, 0.8, "lends and borrows"),
    Team("speech", 0.25, -0.8, "lends and borrows", cap=1.5),
    Team("robots", 0.25, 0.0, "borrows: false"),
    Team("thesis", 0.2, 0.0, "by the month"),
)


class Study(NamedTuple):
    """What a run of it depends on."""

    days: int
    rate: float
    """Jobs per hour on average."""
    swing: float
    """How far a day's rate strays from that: more jobs by day, or fewer."""
    night: float
    """Budget by night over the day's."""
    factor: float
    """Budget over what the jobs cost at their cheapest."""
    pacing_h: float | None
    seed: int
    cap: float = 3.0
    """Over the budget of a week on average."""

    @property
    def ends(self) -> Seconds:
        return self.days * 24 * SECONDS_PER_HOUR

    @property
    def is_month(self) -> bool:
        return self.days == MONTH_DAYS


def _of_day(hour: float) -> float:
    return math.sin(2 * math.pi * (hour % 24 - 8.0) / 24)


def _demand(hour: float, swing: float) -> float:
    """Jobs that come at an hour, over the most that ever do; a Monday is first."""
    of_day = (1.0 + swing * _of_day(hour)) / (1.0 + abs(swing))
    return of_day * (SUNDAY if hour % 168 >= 144 else 1.0)


def world(study: Study) -> World:
    most = study.rate / (sum(_demand(hour, study.swing) for hour in range(168)) / 168)
    days = study.days + (AFTER_DAYS if study.is_month else 0)
    spec = spec_of_mix(MIX, hours=24 * days, arrivals_per_hour=most)
    trace, rng = synthetic_trace(spec, study.seed), Random(study.seed)
    jobs = (job for job in trace.jobs if rng.random() < _demand(_hour(job), study.swing))
    found = world_of(_with_jobs(trace, tuple(jobs)), None, ("T4",), rescale=2.0)

    def dealt(job: TraceJob) -> str:
        weights = [team.part * (1.0 + team.by_day * _of_day(_hour(job))) for team in TEAMS]
        return rng.choices([team.name for team in TEAMS], weights)[0]

    return with_teams(found, dealt)


def _hour(job: TraceJob) -> float:
    return job.arrival_s / SECONDS_PER_HOUR


def _with_jobs(trace: Trace, jobs: tuple[TraceJob, ...]) -> Trace:
    return type(trace)(**{f.name: getattr(trace, f.name) for f in fields(trace)} | {"jobs": jobs})


def calendar_of(study: Study, budget: UsdPerHour) -> Calendar:
    day = Period(name="day", budget=1.0, days=DAYS[:6], begins=480, ends=1200)
    sunday = Period(name="sunday", budget=SUNDAY, days=DAYS[6:])
    night = Period(name="night", budget=study.night)
    priced = (replace(of, price_factor=PRICES[of.name]) for of in (day, sunday, night))
    shape = Calendar(periods=tuple(priced), time_zone="Europe/Berlin")
    return shape.scaled(budget / shape.average).begun_on_a_monday()


def tree_of(study: Study, found: World, budget: UsdPerHour) -> Budget:
    """Who shares the budget, and by which rules."""

    def part(team: Team) -> Budget:
        right = team.part * budget
        mine = class_of(team.name, "")
        made = Budget(
            name=team.name,
            per_hour=right,
            classes=tuple(name for name in sorted(found.truths) if name.startswith(mine)),
            max_spend=None if team.cap is None else team.cap * budget,
            borrows=team.rule == "lends and borrows",
        )
        if team.rule == "borrows: false":
            return replace(made, max_per_hour=right)
        return made if made.borrows else replace(made, terms=terms_of(study, right))

    return Budget(name="lab", per_hour=budget, parts=tuple(part(team) for team in TEAMS))


def terms_of(study: Study, per_hour: UsdPerHour) -> Terms:
    """Money of a whole month; of fewer days: in total, until the last of them."""
    usd = per_hour * 24 * study.days
    if study.is_month:
        return Terms(usd=usd, each="month")
    last = date(1970, 1, 1) + timedelta(days=study.days - 1)
    return Terms(usd=usd, each="once", until=last)


Wanted: TypeAlias = "dict[tuple[str, int, int], tuple[Usd, Usd]]"
"""By team, period and day: what the jobs that come then cost at their cheapest and fastest, if no
GPU were ever idle."""


def wanted(study: Study, found: World, calendar: Calendar) -> Wanted:
    edges = frontier(found.workload)
    ends = (edges.cheapest * (1 + 1e-9), edges.fastest_budget)
    plans = [plan(found.workload, usd).outcome for usd in ends]
    costs = [{of.name: of.cost for of in outcome.classes} for outcome in plans]
    least = defaultdict[tuple[str, int, int], Usd](float)
    most = defaultdict[tuple[str, int, int], Usd](float)
    for job in found.trace.jobs:
        if job.arrival_s < study.ends:
            period = calendar.at(job.arrival_s)
            key = job.application.split(".")[0], period, int(job.arrival_s // 86_400)
            factor = calendar.periods[period].price_factor
            least[key] += factor * costs[0][job.application]
            most[key] += factor * costs[1][job.application]
    return {key: (least[key], most[key]) for key in most}
