"""A plan as a person reads it at a glance: headline, one row per class, the cluster."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boa.amounts import duration, percent
from boa.cli.console import console
from boa.cli.markup import escape
from boa.cli.plan.foretelling import bill_words, jct_words
from boa.cli.tables import Table
from boa.model.plan import ClassPlan
from boa.model.workload import JobClass, Workload
from boa.plots.words import Money, routed_runs, runs, significant
from boa.solver.objective import ClassOutcome
from boa.solver.shared import BudgetOutcome
from boa.solver.solution import Frugal, Solution
from boa.units import Seconds, UsdPerHour

if TYPE_CHECKING:
    from boa.sim.foretold import Foretold

WIDE = 110
"""Columns from which figures and widths fit side by side."""
MOST_CLASSES = 40
MOST_RUNS = 8
SMALL = 1e-9
NOISE = 1e-4
"""Part of the jobs, or of their JCT, below which a way to run is not worth a line."""
FAINT = 1e-6
"""Part of the objective below which the saving of one more dollar is not worth a line."""


@dataclass(frozen=True, slots=True)
class FollowingService:
    """Facts of the service that follows a plan, which the plan itself does not hold."""

    budget: UsdPerHour
    effective: UsdPerHour
    """USD per hour that it plans with now, so that the average comes out at the budget."""
    too_small: UsdPerHour | None
    """The least that could keep up, where the budget cannot."""


def print_solution(
    workload: Workload,
    solution: Solution,
    money: Money | None = None,
    service: FollowingService | None = None,
    foretold: "Foretold | None" = None,
) -> None:
    out, money = console(), money or Money.of(workload)
    for name, said in headline(solution, money, service, boots=foretold is not None):
        out.print(f"[bold]{name:<13}[/bold] {said}")
    if foretold is not None:
        out.print(f"[bold]{'foretold':<13}[/bold] {_foretold(foretold, money)}")
    out.print()
    if solution.budgets:
        out.print(budget_table(workload, solution, money))
        out.print()
    if out.width >= WIDE:
        out.print(class_table(workload, solution, money, figures=True, widths=True))
    else:
        out.print(class_table(workload, solution, money, figures=True))
        out.print()
        out.print(class_table(workload, solution, money, widths=True))
    hidden = len(workload.classes) - MOST_CLASSES
    if hidden > 0:
        out.print(f"[dim]… and {hidden:,} classes that spend less (all of them: --json)[/dim]")
    out.print()
    for line in cluster_lines(solution):
        out.print(line)


def _foretold(found: "Foretold", money: Money) -> str:
    bill, jct = bill_words(found, money), jct_words(found)
    return f"a bill of {bill} and an average JCT of {jct} where nodes are billed (simulated)"


def headline(
    solution: Solution,
    money: Money,
    service: FollowingService | None,
    *,
    boots: bool = False,
) -> Iterator[tuple[str, str]]:
    """`boots`: what is foretold follows, which money beyond the fastest plan's is of use for."""
    scarce = service is not None and service.too_small is not None
    useful = solution.shadow_price > FAINT * solution.objective
    yield "budget", _budget(solution, money, service)
    if not (scarce or useful or _all_spent(solution, money)):
        spare = money.rate(solution.left_over)
        unless = ", unless nodes boot: see foretold" if boots else ""
        said = f"{spare}: even the fastest plan has no use for it{unless}"
        yield "left over", f"[yellow]{said}[/yellow]"
    yield "average JCT", f"[bold green]{spelled(solution.average_jct)}[/bold green]"
    if abs(solution.objective - solution.average_jct) > 1e-9 * solution.average_jct:
        yield "objective", f"{spelled(solution.objective)}, weighted by class"
    yield "proof", proof(solution)
    if useful and not scarce:  # else the price is one of money that is not there
        saving = money.saving(solution.shadow_price, solution.objective)
        yield "shadow price", f"{saving} per job"
    yield "solved in", f"{duration(solution.solve_time)} ({solution.solver})"


def _budget(solution: Solution, money: Money, service: FollowingService | None) -> str:
    planned = money.rate(solution.budget)
    if service is None:
        said = planned
    else:
        # A plan beyond the budget was made with what it needs.
        planned = planned if service.too_small is None else money.rate(service.effective)
        said = money.rate(service.budget)
    if said != planned:
        said += f", planned with {planned}"
    if service is not None and service.too_small is not None:
        needs = money.rate(service.too_small)
        return f"{said}, [red]which cannot keep up: this, the cheapest plan, needs {needs}[/red]"
    if _all_spent(solution, money):
        return f"{said}, all of it spent"
    return f"{said}, of which spent: {money.rate(solution.spend)}"


def _all_spent(solution: Solution, money: Money) -> bool:
    return money.rate(solution.budget) == money.rate(solution.spend)


def spelled(seconds: float) -> str:
    """A duration in its best unit, and in seconds where that is another one."""
    best = duration(seconds)
    return best if best.endswith(" s") else f"{best} ({seconds:,.0f} s)"


def proof(solution: Solution) -> str:
    bound = f"no plan is below {spelled(solution.lower_bound)}"
    if solution.gap <= SMALL:
        return f"optimal: {bound}"
    above = f"{percent(solution.gap)} above the bound"
    if solution.proven:
        return f"{above}; {bound}; the best of its kind, proven"
    return f"{above}; {bound}"


def budget_table(workload: Workload, solution: Solution, money: Money) -> Table:
    """One row per budget that is shared, its parts below it, and what no part of it pays for."""
    table = Table()
    table.add_column("budget", no_wrap=True, max_width=24)
    columns = ("guaranteed", "at most", "spends", "JCT", "alone", f"{money.one_more} saves")
    for column in columns:
        table.add_column(column, justify="right")
    depth: dict[str | None, int] = {None: -1}
    for budget in solution.budgets:
        depth[budget.name] = depth[budget.above] + 1
        whole = budget.above is None
        most = budget.per_hour if whole else budget.max_per_hour
        table.add_row(
            "  " * depth[budget.name] + escape(budget.name),
            "" if whole else money.rate(budget.per_hour),
            "" if most is None else money.rate(most),
            money.rate(budget.spend),
            "no jobs" if budget.average_jct is None else duration(budget.average_jct),
            "" if whole else _alone(budget),
            duration(budget.saved_by_one_more) if budget.saved_by_one_more else "nothing",
        )
        if own := _own(workload, solution, budget):
            spend, jct = own
            name = f"{'  ' * (depth[budget.name] + 1)}[dim]in no part[/dim]"
            table.add_row(name, "", "", money.rate(spend), duration(jct), "", "")
    return table


def _own(
    workload: Workload, solution: Solution, budget: BudgetOutcome
) -> tuple[UsdPerHour, Seconds] | None:
    """Spend and average JCT of classes that it pays for itself, beside its parts'."""
    parts = [part for part in solution.budgets if part.above == budget.name]
    own = set(budget.classes).difference(*(part.classes for part in parts))
    jobs = sum(workload.classes[i].arrivals_per_hour for i in own)
    if not (parts and jobs):
        return None
    got = {i: solution.outcome.classes[i] for i in own}
    seconds = sum(workload.classes[i].arrivals_per_hour * got[i].jct for i in own)
    return sum(one.spend for one in got.values()), seconds / jobs


def _alone(budget: BudgetOutcome) -> str:
    if budget.average_jct is None:
        return ""
    return "cannot keep up" if budget.alone_jct is None else duration(budget.alone_jct)


def class_table(
    workload: Workload,
    solution: Solution,
    money: Money,
    *,
    figures: bool = False,
    widths: bool = False,
) -> Table:
    """One row per class: its figures, its widths, or both."""
    table = Table()
    table.add_column("class", no_wrap=True, max_width=24)
    if figures:
        for column in ("jobs", "JCT", "spend", "of all", "rescalings"):
            table.add_column(column, justify="right", no_wrap=True)
    if widths:
        table.add_column("GPUs, and what they gain against the class's cheapest way")
    for job_class, class_plan, got, frugal in _rows(workload, solution):
        cells = [escape(job_class.name)]
        if figures:
            cells += [
                percent(job_class.arrivals_per_hour / workload.arrivals_per_hour),
                duration(got.jct),
                money.rate(got.spend),
                percent(got.spend / solution.spend),
                f"{got.rescalings:.3g}",
            ]
        if widths:
            gains = f"[dim]{gained(money, got, frugal)}[/dim]"
            cells.append("\n".join([*map(escape, ways(class_plan)), gains]))
        table.add_row(*cells)
    return table


def _rows(
    workload: Workload, solution: Solution
) -> list[tuple[JobClass, ClassPlan, ClassOutcome, Frugal]]:
    """All classes in the workload's order; of too many, those that spend most."""
    rows = list(
        zip(
            workload.classes,
            solution.plan.classes,
            solution.outcome.classes,
            solution.frugal,
            strict=True,
        )
    )
    if len(rows) <= MOST_CLASSES:
        return rows
    return sorted(rows, key=lambda row: -row[2].spend)[:MOST_CLASSES]


def ways(plan: ClassPlan) -> Iterator[str]:
    """One line per variant: its share, then its runs."""
    if plan.routes:
        yield from shortened(list(routed_runs(plan)), "")
    variants = [variant for variant in plan.variants if variant.share >= NOISE]
    for variant in variants:
        share = f"{percent(variant.share)}: " if len(variants) > 1 else ""
        yield share + " → ".join(shortened(list(runs(variant)), " "))


def shortened(parts: list[str], joint: str) -> list[str]:
    if len(parts) <= MOST_RUNS:
        return parts
    kept = MOST_RUNS // 2
    return [*parts[:kept], f"{joint}… {len(parts) - 2 * kept} more{joint}".strip(), *parts[-kept:]]


def gained(money: Money, got: ClassOutcome, frugal: Frugal) -> str:
    saved, extra = frugal.jct - got.jct, got.cost - frugal.cost
    if saved <= NOISE * frugal.jct:
        return "its cheapest way"
    return f"saves {duration(saved)} for {money.job(extra)} more per job"


def cluster_lines(solution: Solution) -> Iterator[str]:
    yield "[bold]GPUs in use[/bold] [dim](under Poisson arrivals; real ones are burstier)[/dim]"
    for name, size in solution.cluster.items():
        spread = f"{significant(size.mean)} ± {significant(size.std)}"
        said = f"{spread:<16} P95 {size.p95:,}" if size.mean > 0 else "[dim]none[/dim]"
        yield f"  {escape(name):<14} {said}"
