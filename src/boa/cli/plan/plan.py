"""`boa plan`: the plan that finishes jobs soonest within a budget."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from boa.cli import options, parsers, shell
from boa.cli.console import check_writable, emit_json, note, working, write_file
from boa.cli.live.service import DOLLARS, connect, rate, rebuilt
from boa.cli.options import BillingOption, Json, NoRescaling, RoutingOption
from boa.errors import UsageError

if TYPE_CHECKING:
    from boa.cli.plan.plan_table import FollowingService
    from boa.model.workload import Workload
    from boa.solver.solution import Solution


def plan(
    context: shell.Context,
    workload: Annotated[
        Path | None,
        shell.Argument(
            metavar="WORKLOAD",
            help="Workload file, YAML or JSON (`boa schema workload` describes it).",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        shell.Option(
            "--budget",
            metavar="USD",
            parser=parsers.money("--budget"),
            help="Average spend per hour. With every price 1 it counts GPUs.",
        ),
    ] = None,
    live: Annotated[
        bool,
        shell.Option(
            "--live", metavar="", help="Show the plan that the running service follows instead."
        ),
    ] = False,
    solver: Annotated[
        str,
        shell.Option(
            "--solver",
            metavar="|".join(options.SOLVERS),
            parser=parsers.one_of("--solver", options.SOLVERS),
            help="exact: the optimum, proven. glue: the paper's Algorithm 1. milp: HiGHS, an "
            "independent check (slow).",
        ),
    ] = "exact",
    deterministic: Annotated[
        bool,
        shell.Option(
            "--deterministic",
            metavar="",
            help="One width sequence per class, instead of splitting one class's jobs over two.",
        ),
    ] = False,
    no_rescaling: NoRescaling = False,
    routing: RoutingOption = "class",
    billing: BillingOption = "gpu",
    gap: Annotated[
        float | None,
        shell.Option(
            "--gap",
            metavar="G",
            parser=parsers.number("--gap", "a finite number >= 0, such as 0.05", zero=True),
            help="Stop searching (--deterministic, milp) this close to the bound: 0.05 is 5 %.",
        ),
    ] = None,
    seed: Annotated[
        int,
        shell.Option(
            "--seed",
            metavar="N",
            parser=parsers.whole("--seed", 0),
            help="Seed of --solver glue, which samples.",
        ),
    ] = 0,
    time_limit: Annotated[
        float | None,
        shell.Option(
            "--time-limit-s",
            metavar="S",
            parser=parsers.number("--time-limit-s", "a finite number of seconds > 0"),
            help="Give up searching (milp) after so many seconds; the best plan found is printed.",
        ),
    ] = None,
    output: Annotated[
        Path | None, shell.Option("-o", "--output", metavar="FILE", help="Write the plan as JSON.")
    ] = None,
    plot: Annotated[
        Path | None,
        shell.Option(
            "--plot",
            metavar="FILE",
            parser=parsers.picture("--plot"),
            help="Draw every class's GPUs by epoch (.png, .svg, .pdf, .html).",
        ),
    ] = None,
    json: Json = False,
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
    [dim]$[/dim] boa plan --live
    """
    check_writable(output, "--output")
    check_writable(plot, "--plot")
    if live:
        _check_live(context)
        _tell_live(output, plot, json)
        return
    if workload is None or budget is None:
        missing = "argument 'WORKLOAD'" if workload is None else "option '--budget'"
        raise UsageError(f"Missing {missing}. See 'boa plan --help'.")
    read = options.read_workload(workload)
    from boa.solver.planner import plan as find_plan

    with working(f"solving ({solver})"), options.solving(workload):
        solution = find_plan(
            read,
            budget,
            solver=solver,
            deterministic=deterministic,
            rescaling=not no_rescaling,
            routing=routing,
            billing=billing,
            gap=gap,
            seed=seed,
            time_limit_s=time_limit,
        )
    _tell(read, solution, output, plot, json)


def _check_live(context: shell.Context) -> None:
    """Refuse what would be asked of a solver: the plan is there already."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in _LIVE:
            named = parameter.opts[0] if parameter.param_type_name == "option" else "WORKLOAD"
            raise UsageError(f"{named} does not go with --live: the service has made the plan.")


_LIVE = ("live", "output", "plot", "json")


def _tell_live(output: Path | None, plot: Path | None, json: bool) -> None:
    from boa.cli.plan.plan_table import FollowingService

    with connect() as client:
        shown, money = client.plan(), client.budget()
    budget, needed = money["budget_per_hour"], shown["too_small_per_hour"]
    service = FollowingService(budget, money["effective_budget_per_hour"], needed)
    _tell(*rebuilt(shown), output, plot, json, service)
    if json and needed is not None:
        note(f"the budget of {rate(budget)} cannot keep up: it takes {rate(needed)} to")


def _tell(
    read: "Workload",
    solution: "Solution",
    output: Path | None,
    plot: Path | None,
    json: bool,
    service: "FollowingService | None" = None,
) -> None:
    """`service`: the one that follows the plan; its money is dollars, whatever GPUs cost."""
    _save(solution, output)
    if plot is not None:
        from boa.plots.render import width_picture

        with working("drawing"):
            picture = width_picture(read, solution, plot.suffix)
        write_file(plot, picture, "--plot")
    if json:
        from boa.solver.solution import as_document

        emit_json(as_document(solution))
    else:
        from boa.cli.plan.plan_table import print_solution

        print_solution(read, solution, None if service is None else DOLLARS, service)
    for kind, path in (("plan", output), ("width plot", plot)):
        if path is not None:
            note(f"{kind} written to {path}")


def _save(solution: "Solution", output: Path | None) -> None:
    if output is not None:
        import json

        from boa.solver.solution import as_document

        text = json.dumps(as_document(solution), indent=1, allow_nan=False, ensure_ascii=False)
        write_file(output, text + "\n", "--output")
