"""Jobs that may wait for hours in which money buys more: what that brings, and what it takes.

Poisson arrivals of newTrace's mix, a week of them, under a calendar of days (08:00 to 20:00) and
nights. The same jobs under the same budgets are run twice: nobody waits, or anybody may for up
to `--wait-h` hours. Speeds are known; the service's own scheduler decides. JCTs have the waiting in
them.

.venv/bin/python bench/hours.py [--seeds 3] [--days 7] [--rate 10] [--wait-h 12] [--json F]
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from _bills import BOOT_S
from _table import Measured, show, write
from boa.catalogue.arrivals import spec_of_mix, synthetic_trace
from boa.model.calendar import Calendar, Period
from boa.model.cluster import JobId
from boa.model.workload import Billing
from boa.policy.registry import Knobs, choose
from boa.scheduler.state import Draft
from boa.sim.report import SimulationReport
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings
from boa.solver.planner import frontier
from boa.units import SECONDS_PER_HOUR, Seconds, UsdPerHour

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    factor: float
    """Budget over what the jobs need, on average."""
    night: float
    """Budget by night, over that by day …"""
    price: float
    """… and what a GPU costs then."""
    billing: Billing = "gpu"


SETTINGS = (
    Setting("twice the budget by night", 1.5, 2.0, 1.0),
    Setting("GPUs 40 % cheaper by night", 1.3, 1.5, 0.6),
    Setting("whole nodes, 30 % cheaper by night", 1.5, 1.5, 0.7, "node"),
)


def calendar_of(setting: Setting, budget: UsdPerHour) -> Calendar:
    day = Period(name="day", budget=1.0, begins=480, ends=1200)
    night = Period(name="night", budget=setting.night, price_factor=setting.price)
    shape = Calendar(periods=(day, night))
    return shape.scaled(budget / shape.average).begun_on_a_monday()


class Waited:
    """Jobs that were put off, and for how long in all."""

    def __init__(self) -> None:
        self.jobs: set[JobId] = set()
        self.seconds: Seconds = 0.0
        self._since: dict[JobId, Seconds] = {}

    def __call__(self, draft: Draft) -> None:
        for job in draft.changes.jobs.values():
            if job.waits_until is not None:
                self.jobs.add(job.id)
                self._since.setdefault(job.id, draft.now)
            else:
                self.seconds += draft.now - self._since.pop(job.id, draft.now)


def run(world: World, setting: Setting, calendar: Calendar) -> tuple[SimulationReport, Waited]:
    settings = Settings(
        calendar=calendar,
        learning="perfect",
        billing=setting.billing,
        provision_s=BOOT_S if setting.billing == "node" else 0.0,
        pacing_h=24.0,
    )
    waited = Waited()
    choice = choose("boa", Knobs(budget=calendar.average), setting.billing)
    return simulate(world, choice, settings, watch=waited), waited


def main() -> None:
    options = _arguments()
    console = Console(stderr=True)
    table = Measured(
        "The same jobs at the same budgets, if they may wait for other hours",
        note="JCT in min, waiting included; day and night: spend per hour then, over its budget",
    )
    for setting in SETTINGS:
        for seed in range(1, options.seeds + 1):
            spec = spec_of_mix(hours=24 * options.days, arrivals_per_hour=options.rate)
            world = world_of(synthetic_trace(spec, seed), None, ("T4",))
            calendar = calendar_of(setting, setting.factor * frontier(world.workload).cheapest)
            for hours in (0.0, options.wait_h):
                allowed = replace(calendar, may_wait=hours * SECONDS_PER_HOUR)
                report, waited = run(world, setting, allowed)
                jct = round(report.average_jct / 60.0, 2)
                console.print(f"{setting.name}, seed {seed}, {hours:g} h: {jct} min")
                periods = report.notes["periods"]
                kept = {
                    name: round(one["average_spend_per_hour"] / one["budget_per_hour"], 3)
                    for name, one in periods.items()
                }
                table.add(
                    setting=setting.name,
                    seed=seed,
                    may_wait_h=hours,
                    jct=jct,
                    jobs=report.jobs,
                    put_off=len(waited.jobs),
                    waited=round(waited.seconds / 60.0 / report.jobs, 2),
                    **kept,
                )
    show(table, Console(width=130))
    write(options.json, [table], days=options.days, rate=options.rate)
    print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--rate", type=float, default=10.0, help="jobs per hour")
    parser.add_argument("--wait-h", type=float, default=12.0)
    parser.add_argument("--json", type=Path, default=HERE / "out" / "hours.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
