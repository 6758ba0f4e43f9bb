"""`boa notify`: who is told of ends, failures and money."""

import time
from typing import TYPE_CHECKING, Annotated

from boa.cli import shell
from boa.cli.console import console, emit_json, note, say_error
from boa.cli.live.service import ago, connect
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import listing

if TYPE_CHECKING:
    from boa.api.notify import LastNotice

app = shell.Group("notify", "List whom notices go to, and send them a test.")
FAILED = 1


@app.add("list")
def list_targets(json: Json = False) -> None:
    """List whom notices go to, what of, and how far the newest has come.

    Targets stand in boa.yaml, under notify. Needs the role admin.

    [bold]Example[/bold]
    [dim]$[/dim] boa notify list
    """
    with connect() as client:
        found = client.notify_targets()
    if json:
        emit_json({"targets": found})
        return
    out = console()
    if not found:
        out.print("nobody is told of anything: boa.yaml has no notify")
        return
    rows = [
        (
            escape(target["name"]),
            target["kind"],
            escape(target["to"]) or "–",
            ", ".join(target["tell"]),
            f"{target['waiting']:,}",
            escape(_last(target["last"])),
        )
        for target in found
    ]
    columns = ("name", "kind", "to", "told of", "waiting", "newest")
    out.print(listing(columns, rows, out.width, cut=("to", "newest"), drop=("told of",)))


def _last(last: "LastNotice | None") -> str:
    if last is None:
        return "none yet"
    if last["state"] == "delivered":
        return f"delivered {ago(time.time(), last['done_at'])}"
    tried = f"tried {last['tries']}×: {last['error']}" if last["tries"] else "not tried yet"
    return f"given up, {tried}" if last["state"] == "given_up" else tried


@app.add("test")
def send_test(
    targets: Annotated[
        list[str] | None,
        shell.Argument(metavar="[TARGET]...", help="Whom; default: all that boa.yaml names."),
    ] = None,
    json: Json = False,
) -> None:
    """Send a notice to each target now, and say whether it arrived.

    Exit code 1 where one did not. Needs the role admin.

    [bold]Examples[/bold]
    [dim]$[/dim] boa notify test
    [dim]$[/dim] boa notify test ops
    """
    with connect() as client:
        names = targets or [target["name"] for target in client.notify_targets()]
        found = [client.notify_test(name) for name in names]
    if json:
        emit_json({"tests": found})
    else:
        for one in found:
            if one["delivered"]:
                print(f"{one['target']}: delivered")
            else:
                say_error(f"{one['target']}: {one['error']}")
        if not found:
            note("nobody is told of anything: boa.yaml has no notify")
    if not all(one["delivered"] for one in found):
        raise shell.Exit(FAILED)
