"""`boa ps`: the jobs of the service."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from boa.cli.console import console, emit_json
from boa.cli.live import ago, coloured, connect, dollars, gpus, table
from boa.cli.options import Json
from boa.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from boa.client import Client
    from boa.client.answers import Job, JobList

CONTRACT = (
    "id",
    "name",
    "class",
    "state",
    "gpu_type",
    "width",
    "epoch",
    "submitted_at",
    "started_at",
    "ended_at",
    "rescalings",
    "restarts",
    "exit_code",
    "cost_usd",
)
"""Keys of a job in the JSON, in this order."""
PAUSE_S = 1.0


def ps(
    all: Annotated[bool, typer.Option("--all", "-a", metavar="", help="Ended jobs too.")] = False,
    job_class: Annotated[
        str | None, typer.Option("--class", metavar="NAME", help="Only jobs of this class.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="At most so many, the newest.")
    ] = 1000,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", metavar="", help="Show it again every second.")
    ] = False,
    json: Json = False,
) -> None:
    """List the jobs of the service, newest first.

    [bold]Examples[/bold]
    [dim]$[/dim] boa ps
    [dim]$[/dim] boa ps --all --class resnet18
    [dim]$[/dim] boa ps --watch
    [dim]$[/dim] boa ps --json | jq -r '.jobs[] | select(.state == "waiting") | .id'
    """
    if watch and (json or not sys.stdout.isatty()):
        raise UsageError("--watch needs a terminal, and does not go with --json.")
    with connect() as client:
        if watch:
            _watch(client, all, job_class, limit)
            return
        found = client.job_list(all=all, job_class=job_class, limit=limit)
    if json:
        emit_json({"jobs": [contract(job) for job in found["jobs"]]})
    else:
        _print(found, all)


def contract(job: "Job") -> dict[str, Any]:
    said: dict[str, Any] = {**job}
    return {key: said[key] for key in CONTRACT}


def _print(found: "JobList", all: bool) -> None:
    out = console()
    if found["jobs"]:
        out.print(job_table(found))
        if found["before"] is not None:
            out.print(f"[dim]… and older ones (--limit {2 * len(found['jobs'])})[/dim]")
    else:
        out.print("no jobs" if all else "no active jobs (boa ps --all shows those that ended)")


def job_table(found: "JobList") -> "Table":
    from rich.markup import escape

    made = table(
        *("job", "name", "class", "state", "GPUs", "epoch", "submitted", "took", "rescaled"),
        *("restarts", "cost"),
        right=("epoch", "took", "rescaled", "restarts", "cost"),
    )
    made.columns[1].max_width = made.columns[2].max_width = 24
    for job in found["jobs"]:
        end = found["now"] if job["ended_at"] is None else job["ended_at"]
        made.add_row(
            job["id"],
            escape(job["name"]),
            escape(job["class"]),
            coloured(job["state"]) + (f" ({job['exit_code']})" if job["state"] == "failed" else ""),
            escape(gpus(job)),
            str(job["epoch"] + 1),
            ago(found["now"], job["submitted_at"]),
            ago(end, job["started_at"]).removesuffix(" ago"),
            str(max(job["rescalings"] - 1, 0)),
            str(job["restarts"]),
            dollars(job["cost_usd"]),
        )
    return made


def _watch(client: "Client", all: bool, job_class: str | None, limit: int) -> None:
    from rich.live import Live

    with Live(console=console(), auto_refresh=False, screen=True) as live:
        while True:
            found = client.job_list(all=all, job_class=job_class, limit=limit)
            live.update(job_table(found) if found["jobs"] else "no jobs", refresh=True)
            time.sleep(PAUSE_S)
