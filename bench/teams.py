"""Three teams, the same money: clusters of their own, one pot, or a budget that they share.

Jobs of Sia's newTrace (or of the 85-job traces, `--quick`) are dealt to three teams, one of which
works by day, one by night, and one that submits more than both, in bursts. By right they have 30,
30 and 40 % of the budget. Whole nodes are billed and take two minutes to boot; speeds are known.

.venv/bin/python bench/teams.py [--quick] [--draws 3] [--factor 1.5] [--plot teams.png] [--json F]
"""

import argparse
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from rich.console import Console

from _bills import BOOT_S, SETTINGS, trace_of
from _table import Measured, show, write
from boa.errors import BudgetTooSmall
from boa.model.budgets import Budget
from boa.model.trace import TraceJob
from boa.policy.registry import Knobs, choose
from boa.sim.report import SimulationReport
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings
from boa.sim.teams import bill_of, class_of, jct_of, only, with_teams
from boa.solver.planner import frontier
from boa.units import SECONDS_PER_HOUR

HERE = Path(__file__).resolve().parent
TEAMS = {"day": 0.3, "night": 0.3, "bursts": 0.4}
"""By name: the part of the budget that it has by right."""
MANY = 2.5
"""Jobs of the team that works in bursts, over those of another."""
WAYS = ("separate", "one pot", "shared")
TIGHT = 1.15
"""Times what its jobs need at least that every team can pay for alone."""
CLOSE = 0.01
DAY_H, BURST_H = 24.0, 16.0


def activity(team: str, hour: float) -> float:
    """How much a team works then, against its own mean."""
    if team == "day":
        return 1.0 + math.sin(2 * math.pi * hour / DAY_H)
    if team == "night":
        return 1.0 - math.sin(2 * math.pi * hour / DAY_H)
    return MANY * (3.5 if hour % BURST_H < BURST_H / 4 else 1 / 6)


def dealt(seed: int) -> Callable[[TraceJob], str]:
    rng = Random(seed)

    def team_of(job: TraceJob) -> str:
        hour = job.arrival_s / SECONDS_PER_HOUR
        return rng.choices(list(TEAMS), [activity(team, hour) for team in TEAMS])[0]

    return team_of


@dataclass(frozen=True, slots=True)
class Case:
    world: World
    budget: float

    def classes(self, team: str) -> tuple[str, ...]:
        names = sorted(self.world.truths)
        return tuple(name for name in names if name.startswith(class_of(team, "")))

    @property
    def tree(self) -> Budget:
        parts = tuple(
            Budget(name=team, per_hour=self.budget * right, classes=self.classes(team))
            for team, right in TEAMS.items()
        )
        return Budget(name="lab", per_hour=self.budget, parts=parts)


def run(world: World, budget: float, sharing: Budget | None = None) -> SimulationReport:
    settings = Settings(
        interval_s=None,
        provision_s=BOOT_S,
        learning="perfect",
        billing="node",
        sharing=sharing,
    )
    return simulate(world, choose("boa", Knobs(budget=budget), "node"), settings)


def at_bill(world: World, bill: float) -> SimulationReport:
    """A run that is billed as much, within a per cent or as near as three of them come: a small
    cluster is steered less closely within two days."""
    budget, best = bill, run(world, bill)
    for _ in range(2):
        if abs(best.bill_per_hour / bill - 1) < CLOSE:
            break
        budget *= bill / best.bill_per_hour
        try:
            report = run(world, budget)
        except BudgetTooSmall:
            break
        best = min(best, report, key=lambda r: abs(r.bill_per_hour / bill - 1))
    return best


def rows(case: Case) -> Iterable[dict[str, Any]]:
    pot, shared = run(case.world, case.budget), run(case.world, case.budget, case.tree)
    for team in TEAMS:
        mine = case.classes(team)
        alone = at_bill(only(case.world, team), case.budget * TEAMS[team])
        for way, report in zip(WAYS, (alone, pot, shared), strict=True):
            yield {
                "team": team,
                "way": way,
                "jct_s": jct_of(report, mine),
                "bill": bill_of(report, mine) / case.budget,
                "jobs": len([j for j in case.world.trace.jobs if j.application in mine]),
            }


def cases(options: argparse.Namespace) -> Iterable[Case]:
    name = "85 jobs, T4 nodes of 4" if options.quick else options.setting
    setting = SETTINGS[name]
    for draw in range(1, options.draws + 1):
        trace = trace_of(setting, draw, options.data)
        world = with_teams(
            world_of(trace, options.data / "sia", setting.gpus, rescale=2.0), dealt(draw)
        )
        needed = {team: frontier(only(world, team).workload).cheapest for team in TEAMS}
        enough = max(TIGHT * needed[team] / right for team, right in TEAMS.items())
        yield Case(world, max(options.factor * sum(needed.values()), enough))


def summary(found: list[dict[str, Any]]) -> Measured:
    table = Measured(
        "Three teams that share a budget, and the same money otherwise",
        note="JCT: means over draws; gain: JCT with separate clusters over this one; bill: the "
        "team's part, idle and booting nodes shared out by what jobs hold, over the whole budget",
    )
    for team in (*TEAMS, "all"):
        for way in WAYS:
            mine = [row for row in found if row["way"] == way and team in (row["team"], "all")]
            base = [row for row in found if row["way"] == WAYS[0] and team in (row["team"], "all")]
            jobs = sum(row["jobs"] for row in mine)
            jct = sum(row["jct_s"] * row["jobs"] for row in mine) / jobs
            before = sum(row["jct_s"] * row["jobs"] for row in base) / jobs
            draws = len({row["draw"] for row in mine})
            table.add(
                team=team,
                way=way,
                jct_s=jct,
                gain=before / jct,
                bill_of_budget=sum(row["bill"] for row in mine) / draws,
                worst_gain=min(a["jct_s"] / b["jct_s"] for a, b in zip(base, mine, strict=True)),
            )
    return table


def draw_picture(table: Measured, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    names = (*TEAMS, "all")
    for n, way in enumerate(WAYS):
        mine = [next(r for r in table.rows if (r["team"], r["way"]) == (t, way)) for t in names]
        at = [i + (n - 1) * 0.27 for i in range(len(names))]
        left.bar(at, [float(r["jct_s"] or 0) / 60 for r in mine], 0.25, label=way)
        right.bar(at, [100 * float(r["bill_of_budget"] or 0) for r in mine], 0.25, label=way)
    for axes, title in ((left, "average JCT, minutes"), (right, "bill, % of the budget")):
        axes.set_xticks(range(len(names)), names)
        axes.set_title(title)
        axes.spines[["top", "right"]].set_visible(False)
    for i, by_right in enumerate(TEAMS.values()):
        right.plot([i - 0.42, i + 0.42], [100 * by_right] * 2, "k:", lw=1)
    left.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    options = _arguments()
    found: list[dict[str, Any]] = []
    for draw, case in enumerate(cases(options), 1):
        found += [{**row, "draw": draw} for row in rows(case)]
        Console(stderr=True).print(f"draw {draw}: a budget of {case.budget:.1f} an hour")
    table = summary(found)
    show(table, Console(width=130))
    if options.plot:
        draw_picture(table, options.plot)
    write(options.json, [table], draws=mean([options.draws]), factor=options.factor)
    print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the 85 jobs instead of newTrace")
    parser.add_argument("--setting", choices=list(SETTINGS), default="newTrace, T4 nodes of 4")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--factor", type=float, default=1.5, help="budget over what is needed")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path, default=HERE / "out" / "teams.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
