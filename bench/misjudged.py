"""Is the bill the budget where arrivals are not as believed? A week of the service's scheduler.

Jobs of four catalogue classes come half as often as is believed, as often, or twice as often:
one by one (Poisson), in bursts (a squared coefficient of variation of 20), or nearly all of them by
day. Beliefs are worth a day of arrivals, and are corrected as the service does it. The budget is
2.2 times what the cheapest plan takes for the jobs that really come, and whole nodes are billed,
two minutes of booting included.

.venv/bin/python bench/misjudged.py [--quick] [--seeds 3] [--days 7] [--scale 3] [--json FILE]
"""

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console

from _table import Measured, show, write
from boa.model.trace import Trace, TraceJob
from boa.policy.market.policy import Market
from boa.scheduler.learn.fading_means import Arrivals
from boa.scheduler.money.ledger import at as bill_at
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.run import World, world_of
from boa.sim.scheduled import ScheduledSimulation
from boa.sim.settings import Settings
from boa.solver.planner import frontier
from boa.units import SECONDS_PER_HOUR, UsdPerHour

HERE = Path(__file__).resolve().parent
PER_HOUR = {"cifar10": 2.4, "bert": 0.9, "deepspeech2": 0.6, "yolov3": 0.2}
BELIEVED = (0.5, 1.0, 2.0)
"""Jobs that come per job that was believed to."""
ARRIVALS = ("one by one", "in bursts", "by day")
LOAD = 2.2
BOOT_S = 120.0
DAY_H = 24.0
BURSTS = 20.0
"""Squared coefficient of variation of the times between arrivals that come in bursts."""
BY_NIGHT = 0.1
"""Arrivals in the second half of a day per arrival in a mean one."""


@dataclass(frozen=True)
class Case:
    come: float
    arrivals: str
    seed: int
    days: float
    scale: float

    @property
    def rates(self) -> dict[str, float]:
        """Jobs of each class that really come, per hour."""
        return {app: self.scale * rate for app, rate in PER_HOUR.items()}


@dataclass(frozen=True)
class Result:
    first_day: float
    """Billed over the budget."""
    whole: float
    worst_day: float
    jct_s: float
    nodes: float
    """That the budget would pay for."""


class Counting(Knowledge):
    """Everything is known but how often jobs come: that is counted, as the service does."""

    def __init__(self, world: World, per_hour: Mapping[str, float], settings: Settings) -> None:
        arrivals = ExpectedArrivals(per_hour=per_hour, mean_steps={})
        super().__init__(world.truths, world.gpu_types, arrivals, settings)
        self._come = {app: Arrivals.prior(rate, DAY_H, 0.0) for app, rate in per_hour.items()}
        self._seen = 0

    def counted(self, jobs: Iterable[TraceJob]) -> Iterator[TraceJob]:
        """The same jobs; each counts when the next one is asked for, which is when it has come."""
        for job in jobs:
            yield job
            app, now = job.application, job.arrival_s
            self._come[app] = self._come[app].arrived(now)
            rates = {app: come.per_hour(now) for app, come in self._come.items()}
            self.arrivals = ExpectedArrivals(per_hour=rates, mean_steps={})
            self._seen += 1

    @property
    def version(self) -> int:
        return super().version + self._seen


def main() -> None:
    options = _arguments()
    seeds = range(1, 2 if options.quick else options.seeds + 1)
    days = 2.0 if options.quick else options.days
    groups = list(product(BELIEVED, ARRIVALS))
    cases = [Case(*group, seed, days, options.scale) for group in groups for seed in seeds]
    status, console = Console(stderr=True), Console(width=140)
    with ProcessPoolExecutor(options.at_once) as pool:
        results = {}
        for case, result in zip(cases, pool.map(run, cases), strict=True):
            results[case] = result
            status.print(f"{len(results)} of {len(cases)}: {case}: {result}")
    table = Measured(
        f"Billed over the budget, {len(seeds)} seeds, {days:g} days",
        note="means over seeds; highest and lowest of them in brackets",
    )
    for come, arrivals in groups:
        found = [r for c, r in results.items() if (c.come, c.arrivals) == (come, arrivals)]
        row: dict[str, str | float] = {
            "jobs per job believed": come,
            "they come": arrivals,
            "cluster": f"{found[0].nodes:.1f} nodes",
            "first day": _told([r.first_day for r in found]),
            "whole": _told([r.whole for r in found]),
            "worst day": _told([r.worst_day for r in found]),
            "mean JCT, min": round(float(np.mean([r.jct_s for r in found])) / 60, 1),
        }
        table.add(**row)
    show(table, console)
    write(options.json, [table])
    console.print(f"written to {options.json}")


def _told(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ({min(values):.3f}–{max(values):.3f})"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, two days")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--scale", type=float, default=3.0, help="3: about ten nodes of four T4")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="runs side by side")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "misjudged.json")
    return parser.parse_args()


def run(case: Case) -> Result:
    jobs = tuple(_jobs(case))
    world = world_of(Trace(jobs), None, ["T4"])
    budget = LOAD * _cheapest(case, world)
    settings = Settings(interval_s=60.0, provision_s=BOOT_S, learning="perfect", billing="node")
    believed = {app: rate / case.come for app, rate in case.rates.items()}
    known = Counting(world, believed, settings)
    simulation = ScheduledSimulation(jobs, known, Market(), settings, span_s=0.0, budget=budget)
    looks = [(0.0, 0.0)]
    """At the end of every day: the hour, and what was billed by then."""

    def look(_: int, now: float) -> None:
        if now >= len(looks) * DAY_H * SECONDS_PER_HOUR:
            state = simulation.state
            bill = bill_at(state.totals, state.nodes.values(), state.holds.values(), now)
            looks.append((now / SECONDS_PER_HOUR, bill.total))

    report = simulation.run(look)
    hours, billed = np.array(looks[: int(case.days) + 1]).T
    days = np.diff(billed) / (budget * np.diff(hours))
    kind = world.gpu_types["T4"]
    return Result(
        first_day=float(days[0]),
        whole=float(billed[-1] / (budget * hours[-1])),
        worst_day=float(days.max()),
        jct_s=report.document()["average_jct_s"],
        nodes=budget / kind.price / kind.gpus_per_node,
    )


def _cheapest(case: Case, world: World) -> UsdPerHour:
    arrivals = ExpectedArrivals(per_hour=case.rates, mean_steps={})
    perfect = Settings(learning="perfect")
    workload = Knowledge(world.truths, world.gpu_types, arrivals, perfect).workload()
    return frontier(workload).cheapest


def _jobs(case: Case) -> Iterator[TraceJob]:
    random = np.random.default_rng(case.seed)
    found = []
    for app, rate in case.rates.items():
        at = 0.0
        while (at := at + _gap(random, rate, case.arrivals)) < (case.days + 1) * DAY_H:
            found.append((_hour(at, case.arrivals), app))
    for n, (hour, app) in enumerate(sorted(found)):
        yield TraceJob(name=f"{app}-{n}", arrival_s=hour * SECONDS_PER_HOUR, application=app)


def _gap(random: np.random.Generator, rate: float, arrivals: str) -> float:
    """Hours to the next: in bursts by two exponential phases of equal weight in the mean."""
    if arrivals != "in bursts":
        return float(random.exponential(1 / rate))
    share = (1 + np.sqrt((BURSTS - 1) / (BURSTS + 1))) / 2
    short = random.random() < share
    return float(random.exponential(1 / (2 * rate * (share if short else 1 - share))))


def _hour(at: float, arrivals: str) -> float:
    """By day: the first half of every day has nearly all of its arrivals, in their order."""
    if arrivals != "by day":
        return at
    day, hour = divmod(at, DAY_H)
    noon, by_day = DAY_H / 2, (2 - BY_NIGHT) / 2 * DAY_H
    if hour < by_day:
        return day * DAY_H + hour / by_day * noon
    return day * DAY_H + noon + (hour - by_day) / (DAY_H - by_day) * noon


if __name__ == "__main__":
    main()
