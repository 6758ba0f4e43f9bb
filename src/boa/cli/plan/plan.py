"""`boa plan`: the plan that finishes jobs soonest within a budget."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.amounts import rate
from boa.cli import options, parsers, shell
from boa.cli.console import check_writable, emit_json, note, note_written, working, write_file
from boa.cli.live.service import DOLLARS, connect, rebuilt
from boa.cli.options import Json
from boa.cli.plan.foretelling import NodeTimes
from boa.cli.plan.planning_rules import PlanningRules
from boa.cli.plan.week import tell_week
from boa.errors import InputError, UsageError
from boa.units import Seconds, UsdPerHour

if TYPE_CHECKING:
    from boa.cli.plan.plan_table import FollowingService
    from boa.model.budgets import Budget
    from boa.model.workload import Workload
    from boa.sim.foretold import Foretold
    from boa.solver.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A budget, or the plan of a service instead."""

    budget: Annotated[
        UsdPerHour | None,
        options.dollars("--budget", "Average spend per hour. With every price 1 it counts GPUs."),
    ] = None
    budgets: Annotated[
        Path | None,
        shell.Option(
            "--budgets",
            metavar="FILE",
            help="Parts of a budget (teams, projects), instead of --budget: what each has by "
            "right, and which classes it pays for (YAML or JSON).",
        ),
    ] = None
    calendar: Annotated[
        Path | None,
        shell.Option(
            "--calendar",
            metavar="FILE",
            help="Budgets and prices by the hour of the week, instead of --budget: work may wait "
            "for cheap hours (YAML or JSON).",
        ),
    ] = None
    live: Annotated[
        bool,
        shell.Option("--live", help="Show the plan that the running service follows instead."),
    ] = False

    @property
    def given(self) -> bool:
        return any(one is not None for one in (self.budget, self.budgets, self.calendar))


@dataclass(frozen=True, slots=True, kw_only=True)
class Solving:
    """The solver, and the shape of the plan."""

    solver: Annotated[
        str,
        options.choice(
            "--solver",
            options.SOLVERS,
            "exact: the optimum, proven. glue: the paper's Algorithm 1. milp: HiGHS, an "
            "independent check (slow).",
        ),
    ] = "exact"
    deterministic: Annotated[
        bool,
        shell.Option(
            "--deterministic",
            help="One width sequence per class, instead of splitting one class's jobs over two.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Effort that a solver makes."""

    gap: Annotated[
        float | None,
        shell.Option(
            "--gap",
            metavar="G",
            parser=parsers.number("--gap", "a finite number >= 0, such as 0.05", zero=True),
            help="Stop searching (--deterministic, milp) this close to the bound: 0.05 is 5 %.",
        ),
    ] = None
    seed: Annotated[int, options.seed("Seed of --solver glue, which samples.")] = 0
    time_limit_s: Annotated[
        Seconds | None,
        shell.Option(
            "--time-limit-s",
            metavar="S",
            parser=parsers.number("--time-limit-s", "a finite number of seconds > 0"),
            help="Give up searching (milp) after so many seconds; the best plan found is printed.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Places that the plan goes to."""

    output: Annotated[
        Path | None, shell.Option("-o", "--output", metavar="FILE", help="Write the plan as JSON.")
    ] = None
    plot: Annotated[
        Path | None,
        options.plot("Draw every class's GPUs by epoch (.png, .svg, .pdf, .html)."),
    ] = None
    json: Json = False


def plan(
    context: shell.Context,
    workload: Annotated[Path | None, options.WORKLOAD] = None,
    *,
    goal: Goal,
    solving: Solving,
    rules: PlanningRules,
    effort: Effort,
    nodes: NodeTimes,
    results: Results,
) -> None:
    """Find the plan with the shortest average JCT that a budget can buy, and
    prove it.

    For every job class the plan says how many GPUs of which type its jobs
    hold in each epoch. Nothing is rented. A budget below what the workload
    needs ends with exit code 3 and names the cheapest.

    [bold]Examples[/bold]
    [dim]$[/dim] boa plan jobs.yaml --budget 40
    [dim]$[/dim] boa plan jobs.yaml --budget 40 --json -o plan.json
    [dim]$[/dim] boa plan jobs.yaml --budget 40 --plot widths.svg
    [dim]$[/dim] boa plan jobs.yaml --budget 40 --solver milp --gap 0.05 --time-limit-s 60
    [dim]$[/dim] boa plan jobs.yaml --budget 40 --billing node --boot-s 120
    [dim]$[/dim] boa plan jobs.yaml --budgets teams.yaml
    [dim]$[/dim] boa plan jobs.yaml --calendar week.yaml
    [dim]$[/dim] boa plan --live
    """
    check_writable(results.output, "--output")
    check_writable(results.plot, "--plot")
    if goal.live:
        _check_live(context)
        _tell_live(results)
        return
    if workload is None or not goal.given:
        missing = "argument 'WORKLOAD'" if workload is None else "option '--budget'"
        raise UsageError(f"Missing {missing}. See 'boa plan --help'.")
    nodes.check(rules.billing)
    if goal.budgets is not None or goal.calendar is not None:
        _check_file(goal, solving, nodes, results)
    read = options.read_workload(workload)
    if goal.budgets is not None:
        _tell(read, _shared(read, goal.budgets, workload, solving, rules), results)
        return
    if goal.calendar is not None:
        tell_week(read, goal.calendar, workload, rules, as_json=results.json)
        return
    assert goal.budget is not None
    from boa.solver.planner import plan as find_plan

    how: dict[str, Any] = {**asdict(solving), **rules.for_solver(), **asdict(effort)}
    with working(f"solving ({solving.solver})"), options.solving(workload):
        solution = find_plan(read, goal.budget, **how)
    foretold = nodes.foretell(read, [goal.budget]).get(goal.budget)
    _tell(read, solution, results, foretold=foretold)


def _check_file(goal: Goal, solving: Solving, nodes: NodeTimes, results: Results) -> None:
    """Refuse what does not go with money that a file tells of."""
    file = "--budgets" if goal.calendar is None else "--calendar"
    given = {
        "--budget": goal.budget is not None,
        "--budgets": goal.budgets is not None and goal.calendar is not None,
        "--deterministic": solving.deterministic,
        f"--solver {solving.solver}": solving.solver not in _SOLVERS[file],
        "--boot-s": nodes.boot_s is not None,
        "--output": results.output is not None and goal.calendar is not None,
        "--plot": results.plot is not None and goal.calendar is not None,
    }
    for option, there in given.items():
        if there:
            raise UsageError(f"{option} does not go with {file}: see 'boa plan --help'.")


_SOLVERS = {"--budgets": ("exact", "milp"), "--calendar": ("exact",)}


def _check_nobody_is_named(tree: "Budget", budgets: Path) -> None:
    """A workload has classes, and says nothing of who submits them."""
    for part in tree.every:
        field, names = ("users", part.users) if part.users else ("teams", part.teams)
        if names:
            expected = "classes: a workload does not say whose jobs are (the service knows)"
            raise InputError(f"{budgets}: {part.name}: {field}", names[0], expected)


def _check_projects(tree: "Budget", budgets: Path) -> None:
    """Whoever spends its own money alone needs some on average, or no plan has its jobs run."""
    for part in tree.every:
        if part.max_per_hour == 0 and part.every_class:
            expected = (
                "true, or money by the hour, the month or the quarter: a plan is for a while, and "
                "on average a total comes to nothing"
            )
            raise InputError(f"{budgets}: {part.name}: borrows", "false", expected)


def _shared(
    read: "Workload", budgets: Path, workload: Path, solving: Solving, rules: PlanningRules
) -> "Solution":
    from boa.formats.budgets import load_budgets
    from boa.solver.planner import plan_shared

    tree = options.read(load_budgets, budgets).on_average
    _check_nobody_is_named(tree, budgets)
    _check_projects(tree, budgets)
    known = {found.name for found in read.classes}
    unknown = [name for name in tree.every_class if name not in known]
    if unknown:
        payer = tree.payers[unknown[0]]
        raise InputError(
            f"{budgets}: {payer}: classes",
            unknown[0],
            f"a class of {workload}: {', '.join(c.name for c in read.classes)}",
        )
    try:
        with working(f"solving ({solving.solver})"), options.solving(workload):
            return plan_shared(read, tree, solver=solving.solver, **rules.for_solver())
    except InputError as wrong:
        raise wrong if str(workload) in wrong.field else wrong.inside(str(budgets)) from None


def _check_live(context: shell.Context) -> None:
    """Refuse what would be asked of a solver: the plan is there already."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in _LIVE:
            named = parameter.opts[0] if parameter.param_type_name == "option" else "WORKLOAD"
            raise UsageError(f"{named} does not go with --live: the service has made the plan.")


_LIVE = ("live", "output", "plot", "json")


def _tell_live(results: Results) -> None:
    from boa.cli.plan.plan_table import FollowingService

    with connect() as client:
        shown, money = client.plan(), client.budget()
    budget, needed = money["budget_per_hour"], shown["too_small_per_hour"]
    service = FollowingService(budget, money["effective_budget_per_hour"], needed)
    _tell(*rebuilt(shown), results, service)
    if results.json and needed is not None:
        note(f"the budget of {rate(budget)} cannot keep up: it takes {rate(needed)} to")


def _tell(
    read: "Workload",
    solution: "Solution",
    results: Results,
    service: "FollowingService | None" = None,
    foretold: "Foretold | None" = None,
) -> None:
    """`service`: the one that follows the plan; its money is dollars, whatever GPUs cost."""
    more = {} if foretold is None else {"foretold": foretold.document()}
    _save(solution, results.output)
    if results.plot is not None:
        from boa.plots.render import width_picture

        with working("drawing"):
            picture = width_picture(read, solution, results.plot.suffix)
        write_file(results.plot, picture, "--plot")
    if results.json:
        from boa.solver.solution import as_document

        emit_json({**as_document(solution), **more})
    else:
        from boa.cli.plan.plan_table import print_solution

        print_solution(read, solution, None if service is None else DOLLARS, service, foretold)
    note_written({"plan": results.output, "width plot": results.plot})


def _save(solution: "Solution", output: Path | None) -> None:
    if output is not None:
        import json

        from boa.solver.solution import as_document

        text = json.dumps(as_document(solution), indent=1, allow_nan=False, ensure_ascii=False)
        write_file(output, text + "\n", "--output")
