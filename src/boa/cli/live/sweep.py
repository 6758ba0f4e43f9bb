"""`boa sweep`: list sweeps, look at one, stop one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from boa.amounts import dollars
from boa.cli import shell
from boa.cli.console import console, emit_json
from boa.cli.live.service import ago, coloured, connect
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import Table, listing

if TYPE_CHECKING:
    from boa.api.answers import JobRow
    from boa.api.sweeps import Member, SweepDetails, SweepRow
    from boa.client import Client

app = shell.Group("sweep", "List sweeps, look at one with its jobs, stop one.")
Name: TypeAlias = Annotated[str, shell.Argument(metavar="SWEEP", help="Its id, such as s3.")]
ORDER = (
    "running",
    "rescaling",
    "starting",
    "waiting",
    "preempted",
    "succeeded",
    "stopped",
    "failed",
)


@app.add("list")
def list_sweeps(
    all: Annotated[bool, shell.Option("--all", "-a", help="Those that are over, too.")] = False,
    json: Json = False,
) -> None:
    """List sweeps, newest first.

    [bold]Examples[/bold]
    [dim]$[/dim] boa sweep list --all
    """
    with connect() as client:
        found = client.sweeps(all=all)
        now = client.health()["now"]
    if json:
        emit_json({"sweeps": found})
        return
    out = console()
    if not found:
        out.print("no sweeps" if all else "no active sweeps (boa sweep list --all)")
        return
    rows = [
        (
            one["id"],
            escape(one["name"]),
            escape(one["class"]),
            str(one["jobs"]),
            states(one["states"]),
            ago(now, one["submitted_at"]),
            escape(_best(one["best"], one["metric"])),
            dollars(one["cost_usd"]),
        )
        for one in found
    ]
    columns = ("sweep", "name", "class", "jobs", "states", "submitted", "best", "cost")
    out.print(listing(columns, rows, out.width, right=("jobs", "cost"), cut=("name", "class")))


@app.add("show")
def show(sweep: Name, json: Json = False) -> None:
    """Show a sweep with all its jobs, the best first.

    [bold]Examples[/bold]
    [dim]$[/dim] boa sweep show s3
    [dim]$[/dim] boa sweep show s3 --json | jq .sweep.best
    """
    with connect() as client:
        found = client.sweep(sweep)
    if json:
        emit_json({"sweep": found})
        return
    out = console()
    name, of = escape(found["name"]), escape(found["class"])
    out.print(f"[bold]{found['id']}[/bold], {name}, class {of}: {states(found['states'])}")
    rule = found["halving"]
    if rule is not None:
        after = ", ".join(map(str, rule["rungs"])) or "none"
        out.print(
            f"one of {rule['factor']} goes on after epochs {after}, by {escape(rule['metric'])} "
            f"({rule['better']})"
        )
    out.print(f"cost {dollars(found['cost_usd'])}")
    out.print()
    out.print(_members(found, out.width))


@app.add("stop")
def stop(sweep: Name, json: Json = False) -> None:
    """Stop all jobs of a sweep: SIGTERM, their grace time, then SIGKILL.

    [bold]Examples[/bold]
    [dim]$[/dim] boa sweep stop s3
    """
    with connect() as client:
        found = client.stop_sweep(sweep)
    if json:
        emit_json({"sweep": found})
    else:
        print(f"sweep {found['id']}: {'stopping' if found['ended_at'] is None else 'over'}")


def states(counts: dict[str, int]) -> str:
    """5 running, 22 stopped."""
    return ", ".join(f"{counts[name]} {name}" for name in ORDER if counts.get(name))


def _best(best: "Member | None", metric: str) -> str:
    if best is None:
        return "–"
    drawn = " ".join(f"{name}={value}" for name, value in best["parameters"].items())
    return f"job {best['job']}: {metric} {best['value']:.4g} ({drawn})"


def _members(found: "SweepDetails", width: int) -> Table:
    up = found["halving"] is not None and found["halving"]["better"] == "max"

    def order(one: "Member") -> tuple[float, int]:
        value = one["value"]
        return float("inf") if value is None else -value if up else value, int(one["job"])

    rows = [
        (
            one["job"],
            escape(" ".join(f"{name}={value}" for name, value in one["parameters"].items())),
            coloured(one["state"]),
            str(one["epoch"] + 1),
            "–" if one["value"] is None else f"{one['value']:.4g}",
            dollars(one["cost_usd"]),
            escape(one["reason"]),
        )
        for one in sorted(found["members"], key=order)
    ]
    columns = ("job", "parameters", "state", "epoch", found["metric"], "cost", "reason")
    right = ("epoch", found["metric"], "cost")
    return listing(columns, rows, width, right=right, cut=("parameters", "reason"))


def in_one_line(client: "Client", jobs: "Sequence[JobRow]") -> "list[Any]":
    """Jobs of a list, those of a sweep as one row in the place of its newest."""
    names = {job["sweep"] for job in jobs if job.get("sweep")}  # an older service has none
    if not names:
        return list(jobs)
    known = {one["id"]: one for one in client.sweeps(all=True, limit=1000) if one["id"] in names}
    rows: list[Any] = []
    seen: set[str] = set()
    for job in jobs:
        name = job["sweep"]
        if name not in known:
            rows.append(job)
        elif name not in seen:
            seen.add(name)
            of = [one for one in jobs if one["sweep"] == name]
            rows.append(_row(known[name], of))
    return rows


def _row(sweep: "SweepRow", jobs: "Sequence[JobRow]") -> dict[str, Any]:
    types = {job["gpu_type"] for job in jobs if job["width"]}
    started = [job["started_at"] for job in jobs if job["started_at"] is not None]
    return {
        **jobs[0],
        "id": sweep["id"],
        "name": sweep["name"],
        "members": f"{sweep['jobs']} jobs: {states(sweep['states'])}",
        "gpu_type": "+".join(sorted(str(one) for one in types)),
        "width": sweep["gpus"],
        "epoch": max(job["epoch"] for job in jobs),
        "submitted_at": sweep["submitted_at"],
        "started_at": min(started, default=None),
        "ended_at": sweep["ended_at"],
        "exit_code": None,
        "rescalings": sum(job["rescalings"] for job in jobs),
        "restarts": sum(job["restarts"] for job in jobs),
        "cost_usd": sweep["cost_usd"],
        "on_gpus_s": sum(job.get("on_gpus_s", 0.0) for job in jobs),
        "waiting_s": sum(job.get("waiting_s", 0.0) for job in jobs),
        "since_submission_s": max(job.get("since_submission_s", 0.0) for job in jobs),
    }
