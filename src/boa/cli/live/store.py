"""`boa store`: whether the service's database is whole, copies of it, and putting one back."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from boa.amounts import duration
from boa.cli import shell
from boa.cli.console import console, emit_json, note
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import listing
from boa.errors import BoaError

if TYPE_CHECKING:
    from boa.server.keeping import Restored
    from boa.server.looking import Look
    from boa.store.snapshots import Snapshot

app = shell.Group("store", "Check the service's database, copy it, put a copy back.")
Data: TypeAlias = Annotated[
    Path | None,
    shell.Option(
        "--data",
        metavar="DIR",
        help="The service's data folder; default: $BOA_HOME, else ~/.local/state/boa.",
    ),
]
Db: TypeAlias = Annotated[
    str | None,
    shell.Option("--db", metavar="URL", help="Its database; default: sqlite:///DIR/boa.db."),
]


class NotWhole(BoaError):
    """A check found something; what is on stdout already."""


@app.add("check")
def check(data: Data = None, db: Db = None, json: Json = False) -> None:
    """Look through the database: what is damaged, and which jobs are missing.

    Changes nothing, and may be run beside a service. The exit code is 1 where
    something was found.

    [bold]Examples[/bold]
    [dim]$[/dim] boa store check
    [dim]$[/dim] boa store check --data /var/lib/boa --json | jq .faults
    """
    from boa.server.keeping import place, status

    seen = status(place(data, db))
    if json:
        emit_json(_document(seen))
    else:
        _show(seen)
    if seen.faults:
        raise NotWhole("the store is not whole, or not the newest (docs/store.md says what to do)")


@app.add("snapshot")
def snapshot(data: Data = None, db: Db = None, json: Json = False) -> None:
    """Copy the database now, beside the copies that the service takes.

    May be run beside a service. A PostgreSQL database is copied by pg_dump.

    [bold]Examples[/bold]
    [dim]$[/dim] boa store snapshot
    """
    from boa.server.keeping import place, take_snapshot

    taken = take_snapshot(place(data, db), time.time())
    if json:
        emit_json(_listed(taken))
    else:
        print(taken.path)


@app.add("restore")
def restore(
    snapshot: Annotated[
        str | None,
        shell.Argument(
            metavar="SNAPSHOT", help="A copy's name, or a file. Left out: list the copies."
        ),
    ] = None,
    data: Data = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Put a copy of the database back, and say which jobs it does not know.

    Not while a service runs. The present database is kept aside, in the data
    folder's quarantine. The next boa serve goes on from the copy: numbers of
    jobs are not given out again, and what belongs to jobs that the copy does
    not know is moved to quarantine.

    [bold]Examples[/bold]
    [dim]$[/dim] boa store restore
    [dim]$[/dim] boa store restore boa-20261116-193000.db
    """
    from boa.server.keeping import all_snapshots, place, put_back

    where = place(data, db)
    if snapshot is None:
        _list(all_snapshots(where), json)
        return
    done = put_back(where, snapshot)
    if json:
        emit_json(_restored(done))
        return
    print(f"restored {done.snapshot}; what was there is in {done.aside}")
    if done.lost:
        print(f"acknowledged jobs that it does not know: {done.lost_in_words}")
    note("boa: boa serve goes on from here")


def _document(seen: "Look") -> Mapping[str, Any]:
    found = seen.found
    return {
        "whole": not seen.faults,
        "faults": [
            {"kind": fault.kind, "text": fault.text, "jobs": [str(n) for n in fault.jobs]}
            for fault in seen.faults
        ],
        "there": found.there,
        "jobs": len(found.jobs),
        "active": found.active,
        "nodes": len(found.nodes),
        "highest": {"job": found.job, "node": found.node, "event": found.event},
        "given_up_jobs": [str(number) for number in sorted(found.lost)],
        "restored": seen.restored,
    }


def _show(seen: "Look") -> None:
    from boa.store.faults import listed

    out, found = console(), seen.found
    if not found.there and not seen.faults:
        out.print("no store yet")
        return
    out.print(f"{len(found.jobs)} jobs ({found.active} active), {len(found.nodes)} nodes")
    for fault in seen.faults:
        out.print(escape(f"{fault.kind}: {fault.text}"))
    if seen.restored:
        out.print("whole, and put back by boa store restore: the next boa serve goes on from it")
        if lost := seen.lost - found.lost:
            out.print(f"acknowledged jobs that it does not know: {listed(lost)}")
    elif not seen.faults and not found.looked_through:
        out.print("of an earlier version: looked through when boa serve brings it up to date")
    elif not seen.faults:
        out.print("whole, and as far as its data folder knows it")


def _list(found: "list[Snapshot]", json: bool) -> None:
    if json:
        emit_json({"snapshots": [_listed(one) for one in found]})
        return
    out = console()
    if not found:
        out.print("no snapshots; boa serve takes one every hour (snapshots, in boa.yaml)")
        return
    now = time.time()
    rows = [
        (
            escape(one.path.name),
            f"{duration(max(now - one.at, 0.0))} ago",
            f"{one.bytes / 1e6:.1f} MB",
        )
        for one in found
    ]
    out.print(listing(("snapshot", "taken", "size"), rows, out.width, right=("size",)))


def _listed(one: "Snapshot") -> Mapping[str, Any]:
    at = datetime.fromtimestamp(one.at, UTC).isoformat(timespec="seconds")
    return {"name": one.path.name, "path": str(one.path), "at": at, "bytes": one.bytes}


def _restored(done: "Restored") -> Mapping[str, Any]:
    return {
        "snapshot": str(done.snapshot),
        "aside": str(done.aside),
        "lost_jobs": [str(number) for number in sorted(done.lost)],
    }
