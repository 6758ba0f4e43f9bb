"""A month by a calendar: is every budget kept, and no cap crossed?

Jobs of the catalogue's mix come by night more than by day, and on Sundays less. The budget is 1 by
day, 0.6 on Sundays and 1.6 at night; GPUs cost a tenth less at night and a fifth less on Sundays.
Four teams share it: two that lend and borrow, one that may not borrow (`borrows: false`), and one
that has money for the month and no more. Whole nodes are billed and take two minutes to boot; the
cap is thrice the budget. The service's own scheduler decides.

What was spent is counted from nodes and holds alone (`_month_books.py`), of the days that are asked
for exactly; of a whole month, jobs come for one more, so that nothing ends. Kept is

- the whole, a period and a month's money: within `--within` of what they are. One that cannot be
  used is kept too: where its jobs, at their fastest, cost less than it (*wanted*, of GPUs that are
  never idle);
- a right (`lends and borrows`): not below it by more, but as before, and but for what may be lent
  at the end, which comes back by price. Above it is what others left;
- `borrows: false`: not above it by more;
- a cap: at no moment crossed.

.venv/bin/python bench/month.py [--days 31] [--rate 8] [--factor 1.7] [--seed 1] [--json F]

Ends with 1 where a budget was not kept, or a cap crossed.
"""

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from _bills import BOOT_S
from _month_books import DAY_S, Books, Seen, books_of
from _month_world import (
    MONTH_DAYS,
    TEAMS,
    Study,
    Team,
    Wanted,
    calendar_of,
    tree_of,
    wanted,
    world,
)
from _table import Measured, show, write
from boa.model.calendar import Calendar
from boa.policy.registry import Knobs, choose
from boa.scheduler.money import loans
from boa.sim.report import SimulationReport
from boa.sim.run import simulate
from boa.sim.settings import Settings
from boa.solver.planner import frontier
from boa.units import Usd, UsdPerHour

HERE = Path(__file__).resolve().parent
WITHIN = 0.01
ROUNDING = 1e-9


class Judged(NamedTuple):
    """A budget, what was spent of it, and whether that keeps it."""

    budget: str
    rule: str
    usd: Usd
    spent: Usd
    most: Usd
    """That its jobs wanted."""
    kept: bool
    why: str

    @property
    def off(self) -> float:
        return self.spent / self.usd - 1.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """A run of the study, with its books."""

    study: Study
    calendar: Calendar
    books: Books
    wants: Wanted
    report: SimulationReport

    def judged(self, within: float) -> list[Judged]:
        held = sorted({number for number, _ in self.books.spent})
        periods = [self._period(number, within) for number in held]
        return [self._whole(within), *periods, *(self._team(team, within) for team in TEAMS)]

    def caps(self) -> list[Judged]:
        """The whole's, of what is rented, and those of teams, of what their jobs hold."""
        average = self.calendar.average
        peaks = [("cap", self.study.cap, self.books.peak)]
        peaks += [
            (f"cap of {team.name}", team.cap, self.books.held_peaks.get(team.name, 0.0))
            for team in TEAMS
            if team.cap is not None
        ]
        rule = "at every moment"
        return [
            Judged(name, rule, cap * average, peak, math.inf, *_under(peak, cap * average))
            for name, cap, peak in peaks
        ]

    @property
    def allowed(self) -> Usd:
        return self.calendar.allowed(0.0, self.study.ends)

    def _whole(self, within: float) -> Judged:
        most = sum(most for _, most in self.wants.values())
        spent = sum(self.books.spent.values())
        return judged("whole", "as the calendar says", self.allowed, spent, most, within)

    def _period(self, number: int, within: float) -> Judged:
        period = self.calendar.periods[number]
        hours = sum(
            end - begin
            for begin, end, held in self.calendar.stretches(0.0, self.study.ends)
            if held == number
        )
        spent = sum(usd for (of, _), usd in self.books.spent.items() if of == number)
        most = sum(most for (_, of, _), (_, most) in self.wants.items() if of == number)
        rule = f"${period.budget:.2f}/h"
        return judged(period.name, rule, period.budget * hours / 3600, spent, most, within)

    def _team(self, team: Team, within: float) -> Judged:
        spent = sum(usd for (name, _), usd in self.books.teams.items() if name == team.name)
        most = sum(most for (name, _, _), (_, most) in self.wants.items() if name == team.name)
        right = team.part * self.allowed
        if team.rule == "by the month":
            right = team.part * self.calendar.average * 24 * self.study.days
        found = judged(f"team {team.name}", team.rule, right, spent, most, within)
        horizon_h = min(self.study.pacing_h or loans.HORIZON_H, loans.HORIZON_H)
        due = loans.MOST_HORIZONS * horizon_h * team.part * self.calendar.average
        if found.kept or team.rule != "lends and borrows" or right - spent > due:
            return found
        return found._replace(kept=True, why="has lent it, and it is due back")

    def days(self) -> Measured:
        """By day and period: what was spent of what there was, and what was wanted."""
        table = Measured("By day")
        for (number, day), spent in sorted(self.books.spent.items(), key=lambda one: one[0][::-1]):
            begins, period = day * DAY_S, self.calendar.periods[number]
            seconds = sum(
                end - begin
                for begin, end, held in self.calendar.stretches(begins, begins + DAY_S)
                if held == number
            )
            wants = [both for (_, *of), both in self.wants.items() if of == [number, day]]
            usd, (least, most) = period.budget * seconds / 3600, map(sum, zip(*wants, strict=True))
            off = spent / usd - 1.0
            table.add(
                day=day + 1,
                period=period.name,
                usd=usd,
                spent=spent,
                off=off,
                least=least,
                most=most,
            )
        return table


def judged(budget: str, rule: str, usd: Usd, spent: Usd, most: Usd, within: float) -> Judged:
    off = spent / usd - 1.0
    above, below = off > within, off < -within
    if above and rule == "lends and borrows":
        verdict = True, "has its right, and what others left"
    elif above:
        verdict = False, "above"
    elif below and rule == "borrows: false":
        verdict = True, "not above"
    elif below and most < usd:
        verdict = True, f"wanted ${most:,.0f}"
    else:
        verdict = not below, "below" if below else f"within {within:.1%}"
    return Judged(budget, rule, usd, spent, most, *verdict)


def _under(peak: UsdPerHour, cap: UsdPerHour) -> tuple[bool, str]:
    kept = peak <= cap * (1 + ROUNDING)
    return kept, "never crossed" if kept else "crossed"


def measured(study: Study) -> Measurement:
    made = world(study)
    budget = study.factor * frontier(made.workload).cheapest
    Console(stderr=True).print(f"{len(made.trace.jobs)} jobs, ${budget:.2f}/h")
    calendar, seen = calendar_of(study, budget), Seen()
    settings = Settings(
        interval_s=None,
        provision_s=BOOT_S,
        learning="perfect",
        billing="node",
        pacing_h=study.pacing_h,
        max_spend=study.cap * budget,
        sharing=tree_of(study, made, budget),
        calendar=calendar,
    )
    report = simulate(made, choose("boa", Knobs(budget=budget), "node"), settings, watch=seen)
    books = books_of(seen, calendar, made.gpu_types, study.ends)
    return Measurement(study, calendar, books, wanted(study, made, calendar), report)


def table_of(found: Measurement, within: float) -> Measured:
    table = Measured(
        f"{found.study.days} days by a calendar, {len(TEAMS)} teams",
        note="wanted: what the jobs that come cost at their fastest, if no GPU were idle; a team "
        "is charged for what nobody holds by what its jobs hold",
    )
    for of in (*found.judged(within), *found.caps()):
        verdict = ("kept: " if of.kept else "NOT KEPT: ") + of.why
        table.add(
            budget=of.budget,
            rule=of.rule,
            usd=of.usd,
            spent=of.spent,
            off_above=of.off,
            wanted=of.most if math.isfinite(of.most) else None,
            verdict=verdict,
        )
    return table


def main() -> int:
    options = _arguments()
    asked = {name: getattr(options, name) for name in Study._fields if name in options}
    found = measured(Study(**asked))
    table = table_of(found, options.within)
    show(table, Console(width=150))
    document = found.report.document()
    print(f"mean JCT {document['average_jct_s']:.0f} s, {found.report.wall_s:.0f} s of work")
    write(
        options.json, [table, found.days()], **{name: str(value) for name, value in asked.items()}
    )
    print(f"written to {options.json}")
    return 0 if all(of.kept for of in (*found.judged(options.within), *found.caps())) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=MONTH_DAYS, help=f"{MONTH_DAYS} at most")
    parser.add_argument("--rate", type=float, default=8.0, help="jobs per hour on average")
    parser.add_argument("--swing", type=float, default=-0.25, help="more jobs by day, or fewer")
    parser.add_argument("--night", type=float, default=1.6, help="budget then over the day's")
    parser.add_argument("--factor", type=float, default=1.7, help="budget over what is needed")
    parser.add_argument("--pacing-h", type=float, default=24.0, help="in which money is made good")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--within", type=float, default=WITHIN, help="of a budget: kept")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "month.json")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
