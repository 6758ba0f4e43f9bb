"""How good is the price of money? Four weeks by the node, steered and at constant prices.

Streams are logs of clusters, of which some sessions are kept so that a run takes about a minute,
and draws of jobs that come one by one. Every stream is run with its budget, and at the constant
prices of some other budgets (`Market(price=…)`, no steering). JCT and P95 are compared with those
of a constant price at the same bill, by interpolation in the logarithms. Speeds are known. Rates of
arrival are known too, or are only believed: then they are what plans were made with, times
`--believed`. Runs are kept in a file and not made twice.

.venv/bin/python bench/steered.py [--quick] [--streams itp-5 dense] [--budget 1.6]
    [--believed known 1 0.5 2] [--pacing-h 24 720] [--data DIR] [--kept FILE] [--json FILE]
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from _table import Measured, show, write
from boa.catalogue.reading import Reading
from boa.catalogue.traces import read_trace
from boa.model.trace import Trace, TraceJob
from boa.policy.boa import price_of
from boa.policy.market.policy import Market
from boa.scheduler.money.ledger import at as bill_at
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.run import World, world_of
from boa.sim.scheduled import ScheduledSimulation
from boa.sim.settings import Settings
from boa.solver.planner import plan
from boa.units import SECONDS_PER_HOUR

HERE = Path(__file__).resolve().parent
WEEK_H = 168.0
BOOT_S, ROUND_S, LOOK_H = 120.0, 300.0, 6.0
SESSION_S, MOST_IN_SESSION = 3600.0, 40
"""A longer gap begins another session, of which no more jobs are kept or left out together."""
JOBS = 420
"""About so many jobs of a log are kept."""
LOGS = {
    "itp-1": ("itp/cluster01.csv", 1.0, 3.8),
    "itp-2": ("itp/cluster02.csv", 3.0, 4.0),
    "itp-5": ("itp/cluster05.csv", 3.0, 4.0),
    "philly-6214e9": ("philly/6214e9.csv", 12.0, 3.2),
}
"""Where it lies, the first week and the weeks that are read."""
PER_HOUR = {"cifar10": 2.4, "bert": 0.9, "deepspeech2": 0.6, "yolov3": 0.06}
DRAWN: Mapping[str, tuple[float, float, float]] = {
    "dense": (1.0, 1.0, WEEK_H),
    "doubling": (0.2, 2.0, 4 * WEEK_H),
}
"""Times `PER_HOUR`; as many times more in the second half; hours."""
PRICES = (1.2, 1.4, 1.6, 2.2)
"""Constant prices are those of plans for so many times the cheapest plan's spend."""


@dataclass(frozen=True)
class Run:
    stream: str
    budget: float
    """As a multiple of the cheapest plan's spend; of a constant price, the plan's that it is of."""
    constant: bool = False
    believed: float | None = None
    """Rates that plans believe in, over those of the stream; None: they are known."""
    pacing_h: float | None = None

    @property
    def key(self) -> str:
        return " | ".join(f"{name}={value}" for name, value in asdict(self).items())


def main() -> None:
    options = _arguments()
    found: dict[str, Any] = json.loads(options.kept.read_text()) if options.kept.exists() else {}
    status, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else 170)
    for run in _runs(options):
        if run.key not in found:
            found[run.key] = _measured(run, options.data)
            options.kept.parent.mkdir(parents=True, exist_ok=True)
            options.kept.write_text(json.dumps(found))
            status.print(run.key)
    table = Measured(
        f"Steered, at {options.budget:g} times the cheapest plan",
        note="JCT and P95 over those of a constant price at the same bill; bill over the budget",
    )
    for run in _runs(options):
        if not run.constant:
            table.add(**_row(run, found))
    show(table, console)
    write(options.json, [table])
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the dense stream alone")
    parser.add_argument("--streams", nargs="*", default=[*LOGS, *DRAWN])
    parser.add_argument("--budget", type=float, default=1.6)
    parser.add_argument("--believed", nargs="*", default=["known", "1"])
    parser.add_argument("--pacing-h", nargs="*", type=float, default=[])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--kept", type=Path, default=HERE / "out" / "steered-runs.json")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "steered.json")
    options = parser.parse_args()
    if options.quick:
        options.streams = ["dense"]
    return options


def _runs(options: argparse.Namespace) -> Iterator[Run]:
    for stream in options.streams:
        for knob in PRICES:
            yield Run(stream, knob, constant=True)
        for believed in options.believed:
            rates = None if believed == "known" else float(believed)
            for pacing_h in (None, *options.pacing_h):
                yield Run(stream, options.budget, believed=rates, pacing_h=pacing_h)


# Streams


def _trace(stream: str, data: Path) -> Trace:
    if stream in DRAWN:
        return _drawn(*DRAWN[stream])
    file, week, weeks = LOGS[stream]
    read = read_trace(data / file, Reading(from_h=week * WEEK_H, hours=weeks * WEEK_H))
    return _thinned(read, JOBS / len(read.jobs))


def _thinned(trace: Trace, part: float) -> Trace:
    """Whole sessions are kept or left out, so that what is kept is as bursty."""
    random, sessions = np.random.default_rng(5), list[list[TraceJob]]()
    last = -math.inf
    for job in trace.jobs:
        if job.arrival_s - last > SESSION_S or len(sessions[-1]) >= MOST_IN_SESSION:
            sessions.append([])
        sessions[-1].append(job)
        last = job.arrival_s
    kept = [job for session in sessions if random.random() < part for job in session]
    first = kept[0].arrival_s
    return Trace(tuple(replace(job, arrival_s=job.arrival_s - first) for job in kept))


def _drawn(times: float, later: float, hours: float) -> Trace:
    random, found = np.random.default_rng(1), list[tuple[float, str]]()
    for app, rate in PER_HOUR.items():
        at = 0.0
        while (at := at + random.exponential(1 / (2 * times * rate))) < hours:
            if random.random() < (1.0 if at < hours / 2 else later) / 2:
                found.append((at, app))
    jobs = (
        TraceJob(name=f"j{n}", arrival_s=hour * SECONDS_PER_HOUR, application=app)
        for n, (hour, app) in enumerate(sorted(found))
    )
    return Trace(tuple(jobs))


@cache
def _world(stream: str, data: Path) -> World:
    return world_of(_trace(stream, data), data / "sia", ("T4",))


def _arrivals(run: Run, trace: Trace) -> ExpectedArrivals:
    known = ExpectedArrivals.of(trace)
    if run.believed is None:
        return known
    rates = known.per_hour
    if run.stream in DRAWN:  # those that the stream begins with
        times = DRAWN[run.stream][0]
        rates = {app: times * rate for app, rate in PER_HOUR.items()}
    rates = {app: run.believed * rate for app, rate in rates.items()}
    return replace(known, per_hour=rates, exact=False)


# One run


def _measured(run: Run, data: Path) -> dict[str, Any]:
    world = _world(run.stream, data)
    cheapest = plan(world.workload, 1e9).cheapest
    settings = Settings(
        interval_s=ROUND_S,
        provision_s=BOOT_S,
        learning="perfect",
        billing="node",
        pacing_h=1e6 if run.constant else run.pacing_h,
    )
    arrivals = _arrivals(run, world.trace)
    known = Knowledge(world.truths, world.gpu_types, arrivals, settings)
    budget, market = run.budget * cheapest, Market()
    if run.constant:
        solution = plan(known.workload(), budget)
        market = Market(price=price_of(solution.shadow_price, solution.workload))
    simulation = ScheduledSimulation(
        world.trace.jobs, known, market, settings, span_s=world.trace.span_s, budget=budget
    )
    looks = [(0.0, 0.0, 1.0)]

    def look(_: int, now: float) -> None:
        if now >= len(looks) * LOOK_H * SECONDS_PER_HOUR:
            state = simulation.state
            bill = bill_at(state.totals, state.nodes.values(), state.holds.values(), now)
            planned = simulation.scheduler.purse.effective
            looks.append((now / SECONDS_PER_HOUR, bill.total / budget, planned / budget))

    report = simulation.run(look)
    document = report.document()
    return {
        "bill": document["rented_spend_per_hour"] / cheapest,
        "over_budget": document["rented_spend_per_hour"] / budget,
        "jct_s": document["average_jct_s"],
        "p95_s": float(np.percentile(np.array(report.tally.jcts), 95)),
        "hours": world.trace.span_s / SECONDS_PER_HOUR,
        "looks": looks,
    }


# The table


def _row(run: Run, found: Mapping[str, Any]) -> dict[str, str | float]:
    one = found[run.key]
    best = [found[Run(run.stream, knob, constant=True).key] for knob in PRICES]
    return {
        "stream": run.stream,
        "rates": "known" if run.believed is None else f"believed × {run.believed:g}",
        "pacing_h": "" if run.pacing_h is None else f"{run.pacing_h:g}",
        "bill": f"{one['over_budget']:.3f}",
        "first day": f"{_spent(one, 0.0, 24.0):.2f}",
        "days": _range(one, 24.0),
        "weeks": _range(one, WEEK_H),
        "planned with": f"{min(u for *_, u in one['looks'][1:]):.2f}–"
        f"{max(u for *_, u in one['looks'][1:]):.2f}",
        "JCT, s": f"{one['jct_s']:.0f}",
        "JCT ÷ constant": f"{one['jct_s'] / _at(best, one['bill'], 'jct_s'):.3f}",
        "P95 ÷ constant": f"{one['p95_s'] / _at(best, one['bill'], 'p95_s'):.3f}",
    }


def _spent(one: Mapping[str, Any], begin_h: float, end_h: float) -> float:
    hours, billed, _ = np.array(one["looks"]).T
    begun, ended = np.interp([begin_h, end_h], hours, billed)
    return float(ended - begun) / (end_h - begin_h)


def _range(one: Mapping[str, Any], length_h: float) -> str:
    begins = np.arange(0.0, one["hours"] - length_h + 1.0, length_h)
    parts = [_spent(one, begin, begin + length_h) for begin in begins.tolist()]
    return f"{min(parts):.2f}–{max(parts):.2f}" if parts else "–"


def _at(runs: list[dict[str, Any]], bill: float, what: str) -> float:
    """Of constant prices at this bill; beyond the outermost two as between them."""
    bills, values = np.array(sorted((np.log(r["bill"]), np.log(r[what])) for r in runs)).T
    n = min(max(int(np.searchsorted(bills, math.log(bill))), 1), len(bills) - 1)
    slope = (values[n] - values[n - 1]) / (bills[n] - bills[n - 1])
    return math.exp(float(values[n - 1] + slope * (math.log(bill) - bills[n - 1])))


if __name__ == "__main__":
    main()
