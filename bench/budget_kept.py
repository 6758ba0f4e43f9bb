"""Is the bill what was promised, and how soon? The real control loop in virtual time.

Jobs of four catalogue classes come as a Poisson process, exactly as often as the service believes;
speeds are known. So what is spent beside the plan is idle and booting nodes, and luck. Clusters
of few or many nodes of four (T4) or eight GPUs (A100); nodes take three minutes to boot and are
kept warm for five.

.venv/bin/python bench/budget_kept.py [--quick] [--sizes few many] [--seeds 4] [--json FILE]
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np
from rich.console import Console

from _table import Measured, show, write
from boa.model.profile import ClassProfile
from boa.model.trace import Trace, TraceJob
from boa.scheduler.money.ledger import Bill
from boa.scheduler.money.ledger import at as bill_at
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.replay_jobs import profiles_of, replay_spec
from boa.sim.run import World, world_of
from boa.sim.settings import Settings
from boa.solver.planner import frontier
from boa.units import SECONDS_PER_HOUR, UsdPerHour

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from live import START, Live, config, prior

HERE = Path(__file__).resolve().parent
PER_HOUR = {"cifar10": 2.4, "bert": 0.9, "deepspeech2": 0.6, "yolov3": 0.2}
SIZES = {"few": {"T4": 1.0, "A100": 3.5}, "many": {"T4": 3.0, "A100": 10.0}}
"""How many times as often jobs come, by what that makes of the cluster: nodes."""
LOAD = 1.5
"""The budget: so many times what the cheapest plan spends."""
BOOT_S, WARM_S = 180.0, 300.0
LOOKS_H = (2.0, 8.0, 24.0)


@dataclass(frozen=True)
class Case:
    gpu: str
    size: str
    seed: int
    hours: float

    @property
    def rates(self) -> dict[str, float]:
        return {app: SIZES[self.size][self.gpu] * rate for app, rate in PER_HOUR.items()}


@dataclass(frozen=True)
class Result:
    nodes: float
    """That the budget would pay for."""
    bills: Mapping[float, Bill]
    """After so many hours, over the budget."""
    jct_s: float
    """Of jobs that have ended …"""
    ended: float
    """… which is this part of those that came."""


def main() -> None:
    options = _arguments()
    console, status = Console(width=None if sys.stdout.isatty() else 150), Console(stderr=True)
    seeds = range(1, 2 if options.quick else options.seeds + 1)
    sizes = ("few",) if options.quick else options.sizes
    groups = list(product(("T4", "A100"), sizes))
    cases = [Case(*group, seed, options.hours) for group in groups for seed in seeds]
    with ProcessPoolExecutor(options.at_once) as pool:
        results: dict[Case, Result] = {}
        for case, result in zip(cases, pool.map(run, cases), strict=True):
            results[case] = result
            status.print(f"{len(results)} of {len(cases)}: {case}")
    table = Measured(
        f"Spend over the budget after some hours, {len(seeds)} seeds",
        note="jobs come as often as is believed; a plan knows nothing of idle and booting nodes",
    )
    for gpu, size in groups:
        table.add(**_row(gpu, [r for c, r in results.items() if (c.gpu, c.size) == (gpu, size)]))
    show(table, console)
    write(options.json, [table])
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="few nodes, one seed, whatever else is said"
    )
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="runs side by side")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "budget_kept.json")
    return parser.parse_args()


def _row(gpu: str, results: list[Result]) -> dict[str, str | float]:
    last = max(results[0].bills)
    spent = {f"{h:g} h": [r.bills[h].total for r in results] for h in results[0].bills}
    return {
        "GPUs": gpu,
        "cluster": f"{results[0].nodes:.1f} nodes",
        **{name: round(fmean(found), 2) for name, found in spent.items()},
        "lowest": round(min(spent[f"{last:g} h"]), 2),
        "highest": round(max(spent[f"{last:g} h"]), 2),
        "idle %": _percent(results, last, "idle"),
        "booting %": _percent(results, last, "provisioning"),
        "mean JCT in minutes": round(fmean(r.jct_s for r in results) / 60, 1),
        "ended %": round(100 * fmean(r.ended for r in results), 1),
    }


def _percent(results: list[Result], hours: float, part: str) -> float:
    parts = [getattr(r.bills[hours], part) / r.bills[hours].total for r in results]
    return round(100 * fmean(parts), 1)


# One run


def run(case: Case) -> Result:
    jobs = [TraceJob(name=app, arrival_s=n, application=app) for n, app in enumerate(PER_HOUR)]
    world = world_of(Trace(tuple(jobs)), None, [case.gpu])
    budget = _budget(case, world)
    known = profiles_of(world)
    with tempfile.TemporaryDirectory(prefix="boa-bench-") as folder:
        settings = config(
            Path(folder),
            budget=budget,
            gpu_types=world.gpu_types,
            priors={known[app].name: prior(known[app], r, 1e6) for app, r in case.rates.items()},
            provision_s=BOOT_S,
            keep_warm_s=WARM_S,
        )
        live = Live(settings, {profile.name: profile for profile in known.values()})
        found = _days(case, live, known, budget)
        live.close()
    kind = world.gpu_types[case.gpu]
    return Result(budget / kind.price / kind.gpus_per_node, *found)


def _budget(case: Case, world: World) -> UsdPerHour:
    arrivals = ExpectedArrivals(per_hour=case.rates, mean_steps={})
    perfect = Settings(learning="perfect")
    workload = Knowledge(world.truths, world.gpu_types, arrivals, perfect).workload()
    return LOAD * frontier(workload).cheapest


def _days(
    case: Case, live: Live, known: Mapping[str, ClassProfile], budget: UsdPerHour
) -> tuple[dict[float, Bill], float, float]:
    bills, jobs = {}, []
    looks = [(h, "") for h in sorted({*LOOKS_H, case.hours}) if h <= case.hours]
    live.settle()
    for hour, app in sorted([*_arrivals(case), *looks]):
        wait = START + hour * SECONDS_PER_HOUR - live.clock.now()
        if wait > 0:
            live.advance(wait)
        if app:
            jobs.append(live.submit(replay_spec(known[app], Path("unused"))))
        else:
            bills[hour] = _bill(live, hour * budget)
    jcts = [
        job.ended_at - job.submitted_at for job in map(live.job, jobs) if job.ended_at is not None
    ]
    return bills, fmean(jcts), len(jcts) / len(jobs)


def _arrivals(case: Case) -> Iterator[tuple[float, str]]:
    """Hours, and applications."""
    random = np.random.default_rng(case.seed)
    for app, rate in case.rates.items():
        at = random.exponential(1 / rate)
        while at < case.hours:
            yield at, app
            at += random.exponential(1 / rate)


def _bill(live: Live, allowed: float) -> Bill:
    state = live.loop.state
    bill = bill_at(state.totals, state.nodes.values(), state.holds.values(), live.clock.now())
    return Bill(
        total=bill.total / allowed,
        jobs=bill.jobs / allowed,
        idle=bill.idle / allowed,
        provisioning=bill.provisioning / allowed,
    )


if __name__ == "__main__":
    main()
