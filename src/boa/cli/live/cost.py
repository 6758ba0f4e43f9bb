"""`boa cost`: where the money went, and where it is going."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from boa.amounts import NONE, dollars, duration, percent, rate
from boa.cli import shell
from boa.cli.console import console, emit_json
from boa.cli.live.service import connect
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.parsers import SPANS
from boa.cli.tables import Table, listing
from boa.errors import InputError
from boa.model.groupings import EXPECTED, PLAIN, TAG
from boa.units import LEAST_HISTORY_S

if TYPE_CHECKING:
    from boa.api.money import Budget, Cost, CostRow, Unused

KIND = f"{TAG}KIND"
NOT_HELD = "idle and booting"
"""Row of what no job held."""
UNNAMED = {"team": "no team", "user": "no token", "payer": "not shared"}
"""Rows of jobs that have none; of tags: untagged."""
FIGURES = ("jobs", "idle", "booting", "total", "GPU-hours")
FIRST_TO_GO = ("booting", "idle", "jobs", "GPU-hours")
"""Columns that go first on a terminal too narrow for all."""


def grouping(given: str) -> str:
    """One that a service knows, a tag's kind named."""
    if given not in PLAIN and (not given.startswith(TAG) or given in (TAG, KIND)):
        raise InputError("--by", given, EXPECTED)
    return given


def cost(
    by: Annotated[
        str | None,
        shell.Option(
            "--by",
            metavar="|".join((*PLAIN, KIND)),
            parser=grouping,
            help="List it by day (UTC), class, job, team, user, part of the budget, or tag.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        shell.Option(
            "--since",
            metavar="TIME",
            help="Count from here: 7d, 12h, or a date such as 2026-07-01 (UTC).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show what was spent, what is being spent, and what the month will cost.

    Money goes to jobs, to GPUs that were ready but idle, and to booting (nodes
    that boot, or were given back and are still charged). What no job uses at
    this moment is shown with its reason, and with what its nodes are worth.
    "planned with": see boa budget show --help.

    [bold]Examples[/bold]
    [dim]$[/dim] boa cost
    [dim]$[/dim] boa cost --by class --since 7d
    [dim]$[/dim] boa cost --by tag:project
    [dim]$[/dim] boa cost --json | jq .forecast_month_usd
    """
    with connect() as client:
        begin = None if since is None else moment(since, lambda: client.health()["now"])
        found = client.cost(by=by, since=begin)
    if json:
        emit_json({key: value for key, value in found.items() if key not in ("now", "until")})
        return
    out = console()
    for name, said in headline(found, since):
        out.print(f"[bold]{name:<11}[/bold] {said}")
    if by is not None:
        out.print()
        out.print(rows_table(by, found["rows"], out.width))


def moment(text: str, now: Callable[[], float]) -> float:
    """A time in Unix seconds: so long ago by the server's clock, or a date."""
    if found := re.fullmatch(rf"(\d{{1,9}})([{''.join(SPANS)}])", text):
        return max(now() - int(found[1]) * SPANS[found[2]], 0.0)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        expected = "a time ago (30m, 12h, 7d, 2w) or a date such as 2026-07-01"
        raise InputError("--since", text, expected) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def billed_words(found: "Cost | Budget") -> str:
    """Count that a budget is for."""
    words = {"node": " for whole nodes", "gpu": " for GPUs that jobs hold"}
    return words.get(found.get("billing", ""), "")


def limits_set(found: "Cost | Budget") -> list[str]:
    """A line for the budget and for the cap, where they were set at run time."""
    changed = (found.get("budget_set"), found.get("max_spend_set"))
    return [one["words"] for one in changed if one is not None]


def headline(found: "Cost", since: str | None) -> Iterator[tuple[str, str]]:
    budget, cap = found["budget_per_hour"], found["max_spend_per_hour"]
    limits = "" if cap is None else f", never more than {rate(cap)}"
    yield (
        "budget",
        f"{rate(budget)}{billed_words(found)}{limits}; "
        f"planned with {rate(found['effective_budget_per_hour'])}",
    )
    if (calendar := found.get("calendar")) is not None:
        yield "", escape(calendar["words"])
    for said in limits_set(found):
        yield "", f"[yellow]{escape(said)}[/yellow]"
    yield "spend now", rate(found["spend_now_per_hour"])
    for one in found.get("unused", []):
        yield "", f"[dim]{rate(one['per_hour'])} of it {unused_words(one)}[/dim]"
    yield "average", average_words(found, since)
    parts = ", ".join(
        f"{name} {dollars(amount)}"
        for name, amount in (
            ("jobs", found["jobs_usd"]),
            ("idle", found["idle_usd"]),
            ("booting", found["provisioning_usd"]),
        )
    )
    when = "" if since is None else f" since {since}"
    yield "spent", f"[bold green]{dollars(found['total_usd'])}[/bold green]{when}: {parts}"
    yield "this month", month_words(found)


def average_words(found: "Cost", since: str | None = None) -> str:
    """The average bill, and what part of the budget of the same time that is. Of the time that was
    asked for; else of that which the forecast goes by, as on the page."""
    average, due = found["average_spend_per_hour"], found["allowed_per_hour"]
    over = found["until"] - found.get("average_since", found["since"])
    if since is None and "forecast_over_s" in found:
        over, average = found["forecast_over_s"], found.get("forecast_pace_per_hour", average)
        due = found.get("forecast_allowed_per_hour", due)
    if over <= 0:
        return "nothing spent so far"
    said = f"{rate(average)} over {duration(over)}"
    if over < LEAST_HISTORY_S:
        return f"{said}: too soon to compare with the budget"
    return f"{said}: {percent(average / due)} of the budget" if due else said


def month_words(found: "Cost") -> str:
    """The month's forecast, and the pace that it goes by."""
    basis, month = found.get("forecast_basis"), found["forecast_month_usd"]
    if basis == "none":
        return "nothing spent so far, so there is no forecast yet"
    if basis == "short" or month is None:
        over = duration(found.get("forecast_over_s", 0.0))
        return f"too soon to say: {over} of spending so far, and a forecast needs an hour"
    amount = dollars(month)
    if basis is None:
        return f"{amount} by its end"  # an older service, which does not say why
    pace, over = rate(found["forecast_pace_per_hour"]), duration(found["forecast_over_s"])
    low, high = found.get("forecast_low_usd"), found.get("forecast_high_usd")
    band = ""
    if low is not None and high is not None:
        band = f"; in 80 % of all cases {dollars(low)} to {dollars(high)}"
    return f"{amount} by its end, at the pace of the last {over} ({pace}){band}"


UNUSED = {
    "booting": "for {nodes} that boot{s}",
    "idle": "for {gpus} on {nodes} that {is} kept",
    "draining": "for {gpus} on {nodes} that go{es} once empty",
    "leaving": "for {nodes} given back and not gone yet",
}


def unused_words(one: "Unused") -> str:
    """Words for GPUs that no job holds: why they are paid for, what their nodes are worth."""
    single = one["nodes"] == 1
    said = UNUSED[one["why"]].format(
        nodes=f"{one['nodes']} node{'' if single else 's'}",
        gpus=f"{one['gpus']} idle GPU{'' if one['gpus'] == 1 else 's'}",
        s="s" if single else "",
        es="es" if single else "",
        **{"is": "is" if single else "are"},
    )
    worth = one["nodes_worth_per_hour"]
    if worth is None or one["why"] == "leaving":
        return said
    return f"{said}: worth {rate(worth)} to jobs, for {rate(one['nodes_per_hour'])}"


def _named(row: dict[str, Any], by: str, names: tuple[str, ...]) -> list[str]:
    """A row's names; the first is what the list is by."""
    first = row.get(names[0])
    if first is None:
        first = NOT_HELD
    elif first == "":
        first = UNNAMED.get(by, "untagged")
    return [escape(str(first)), *(escape(str(row.get(name) or NONE)) for name in names[1:])]


def rows_table(by: str, rows: "list[CostRow]", width: int) -> Table:
    named = (by, "name", "class") if by == "job" else (by.partition(":")[0],)
    heads = named if named != ("tag",) else (by.removeprefix(TAG),)
    shown = []
    for row in rows:
        said: dict[str, Any] = {**row}
        hours = row["gpu_hours"]
        shown.append(
            (
                *_named(said, by, named),
                dollars(row["jobs_usd"]),
                dollars(row["idle_usd"]),
                dollars(row["provisioning_usd"]),
                dollars(row["total_usd"]),
                "<0.01" if 0 < hours < 0.01 else f"{hours:,.2f}",
            )
        )
    cut = ("name", "class")
    return listing((*heads, *FIGURES), shown, width, right=FIGURES, cut=cut, drop=FIRST_TO_GO)
