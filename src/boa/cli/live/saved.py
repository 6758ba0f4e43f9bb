"""`boa saved`: what BOA saved in a month, simulated by the service."""

import time
from typing import TYPE_CHECKING, Annotated

from boa.cli import options, shell
from boa.cli.console import console, emit_json, note
from boa.cli.live.statement import Month, for_month
from boa.cli.markup import escape
from boa.cli.options import Json

if TYPE_CHECKING:
    from boa.api.reports import Saved

LOOK_S = 0.5
FAILED = 1


def saved(
    month: Month = None,
    width: Annotated[
        int | None,
        options.count(
            "--width", "K", 1, "GPUs that every job had before; default: the fewest it can run on."
        ),
    ] = None,
    gpu_type: Annotated[
        str | None,
        shell.Option(
            "--gpu-type", metavar="T", help="On this GPU type; default: the service's first."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say what BOA saved in a month against fixed widths. Simulated by the service.

    The jobs that ended in the month are simulated with the fixed widths that
    people used before, and with BOA: dollars at the same average time, time at
    the same dollars, and all that this takes to be so.

    [bold]Examples[/bold]
    [dim]$[/dim] boa saved
    [dim]$[/dim] boa saved --month 2026-10 --width 4 --gpu-type T4
    """
    with for_month(month) as client:
        found = client.ask_saved(month, width=width, gpu_type=gpu_type)
        if found["state"] in ("waiting", "running") and not json:
            note("simulating …")
        while found["state"] in ("waiting", "running"):
            time.sleep(LOOK_S)
            found = client.saved(month, width=width, gpu_type=gpu_type)
    if json:
        emit_json(found)
    else:
        _show(found)
    if found["state"] in ("failed", "stopped"):
        raise shell.Exit(FAILED)


def _show(found: "Saved") -> None:
    out = console()
    out.print(f"[bold]{found['month']}[/bold]: {found['jobs']:,} jobs")
    if found["too_thin"]:
        out.print(escape(found["too_thin"]))
        return
    if "result" not in found:
        out.print(escape(found["error"] or f"the simulation was {found['state']}"))
        return
    for said in found["result"]["words"]:
        out.print(escape(said))
    widths = ", ".join(f"{name} {width}" for name, width in sorted(found["widths"].items()))
    out.print(f"[dim]fixed widths: {escape(widths)}[/dim]")
    for said in found["assumes"]:
        out.print(f"[dim]{escape(said)}[/dim]")
