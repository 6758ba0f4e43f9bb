"""`boa events`: what happened, and what happens."""

import json as to_json
import sys
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from boa.cli import options, shell
from boa.cli.console import emit_json
from boa.cli.live.cost import moment
from boa.cli.live.service import connect
from boa.cli.options import Json
from boa.errors import InputError
from boa.model.events import KINDS

if TYPE_CHECKING:
    from boa.api.answers import Event

PAGE = 1000


def events(
    follow: Annotated[
        bool, shell.Option("--follow", "-f", help="Go on with what happens from now on.")
    ] = False,
    job: Annotated[str | None, shell.Option("--job", metavar="JOB", help="Of this job.")] = None,
    kind: Annotated[
        list[str] | None,
        shell.Option("--kind", metavar="KIND", help="Only of this kind; may be repeated."),
    ] = None,
    since: Annotated[
        str | None,
        shell.Option("--since", metavar="TIME", help="A time ago (30m, 12h, 7d) or a date (UTC)."),
    ] = None,
    limit: Annotated[int, options.count("--limit", "N", 0, "At most so many, the newest.")] = 50,
    json: Json = False,
) -> None:
    """Show what happened, oldest first: starts, ends, failures, nodes, plans.

    With --follow it goes on until it is interrupted. With --json --follow
    every event is a JSON document on a line of its own.

    [bold]Examples[/bold]
    [dim]$[/dim] boa events -f
    [dim]$[/dim] boa events --job 17 --since 12h
    [dim]$[/dim] boa events --kind failed --kind retry --json | jq -r '.events[].text'
    """
    wanted = _kinds(kind)
    with connect() as client:
        if job is not None:
            client.job(job)  # of one that never was nothing would ever be told
        begin = 0.0 if since is None else moment(since, lambda: client.health()["now"])
        newest = client.history(job=job, limit=PAGE if wanted or since else min(limit, PAGE))
        found = [e for e in newest if (not wanted or e["kind"] in wanted) and e["at"] >= begin]
        found = found[max(len(found) - limit, 0) :]
        if json and not follow:
            emit_json({"events": found})
            return
        _tell(found, json)
        if follow:
            last = newest[-1]["number"] if newest else None
            for event in client.events(after=last, job=job):
                if not wanted or event["kind"] in wanted:
                    _tell([event], json)


def _kinds(given: list[str] | None) -> frozenset[str]:
    for one in given or ():
        if one not in KINDS:
            raise InputError("--kind", one, f"one of {', '.join(KINDS)}")
    return frozenset(given or ())


def _tell(found: "Iterable[Event]", json: bool) -> None:
    for event in found:
        if json:
            line = to_json.dumps(event)
        else:
            at = datetime.fromtimestamp(event["at"]).astimezone()
            line = f"{at:%Y-%m-%d %H:%M:%S}  {event['kind']:<13} {event['text']}"
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
