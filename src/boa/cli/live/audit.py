"""`boa audit`: who changed what."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from boa.cli import options, shell
from boa.cli.console import console, emit_json
from boa.cli.live.cost import moment
from boa.cli.live.service import connect
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import listing

if TYPE_CHECKING:
    from boa.api.access import AuditLine


def audit(
    since: Annotated[
        str | None,
        shell.Option("--since", metavar="TIME", help="A time ago (30m, 12h, 7d) or a date (UTC)."),
    ] = None,
    who: Annotated[
        str | None, shell.Option("--who", metavar="NAME", help="Only what this token's did.")
    ] = None,
    limit: Annotated[int, options.count("--limit", "N", 1, "At most so many, the newest.")] = 100,
    json: Json = False,
) -> None:
    """Show who changed what, when and from where; and what was refused.

    Newest first. Every change over the API has a line, written with the
    change itself; refused requests are counted. Needs the role admin.

    [bold]Examples[/bold]
    [dim]$[/dim] boa audit --since 24h
    [dim]$[/dim] boa audit --who alice --limit 20
    [dim]$[/dim] boa audit --since 90d --limit 100000 --json > audit.json
    """
    begin = None if since is None else moment(since, time.time)
    with connect() as client:
        found = client.audit(since=begin, who=who, limit=limit)
    if json:
        emit_json({"lines": found})
        return
    out = console()
    if not found:
        out.print("nothing was changed, and nothing refused")
        return
    columns = ("when", "who", "from", "what", "of", "change", "result")
    rows = [_row(line) for line in found]
    cut = ("from", "of", "change", "result")
    out.print(listing(columns, rows, out.width, cut=cut, drop=("from", "result")))


def _row(line: "AuditLine") -> tuple[str, ...]:
    who = f"{line['who']} ({line['role']})" if line["who"] else line["role"] or "nobody known"
    times = f" ×{line['count']:,}" if line["count"] > 1 else ""
    return (
        _time(line["at"]),
        escape(who),
        escape(line["address"]),
        escape(line["what"]) + times,
        escape(line["subject"]) or "–",
        escape(changed(line["before"], line["after"])) or "–",
        escape(line["result"]),
    )


def changed(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Only what is different, and what it was; times as a clock here shows them."""
    old, new = before or {}, after or {}
    said = []
    for key in dict.fromkeys((*old, *new)):
        was, now = _plain(key, old.get(key)), _plain(key, new.get(key))
        if was != now:
            said.append(f"{key} {now}" if old.get(key) is None else f"{key} {was} → {now}")
    return ", ".join(said)


def _plain(key: str, value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, str):
        return value
    if key.endswith("_per_hour"):
        return f"${value:,.10g}"
    return _time(value) if key.endswith("_at") else str(value)


def _time(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
