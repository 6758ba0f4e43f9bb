"""`boa ps`: the jobs of the service."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from boa.amounts import NONE, dollars, duration
from boa.cli import shell
from boa.cli.console import console, emit_json
from boa.cli.live.service import ago, coloured, connect, gpus, times
from boa.cli.live.sweep import in_one_line
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import Table, listing
from boa.errors import UsageError

if TYPE_CHECKING:
    from boa.api.answers import Job, JobList, JobRow
    from boa.client import Client

CONTRACT = (
    "id",
    "name",
    "class",
    "state",
    "gpu_type",
    "width",
    "epoch",
    "owner",
    "team",
    "priority",
    "submitted_at",
    "started_at",
    "ended_at",
    "rescalings",
    "restarts",
    "exit_code",
    "cost_usd",
    "on_gpus_s",
    "waiting_s",
    "since_submission_s",
)
"""Keys of a job in the JSON, in this order."""
TIMES = ("on GPUs", "waiting", "since submission")
COLUMNS = (
    *("job", "name", "class", "owner", "priority", "state", "GPUs", "epoch", "submitted"),
    *(*TIMES, "rescalings", "restarts", "cost"),
)
"""`owner`: if there are several; `priority`: if any is not normal; `submitted`: if any has ended,
as `since submission` is the time to the end then."""
NUMBERS = ("epoch", *TIMES, "rescalings", "restarts", "cost")
FIRST_TO_GO = (
    *("restarts", "rescalings", "epoch", "submitted", "waiting", "on GPUs", "since submission"),
    *("owner", "priority", "GPUs"),
)
"""Columns that go first on a terminal too narrow for all."""
MOST_ASKED = 20
"""Waiting jobs that are asked for what they wait for, one request each."""
PAUSE_S = 1.0


def ps(
    all: Annotated[bool, shell.Option("--all", "-a", help="Ended jobs too.")] = False,
    job_class: Annotated[
        str | None, shell.Option("--class", metavar="NAME", help="Only jobs of this class.")
    ] = None,
    limit: Annotated[
        int, shell.Option("--limit", metavar="N", min=1, help="At most so many, the newest.")
    ] = 1000,
    sweep: Annotated[
        str | None,
        shell.Option("--sweep", metavar="SWEEP", help="The jobs of a sweep, a line each."),
    ] = None,
    watch: Annotated[
        bool, shell.Option("--watch", "-w", help="Show it again every second.")
    ] = False,
    json: Json = False,
) -> None:
    """List the jobs of the service, newest first.

    A sweep is one line; --sweep lists its jobs.

    Under the table: what jobs wait for. A terminal too narrow for all of it
    gets shorter names, then fewer columns; --json has everything.

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
        found = client.job_list(all=all or sweep is not None, job_class=job_class, limit=limit)
        if sweep is not None:
            found["jobs"] = [job for job in found["jobs"] if job.get("sweep") == sweep]
        if not json:
            _print(client, found, all, whole=sweep is None)
            return
    emit_json({"jobs": [contract(job) for job in found["jobs"]]})


def contract(job: "Job") -> dict[str, Any]:
    said: dict[str, Any] = {**job}
    said.setdefault("priority", "normal")
    return {key: said.get(key) for key in CONTRACT}


def _print(client: "Client", found: "JobList", all: bool, *, whole: bool = True) -> None:
    """`whole`: sweeps are one line."""
    out = console()
    if found["jobs"]:
        out.print(*_shown(client, found, out.width, whole=whole))
        if found["before"] is not None:
            out.print(f"[dim]… and older ones (--limit {2 * len(found['jobs'])})[/dim]")
    else:
        out.print("no jobs" if all else "no active jobs (boa ps --all shows those that ended)")


def _shown(
    client: "Client", found: "JobList", width: int, *, whole: bool = True
) -> list[Table | str]:
    waits = list(_waits(client, found["jobs"]))
    rows = in_one_line(client, found["jobs"]) if whole else found["jobs"]
    made = job_table({**found, "jobs": rows}, width)
    return [made, "", *waits] if waits else [made]


def job_table(found: "JobList", width: int) -> Table:
    rows = []
    for job in found["jobs"]:
        failed = job["state"] == "failed" and job["exit_code"] is not None
        rows.append(
            (
                job["id"],
                escape(job["name"]),
                escape(job["class"]),
                escape(job["owner"]),
                _priority(job),
                _state(job) + (f" ({job['exit_code']})" if failed else ""),
                escape(gpus(job)),
                str(job["epoch"] + 1),
                ago(found["now"], job["submitted_at"]),
                *(duration(of[name]) if name in (of := times(job)) else NONE for name in TIMES),
                str(job["rescalings"]),
                str(job["restarts"]),
                dollars(job["cost_usd"]),
            )
        )
    unused = []
    if all(job["ended_at"] is None for job in found["jobs"]):
        unused.append("submitted")
    if len({job["owner"] for job in found["jobs"]}) < 2:
        unused.append("owner")
    if all(_priority(job) == "normal" for job in found["jobs"]):
        unused.append("priority")
    return listing(
        COLUMNS,
        rows,
        width,
        right=NUMBERS,
        cut=("name", "class", "owner"),
        drop=FIRST_TO_GO,
        without=unused,
    )


def _priority(job: "JobRow") -> str:
    return str({**job}.get("priority", "normal"))  # an older service has none


def _state(job: "JobRow") -> str:
    if members := {**job}.get("members"):
        return str(members)
    paused = job["paused"] and job["state"] in ("waiting", "preempted")
    return "paused" if paused else coloured(job["state"])


def _waits(client: "Client", jobs: "Sequence[Job]") -> Iterator[str]:
    """Which jobs wait for what, those that wait for the same together."""
    waiting = [job["id"] for job in jobs if job["state"] in ("waiting", "preempted")]
    by_reason: dict[str, list[str]] = {}
    for asked in map(client.job, waiting[:MOST_ASKED]):
        if asked["state"] in ("waiting", "preempted") and asked["reason"]:
            by_reason.setdefault(asked["reason"], []).append(asked["id"])
    for reason, ids in by_reason.items():
        yield f"{escape(reason)} (job{'s' * (len(ids) > 1)} {', '.join(reversed(ids))})"
    if len(waiting) > MOST_ASKED:
        more = len(waiting) - MOST_ASKED
        yield f"[dim]… and {more:,} more wait (boa show JOB says what for)[/dim]"


def _watch(client: "Client", all: bool, job_class: str | None, limit: int) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False, screen=True) as live:
        while True:
            found, out = client.job_list(all=all, job_class=job_class, limit=limit), console()
            shown = _shown(client, found, out.width) if found["jobs"] else ["no jobs"]
            lines = (line for part in shown for line in out.lines(part))
            live.update(Text.from_ansi("\n".join(lines)), refresh=True)
            time.sleep(PAUSE_S)
