"""Numbers behind a frontier picture: the curve, the chosen plan, Algorithm 1's points."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from boa.amounts import percent
from boa.errors import BudgetTooSmall, NoPlanFound
from boa.model.speedup import Floats
from boa.model.workload import Billing, Workload
from boa.plots.words import Money
from boa.solver.frontier import Frontier
from boa.solver.objective import Routing
from boa.solver.planner import plan
from boa.units import Seconds, UsdPerHour

GLUE_POINTS = 9


@dataclass(frozen=True, slots=True)
class Mark:
    """One point of the plane, and what one more dollar per hour buys there."""

    budget: UsdPerHour
    jct: Seconds
    shadow_price: float = 0.0


@dataclass(frozen=True, slots=True)
class Spread:
    """The bill and the JCT that a budget was simulated to come to, with half their intervals."""

    budget: UsdPerHour
    bill: UsdPerHour
    bill_error: UsdPerHour
    jct: Seconds
    jct_error: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The exact frontier between two budgets, and what is to be held against it."""

    money: Money
    budgets: Floats
    jcts: Floats
    shadow_prices: Floats
    """One per budget: seconds that one more dollar per hour buys from there on."""
    cheapest: UsdPerHour
    slowest_jct: Seconds
    fastest: UsdPerHour
    fastest_jct: Seconds
    chosen: Mark | None = None
    glue: tuple[Mark, ...] = ()
    foretold: tuple[Spread, ...] = ()
    """Points by rising budget, drawn at their bill."""

    def jct_at(self, budget: UsdPerHour) -> Seconds:
        return float(np.interp(budget, self.budgets, self.jcts))


def shadow_price(frontier: Frontier, budget: UsdPerHour) -> float:
    """Seconds of objective that one more dollar per hour buys, from this budget upwards."""
    budgets, objectives = frontier.budgets, frontier.objectives
    after = int(np.searchsorted(budgets, budget * (1 + 1e-12), side="right"))
    if after >= len(budgets):
        return 0.0
    before = max(after - 1, 0)
    run = budgets[after] - budgets[before]
    return float((objectives[before] - objectives[after]) / run) if run > 0 else 0.0


def curve_of(
    workload: Workload,
    frontier: Frontier,
    *,
    budget: UsdPerHour | None = None,
    least: UsdPerHour | None = None,
    most: UsdPerHour | None = None,
) -> Curve:
    """The frontier as it is drawn, from `least` to `most`, with the plan for `budget` marked."""
    low = frontier.at(least).budget if least is not None else frontier.cheapest
    high = most if most is not None else _to_show(frontier, budget)
    if high <= low * (1 + 1e-6):  # nothing to choose: every plan costs the same
        high = 1.25 * low
    inside = frontier.budgets[(frontier.budgets > low) & (frontier.budgets < high)]
    budgets = np.concatenate([[low], inside, [high]])
    chosen = None
    if budget is not None:
        jct = frontier.at(budget).average_jct
        chosen = Mark(budget, jct, shadow_price(frontier, budget))
    return Curve(
        money=Money.of(workload),
        budgets=budgets,
        jcts=np.interp(budgets, frontier.budgets, frontier.average_jcts),
        shadow_prices=np.array([shadow_price(frontier, float(b)) for b in budgets]),
        cheapest=frontier.cheapest,
        slowest_jct=float(frontier.average_jcts[0]),
        fastest=frontier.fastest_budget,
        fastest_jct=frontier.fastest_jct,
        chosen=chosen,
    )


def _to_show(frontier: Frontier, budget: UsdPerHour | None) -> UsdPerHour:
    """A little past the fastest plan; but a long flat tail is cut where it has become flat."""
    flat = frontier.fastest_jct * 1.005
    enough = float(frontier.budgets[int(np.argmax(frontier.average_jcts <= flat))])
    whole = frontier.fastest_budget
    span = enough if whole - frontier.cheapest > 2 * (enough - frontier.cheapest) else whole
    shown = max(span, budget or 0.0)
    return shown + 0.06 * (shown - frontier.cheapest)


def glue_points(
    curve: Curve,
    workload: Workload,
    *,
    rescaling: bool = True,
    routing: Routing = "class",
    billing: Billing = "gpu",
    progress: Callable[[int, int], None] | None = None,
) -> Curve:
    """The curve with the paper's Algorithm 1 at a handful of budgets; where it fails, no point.

    It routes at arrival and knows no caps: for other workloads and routings there are no points.
    """
    if routing != "class" or any(c.max_jct_s is not None for c in workload.classes):
        return curve
    low = max(float(curve.budgets[0]), curve.cheapest * 1.02)
    high = max(low, min(float(curve.budgets[-1]), curve.fastest))
    budgets = np.geomspace(low, high, GLUE_POINTS).tolist()
    if curve.chosen is not None:
        budgets.append(curve.chosen.budget)
    found = []
    for done, budget in enumerate(sorted(set(budgets))):
        if progress is not None:
            progress(done, len(budgets))
        try:
            solution = plan(
                workload,
                budget,
                solver="glue",
                rescaling=rescaling,
                routing=routing,
                billing=billing,
            )
        except (BudgetTooSmall, NoPlanFound):
            continue
        found.append(Mark(budget, solution.average_jct))
    return replace(curve, glue=tuple(found))


def slower(curve: Curve) -> str:
    """How far Algorithm 1's points lie above the frontier: `2.5–32 %`."""
    above = [max(0.0, mark.jct / curve.jct_at(mark.budget) - 1) for mark in curve.glue]
    least, most = percent(min(above)), percent(max(above))
    return least if least == most else f"{least.removesuffix(' %')}–{most}"
