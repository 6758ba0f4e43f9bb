"""The exact plan for a week in which money changes: when a job runs is chosen with its widths.

Every period has a budget, and perhaps prices, of its own. A job that comes in one may run there or
wait for another to begin; waiting counts as JCT, at the job's weight. It is taken to run within the
period that it starts in: true of jobs that are short against periods, and a promise too good of
those that are not.

One multiplier for every period. Given them the classes do not see each other: a class that comes in
p takes the period q and the sequence of least w·(wait + time) + μ_q·cost. So the classes' known
vertices are columns of a linear program with a row for every budget, whose dual prices name the
multipliers to ask at next, until no class has anything better: Dantzig–Wolfe, as in
`lagrangian.py`, with a master that sorting no longer solves. Jobs of a class with a cap on its JCT
do not wait.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from boa.errors import BoaError, BudgetTooSmall
from boa.model.calendar import Calendar
from boa.model.speedup import Floats
from boa.model.workload import Workload
from boa.solver.chain import Chain
from boa.solver.lagrangian import ROUNDING, cheapest
from boa.solver.objective import Rules
from boa.solver.pricing import Pricing
from boa.units import PerHour, Seconds, UsdPerHour

_SMALL = 1e-9
MOST_ROUNDS = 200
"""More than any week has ever taken; each round adds a sequence to some class."""


@dataclass(frozen=True, slots=True)
class PeriodOutcome:
    """One period of the week under the plan."""

    name: str
    share: float
    """Part of the week that it lasts."""
    budget: UsdPerHour
    spend: UsdPerHour
    """While it lasts."""
    multiplier: float
    """Seconds of objective that one more dollar per hour, while it lasts, would buy."""
    average_jct: Seconds
    """Mean over jobs that come in it, their waiting included."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A share of a class's jobs that come in one period and run in another."""

    job_class: str
    came: str
    runs: str
    share: float
    """Part of those that come."""
    wait: Seconds


@dataclass(frozen=True, slots=True)
class WeekPlan:
    average_jct: Seconds
    objective: Seconds
    lower_bound: Seconds
    spend: UsdPerHour
    """Over the week."""
    cheapest: UsdPerHour
    """The least that would do over the week, if everybody ran where that costs the least."""
    periods: tuple[PeriodOutcome, ...]
    waiting: tuple[Waiting, ...]

    @property
    def gap(self) -> float:
        return self.objective / self.lower_bound - 1.0


@dataclass(frozen=True, slots=True)
class _Column:
    """Jobs of a class that come in `came` and run in `runs`, all by one sequence."""

    group: int
    came: int
    runs: int
    job_class: int
    jct: Seconds
    objective: float
    spend: UsdPerHour
    """Per hour of the period that they run in, while it lasts …"""
    budget: UsdPerHour
    """… and its budget."""


def plan_week(
    workload: Workload,
    calendar: Calendar,
    rules: Rules | None = None,
    most_wait_s: Seconds = math.inf,
) -> WeekPlan:
    """The shortest (weighted) average JCT that keeps the budget of every period. `most_wait_s`: for
    no period that is further away, on average, does anybody wait."""
    week = _Week(workload, calendar, rules or Rules(), most_wait_s)
    week.refuse_too_little()
    before: list[tuple[int, int, float]] = []
    for _ in range(MOST_ROUNDS):
        columns = week.columns()
        shares, mus = _solved(columns, week)
        asked = week.questions(mus)
        if not asked or asked == before:  # what is left is below the precision of the numbers
            return week.outcome(columns, shares, mus)
        before = asked
        week.ask(asked)
    raise BoaError("the week's plan does not come to an end: this is a bug, please report it")


class _Week:
    """Classes at the prices of every period."""

    def __init__(
        self, workload: Workload, calendar: Calendar, rules: Rules, most_wait_s: Seconds
    ) -> None:
        self.workload, self.calendar, self.most_wait_s = workload, calendar, most_wait_s
        count = len(calendar.periods)
        self.shares = [calendar.share(n) for n in range(count)]
        self.used = [n for n in range(count) if self.shares[n] > 0]
        self.pricings = {n: Pricing.of(calendar.workload(workload, n), rules) for n in self.used}
        for pricing in self.pricings.values():
            cheapest(pricing)
        self.arrivals: list[PerHour] = next(iter(self.pricings.values())).tables.arrivals.tolist()
        self.waits = {(p, q): calendar.wait(p, q) for p in self.used for q in self.used}
        self.coming = [i for i, rate in enumerate(self.arrivals) if rate > 0]

    @property
    def groups(self) -> list[tuple[int, int]]:
        """(class, period that it comes in): each has all of its jobs somewhere."""
        return [(i, p) for i in self.coming for p in self.used]

    def refuse_too_little(self) -> None:
        """Even if everybody ran where it is cheapest. Which period is short, only the program
        knows; the whole is told here."""
        allowed, needed = self.calendar.average, self.cheapest
        if allowed < needed * (1 - ROUNDING):
            raise BudgetTooSmall(allowed, needed)

    @property
    def cheapest(self) -> UsdPerHour:
        return sum(
            self.arrivals[i]
            * min(pricing.chains[i].points()[-1].cost for pricing in self.pricings.values())
            for i in self.coming
        )

    def columns(self) -> list[_Column]:
        found = []
        for group, (i, p) in enumerate(self.groups):
            jobs = self.arrivals[i] * self.shares[p]
            for q in self.used:
                chain, wait = self.pricings[q].chains[i], self.waits[p, q]
                if wait and (chain.cap is not None or wait > self.most_wait_s):
                    continue
                for point in _points(chain):
                    jct = point[0] + wait
                    found.append(
                        _Column(
                            group,
                            p,
                            q,
                            i,
                            jct,
                            jobs * chain.weight * jct,
                            jobs * point[1] / self.shares[q],
                            self.calendar.periods[q].budget,
                        )
                    )
        return found

    def questions(self, mus: Sequence[float]) -> list[tuple[int, int, float]]:
        """(period, class, multiplier) at which it must be asked before the prices prove anything.
        A dollar per hour of a period is one of its share of the week."""
        return [
            (q, i, question)
            for q in self.used
            for i in self.coming
            for question in self.pricings[q].chains[i].questions(mus[q] / self.shares[q])
        ]

    def ask(self, asked: Sequence[tuple[int, int, float]]) -> None:
        for q, pricing in self.pricings.items():
            mine = [(i, mu) for period, i, mu in asked if period == q]
            if mine:
                pricing.ask([i for i, _ in mine], [mu for _, mu in mine])

    def outcome(self, columns: Sequence[_Column], shares: Floats, mus: Sequence[float]) -> WeekPlan:
        taken = [(column, float(x)) for column, x in zip(columns, shares, strict=True) if x > 0]
        total = sum(self.arrivals)
        objective = sum(x * column.objective for column, x in taken)
        return WeekPlan(
            average_jct=sum(
                x * self.arrivals[c.job_class] * self.shares[c.came] * c.jct for c, x in taken
            )
            / total,
            objective=objective,
            lower_bound=min(self._bound(columns, mus), objective),
            spend=sum(x * c.spend * self.shares[c.runs] for c, x in taken),
            cheapest=self.cheapest,
            periods=tuple(self._period(n, taken, mus[n]) for n in self.used),
            waiting=tuple(self._waiting(taken)),
        )

    def _bound(self, columns: Sequence[_Column], mus: Sequence[float]) -> Seconds:
        """Dual value: every group at its best, less what the budgets are worth."""
        best = np.full(len(self.groups), np.inf)
        for column in columns:
            value = column.objective + mus[column.runs] * column.spend
            best[column.group] = min(best[column.group], value)
        paid = sum(mus[n] * self.calendar.periods[n].budget for n in self.used)
        return float(best.sum()) - paid

    def _period(
        self, number: int, taken: Sequence[tuple[_Column, float]], multiplier: float
    ) -> PeriodOutcome:
        period = self.calendar.periods[number]
        came = [(c, x * self.arrivals[c.job_class]) for c, x in taken if c.came == number]
        return PeriodOutcome(
            name=period.name,
            share=self.shares[number],
            budget=period.budget,
            spend=sum(x * c.spend for c, x in taken if c.runs == number),
            multiplier=multiplier,
            average_jct=sum(jobs * c.jct for c, jobs in came) / sum(jobs for _, jobs in came),
        )

    def _waiting(self, taken: Sequence[tuple[_Column, float]]) -> list[Waiting]:
        sums: dict[tuple[int, int, int], float] = {}
        for column, x in taken:
            if column.came != column.runs:
                key = (column.job_class, column.came, column.runs)
                sums[key] = sums.get(key, 0.0) + x
        names = [period.name for period in self.calendar.periods]
        return [
            Waiting(self.workload.classes[i].name, names[p], names[q], share, self.waits[p, q])
            for (i, p, q), share in sums.items()
            if share > _SMALL
        ]


def _points(chain: Chain) -> list[tuple[Seconds, float]]:
    return [(point.time, point.cost) for point in chain.points()]


def _solved(columns: Sequence[_Column], week: _Week) -> tuple[Floats, list[float]]:
    """Shares of the columns, and the multiplier of every period."""
    periods = week.calendar.periods
    groups, rows = len(week.groups), {q: n for n, q in enumerate(week.used)}
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(columns), groups + len(rows)
    lp.col_cost_ = np.array([column.objective for column in columns])
    lp.col_lower_, lp.col_upper_ = np.zeros(len(columns)), np.full(len(columns), np.inf)
    lp.row_lower_ = np.concatenate([np.ones(groups), np.full(len(rows), -np.inf)])
    lp.row_upper_ = np.concatenate([np.ones(groups), np.ones(len(rows))])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = 2 * np.arange(len(columns) + 1, dtype=np.int32)
    entries = [
        ((column.group, 1.0), (groups + rows[column.runs], column.spend / column.budget))
        for column in columns
    ]
    lp.a_matrix_.index_ = np.array([at for pair in entries for at, _ in pair], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([value for pair in entries for _, value in pair])
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("primal_feasibility_tolerance", _SMALL)
    solver.setOptionValue("dual_feasibility_tolerance", _SMALL)
    solver.passModel(lp)
    solver.solve()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        raise _short(week)
    if status != highspy.HighsModelStatus.kOptimal:
        raise BoaError(f"HiGHS stopped without an answer: {solver.modelStatusToString(status)}")
    solution = solver.getSolution()
    duals = list(solution.row_dual)
    mus = [0.0] * len(periods)
    for q, n in rows.items():
        mus[q] = max(0.0, -duals[groups + n] / periods[q].budget)
    return np.array(solution.col_value), mus


def _short(week: _Week) -> BudgetTooSmall:
    """The cheapest plan does not fit, whoever waits for whom: prices differ, and so do budgets."""
    dearest = {
        q: sum(week.arrivals[i] * pricing.chains[i].points()[-1].cost for i in week.coming)
        for q, pricing in week.pricings.items()
    }
    q = max(dearest, key=lambda n: dearest[n] - week.calendar.periods[n].budget)
    period = week.calendar.periods[q]
    return BudgetTooSmall(period.budget, dearest[q], period.name)
