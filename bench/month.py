"""A month by a calendar: is every budget kept, and no cap crossed?

Jobs of the catalogue's mix come by night more than by day, and on Sundays less; they are dealt to
three teams that work at other hours. The budget is 1 by day, 0.6 on Sundays, when GPUs cost a fifth
less, and 1.6 at night; three teams share it, whole nodes are billed and take two minutes to boot,
the cap is thrice the budget. The service's own scheduler decides.

A period's budget can only be kept where the jobs that come in it cost less at their cheapest, and
more at their fastest: both stand beside it. With `--swing 0.5` the day's jobs cost more than its
budget however they run, and the night's cannot use theirs.

.venv/bin/python bench/month.py [--days 28] [--rate 4] [--factor 2] [--seed 1] [--json F]
"""

import argparse
import math
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console

from _bills import BOOT_S
from _table import Measured, show, write
from boa.catalogue.arrivals import spec_of_mix, synthetic_trace
from boa.model.budgets import Budget
from boa.model.calendar import DAYS, Calendar, Period
from boa.model.trace import TraceJob
from boa.policy.registry import Knobs, choose
from boa.sim.report import SimulationReport
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings
from boa.sim.teams import bill_of, class_of, with_teams
from boa.solver.planner import frontier
from boa.units import SECONDS_PER_HOUR

HERE = Path(__file__).resolve().parent
MIX = {"cifar10": 0.75, "bert": 0.2, "deepspeech2": 0.05}
TEAMS = {"day": 0.3, "night": 0.3, "steady": 0.4}
"""By name: the part of the budget that it has by right."""
SUNDAY, SUNDAY_PRICE = 0.6, 0.8
"""On Sundays: times as many jobs come as else, and times as much is to be spent as by day; times
what a GPU costs else."""
CAP = 3.0
"""Over the budget of a week on average."""


def demand(hour: float, swing: float) -> float:
    """Jobs that come at an hour of the month, over the most that ever do; a Monday is first."""
    of_day = (1.0 + swing * math.sin(2 * math.pi * (hour % 24 - 8.0) / 24)) / (1.0 + abs(swing))
    return of_day * (SUNDAY if hour % 168 >= 144 else 1.0)


def works(team: str, hour: float) -> float:
    """How much a team works then, against its own mean."""
    swing = math.sin(2 * math.pi * (hour % 24 - 8.0) / 24)
    return 1.0 + {"day": 0.8, "night": -0.8, "steady": 0.0}[team] * swing


def world(days: float, rate: float, seed: int, swing: float) -> World:
    """`rate`: jobs per hour on average; `swing`: how far a day's stray from that."""
    most = rate / (sum(demand(hour, swing) for hour in range(168)) / 168)
    spec = spec_of_mix(MIX, hours=24 * days, arrivals_per_hour=most)
    trace, rng = synthetic_trace(spec, seed), Random(seed)

    def hour(job: TraceJob) -> float:
        return job.arrival_s / SECONDS_PER_HOUR

    jobs = tuple(job for job in trace.jobs if rng.random() < demand(hour(job), swing))
    trace = type(trace)(**{**_fields(trace), "jobs": jobs})
    found = world_of(trace, None, ("T4",), rescale=2.0)
    names, rights = list(TEAMS), TEAMS.values()
    return with_teams(
        found,
        lambda job: rng.choices(
            names, [r * works(t, hour(job)) for t, r in zip(names, rights, strict=True)]
        )[0],
    )


def _fields(trace: Any) -> dict[str, Any]:
    return {name: getattr(trace, name) for name in trace.__dataclass_fields__}


def calendar_of(budget: float, night: float) -> Calendar:
    day = Period(name="day", budget=1.0, days=DAYS[:6], begins=480, ends=1200)
    sunday = Period(name="sunday", budget=SUNDAY, days=DAYS[6:], price_factor=SUNDAY_PRICE)
    shape = Calendar(
        periods=(day, sunday, Period(name="night", budget=night)), time_zone="Europe/Berlin"
    )
    return shape.scaled(budget / shape.average).begun_on_a_monday()


def tree_of(world: World, budget: float) -> Budget:
    names = sorted(world.truths)
    parts = tuple(
        Budget(
            name=team,
            per_hour=budget * right,
            classes=tuple(name for name in names if name.startswith(class_of(team, ""))),
        )
        for team, right in TEAMS.items()
    )
    return Budget(name="lab", per_hour=budget, parts=parts)


def run(
    world: World,
    budget: float,
    night: float,
    *,
    pacing_h: float | None = None,
    cap: float = CAP,
) -> SimulationReport:
    settings = Settings(
        interval_s=None,
        provision_s=BOOT_S,
        learning="perfect",
        billing="node",
        pacing_h=pacing_h,
        max_spend=cap * budget,
        sharing=tree_of(world, budget),
        calendar=calendar_of(budget, night),
    )
    return simulate(world, choose("boa", Knobs(budget=budget), "node"), settings)


def bounds_of(world: World, calendar: Calendar) -> dict[str, tuple[float, float]]:
    """By period: what the jobs that come in it cost per hour at their cheapest and at their
    fastest, if no GPU were ever idle."""
    jobs, plans = world.trace.jobs, frontier(world.workload)
    came = Counter(calendar.at(job.arrival_s) for job in jobs)
    hours = Counter(calendar.at(hour * SECONDS_PER_HOUR) for hour in range(round(_hours(world))))
    found = {}
    for number, period in enumerate(calendar.periods):
        usual = len(jobs) / _hours(world)
        times = period.price_factor * came[number] / max(hours[number], 1) / usual
        found[period.name] = (times * plans.cheapest, times * plans.fastest_budget)
    return found


def _hours(world: World) -> float:
    return math.ceil(world.trace.jobs[-1].arrival_s / SECONDS_PER_HOUR)


def table_of(report: SimulationReport, world: World, budget: float) -> Measured:
    table = Measured(
        "A month by a calendar, three teams",
        note="spent: per hour, on the bill; least, most: what the jobs that come then cost at "
        "their cheapest and fastest; a team's part of the bill counts idle and booting nodes by "
        "what jobs hold",
    )
    found = report.document()["periods"]
    periods = {name: of for name, of in found.items() if of["hours"]}
    hours = sum(of["hours"] for of in periods.values())
    spent = sum(of["hours"] * of["average_spend_per_hour"] for of in periods.values()) / hours
    due = sum(of["hours"] * of["budget_per_hour"] for of in periods.values()) / hours
    table.add(what="whole", usd_per_hour=due, spent=spent, off=spent / due - 1.0)
    assert report.settings.calendar is not None
    possible = bounds_of(world, report.settings.calendar)
    for name, of in periods.items():
        budgeted, average = of["budget_per_hour"], of["average_spend_per_hour"]
        least, most = possible[name]
        off = average / budgeted - 1.0
        table.add(what=name, usd_per_hour=budgeted, spent=average, off=off, least=least, most=most)
    for part in tree_of(world, budget).parts:
        bill = bill_of(report, part.classes)
        off = bill / part.per_hour - 1.0
        table.add(what=f"team {part.name}", usd_per_hour=part.per_hour, spent=bill, off=off)
    peak, cap = report.rental.peak, CAP * budget
    table.add(what="cap: the most at any moment", usd_per_hour=cap, spent=peak, off=peak / cap - 1)
    return table


def main() -> None:
    options = _arguments()
    made = world(options.days, options.rate, options.seed, options.swing)
    budget = options.factor * frontier(made.workload).cheapest
    Console(stderr=True).print(f"{len(made.trace.jobs)} jobs, ${budget:.2f}/h")
    report = run(made, budget, options.night, pacing_h=options.pacing_h)
    table = table_of(report, made, budget)
    show(table, Console(width=130))
    print(f"mean JCT {report.document()['average_jct_s']:.0f} s, {report.wall_s:.0f} s of work")
    asked = {name: str(value) for name, value in vars(options).items() if name != "json"}
    write(options.json, [table], **asked)
    print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=float, default=28.0)
    parser.add_argument("--rate", type=float, default=4.0, help="jobs per hour on average")
    parser.add_argument("--swing", type=float, default=-0.25, help="more jobs by day, or fewer")
    parser.add_argument("--night", type=float, default=1.6, help="budget then over the day's")
    parser.add_argument("--factor", type=float, default=2.0, help="budget over what is needed")
    parser.add_argument("--pacing-h", type=float, default=24.0, help="in which money is made good")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=HERE / "out" / "month.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
