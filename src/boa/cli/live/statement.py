"""`boa statement`: a month's bill, and whose it is."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from boa.amounts import days, dollars, duration, percent
from boa.cli import shell
from boa.cli.console import console, emit_json, note
from boa.cli.live.service import connect
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import Table, listing
from boa.errors import FileError, InputError, Refused, UsageError

if TYPE_CHECKING:
    from boa.api.reports import Statement, StatementAmounts
    from boa.client import Client

KINDS = ("csv", "json", "html")
FEW_CENTS = 0.0995
"""USD below which two significant digits are less than a cent."""
FIGURES = ("jobs", "GPU-hours", "held", "idle", "booting", "total")
FIRST_TO_GO = ("booting", "idle", "GPU-hours", "jobs", "held")
Month = Annotated[
    str | None,
    shell.Option("--month", metavar="YYYY-MM", help="Which (UTC); default: the present one."),
]


@contextmanager
def for_month(month: str | None) -> "Iterator[Client]":
    """The service; a month that it refuses is the option's value."""
    with connect() as client:
        try:
            yield client
        except Refused as refused:
            if refused.field != "month" or month is None:
                raise
            raise InputError("--month", month, refused.expected) from None


def statement(
    month: Month = None,
    csv: Annotated[
        bool, shell.Option("--csv", help="Print it as CSV, a row per payer, team, user, class.")
    ] = False,
    out: Annotated[
        Path | None,
        shell.Option("-o", "--out", metavar="FILE", help="Write FILE.csv, FILE.json or FILE.html."),
    ] = None,
    json: Json = False,
) -> None:
    """Show a month's bill, and who spent what on which class.

    What no job held (idle GPUs, nodes that boot or go) is shared out in
    proportion to what was held in the same month, and shown apart. Lines add up
    to the bill to the cent; less than ten cents are shown with two digits.
    A page (-o FILE.html) is made to be printed.

    [bold]Examples[/bold]
    [dim]$[/dim] boa statement
    [dim]$[/dim] boa statement --month 2026-10 -o october.html
    [dim]$[/dim] boa statement --csv > this-month.csv
    """
    kind = _kind(out, csv=csv, json=json)
    with for_month(month) as client:
        text = client.statement_file(kind, month) if kind in ("csv", "html") else None
        found = None if text is not None else client.statement(month)
    if out is not None:
        _write(out, text, found)
        note(f"written to {out}")
    elif text is not None:
        sys.stdout.write(text)
    elif found is not None and json:
        emit_json({key: value for key, value in found.items() if key != "now"})
    elif found is not None:
        _show(found)


def _kind(out: Path | None, *, csv: bool, json: bool) -> 'Literal["csv", "html", "json", ""]':
    if csv + json + (out is not None) > 1:
        raise UsageError("one of --csv, --json and -o: a file's ending says what is in it.")
    if out is None:
        return "csv" if csv else "json" if json else ""
    kind = out.suffix.removeprefix(".").lower()
    if kind not in KINDS:
        raise InputError("-o", str(out), "a file whose name ends in .csv, .json or .html")
    return cast('Literal["csv", "html", "json"]', kind)


def _write(out: Path, text: str | None, found: "Statement | None") -> None:
    from json import dumps

    from boa.atomic_file import replace_file

    if text is None:
        text = dumps(found, indent=2, ensure_ascii=False) + "\n"
    try:
        replace_file(out, text.encode())
    except OSError as trouble:
        problem = f"cannot be written ({trouble.strerror})"
        raise FileError(str(out), problem, "a file that can be written") from None


def _show(found: "Statement") -> None:
    out = console()
    for name, said in _headline(found):
        out.print(f"[bold]{name:<9}[/bold] {said}")
    for what, groups in (("team", found["by_team"]), ("class", found["by_class"])):
        out.print()
        rows = [(escape(group["name"] or "–"), *_cells(group)) for group in groups]
        out.print(_table((what,), rows, out.width))
    if found["by_payer"][1:]:
        out.print()
        out.print(_payers(found, out.width))
    out.print()
    lines = [
        (
            *(escape(line["payer"] or "–"), escape(line["team"] or "–")),
            *(escape(line["user"] or "–"), escape(line["job_class"] or "–")),
            *_cells(line),
        )
        for line in found["lines"]
    ]
    out.print(_table(("payer", "team", "user", "class"), lines, out.width))
    out.print()
    out.print(f"[dim]{found['rule']}[/dim]")


def _headline(found: "Statement") -> list[tuple[str, str]]:
    month = datetime.fromtimestamp(found["since"], UTC)
    until = datetime.fromtimestamp(found["until"], UTC)
    how = "complete" if found["complete"] else f"in progress, up to {until:%Y-%m-%d %H:%M} UTC"
    parts = (("jobs", "held"), ("idle", "idle"), ("booting", "booting"))
    apart = ", ".join(f"{name} {_usd(found, key)}" for name, key in parts)
    return [
        ("month", f"{month:%B %Y} ({found['days_in_month']} days): {how}"),
        ("bill", f"[bold green]{_usd(found, 'total')}[/bold green]: {apart}"),
        ("budget", _budget_words(found)),
        *_preempted(found),
    ]


def _preempted(found: "Statement") -> list[tuple[str, str]]:
    """Line on the cost of stops by BOA's decision; none where there were none."""
    stops = found.get("preempted")
    if stops is None or not (stops["times"] or stops["lost_s"]):
        return []
    lost = f"{duration(stops['lost_s'])} of work lost ({dollars(stops['lost_usd'])})"
    times = "once" if stops["times"] == 1 else f"{stops['times']:,} times"
    return [("preempted", f"{times}; {lost if stops['lost_s'] else 'no work lost'}")]


def _budget_words(found: "Statement") -> str:
    budget = found["budget_usd"]
    if not budget:
        return "none: there was no service in that month"
    since = found.get("budget_since", found["since"])
    until = found.get("budget_until", found["until"])
    late = since > found["since"]  # the service began in the middle of the month
    period = days(since, until) if late else "the whole month"
    return f"{dollars(budget)} for {period}; {percent(found['total_usd'] / budget)} is spent"


def _usd(of: "StatementAmounts", name: str) -> str:
    """Cents that add up; below ten of them, what they were rounded from."""
    said: dict[str, Any] = {**of}
    exact = said.get("exact_usd", {}).get(name, 0.0)  # an older service has none
    return dollars(exact if 0 < exact < FEW_CENTS else said[f"{name}_usd"])


def _cells(of: "StatementAmounts") -> tuple[str, ...]:
    money = (_usd(of, name) for name in ("held", "idle", "booting", "total"))
    return (f"{of['jobs']:,}", f"{of['gpu_hours']:,.1f}", *money)


def _table(names: tuple[str, ...], rows: list[tuple[str, ...]], width: int) -> Table:
    return listing((*names, *FIGURES), rows, width, right=FIGURES, cut=names, drop=FIRST_TO_GO)


def _payers(found: "Statement", width: int) -> Table:
    rows = []
    for payer in found["by_payer"]:
        right, spent = payer["budget_usd"], payer["with_parts_usd"]
        rows.append(
            (
                *(escape(payer["name"] or "–"), escape(payer["above"] or "–")),
                *("–" if right is None else dollars(right), dollars(spent)),
                percent(spent / right) if right else "–",
            )
        )
    right_hand = ("guaranteed", "spent", "of the guarantee")
    names = ("part of the budget", "of")
    return listing((*names, *right_hand), rows, width, right=right_hand, cut=names, drop=("of",))
