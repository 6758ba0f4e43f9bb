"""`boa show`: everything about one job, or what was learned of a class."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from boa.cli import options
from boa.cli.console import check_writable, console, emit_json, note, working, write_file
from boa.cli.live import ago, coloured, connect, dollars, gpus, table
from boa.cli.options import Json
from boa.errors import InputError, Refused, UsageError
from boa.model.job_file import SHELL

if TYPE_CHECKING:
    from boa.client import Client
    from boa.client.answers import Event, JobDetails

EVENTS = 12
NOT_FOUND = 404


def show(
    what: Annotated[
        str,
        typer.Argument(metavar="JOB|CLASS", help="A job's id, or a class.", show_default=False),
    ],
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            parser=options.picture("--plot"),
            help="Of a class: draw its speedups (.png, .svg, .pdf).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show a job with its last events, or what was learned of a class.

    Of a class: the speedup s(k) by GPU type as it is believed to be, with the
    measurements behind it.

    [bold]Examples[/bold]
    [dim]$[/dim] boa show 17
    [dim]$[/dim] boa show resnet18 --plot resnet18.svg
    [dim]$[/dim] boa show 17 --json | jq .job.reason
    """
    check_writable(plot, "--plot")
    if plot is not None and plot.suffix == ".html":
        raise InputError("--plot", str(plot), "a file ending in .png, .svg, .pdf")
    with connect() as client:
        job = _job(client, what) if what.isdecimal() else None
        if job is None:
            _show_class(client.job_class(what), plot, json)
            return
        if plot is not None:
            raise UsageError("--plot draws classes; of a job there is nothing to draw.")
        events = client.history(job=what, limit=EVENTS)
        now = client.health()["now"]
    if json:
        emit_json({"job": job, "events": events})
    else:
        _print(job, events, now)


def _job(client: "Client", job: str) -> "JobDetails | None":
    """None if it is the name of a class: those may be digits too."""
    try:
        return client.job(job)
    except Refused as refused:
        if refused.status == NOT_FOUND and job in client.classes():
            return None
        raise


def _show_class(document: dict[str, Any], plot: Path | None, json: bool) -> None:
    if plot is not None:
        from boa.plots.profile import profile_picture

        with working("drawing"):
            picture = profile_picture(document, plot.suffix)
        write_file(plot, picture, "--plot")
    if json:
        emit_json(document)
    else:
        from boa.plots.profile import profile_text

        console().print(profile_text(document))
    if plot is not None:
        note(f"picture written to {plot}")


def _print(job: "JobDetails", events: "list[Event]", now: float) -> None:
    from rich.markup import escape

    out = console()
    for name, said in described(job, now):
        out.print(f"[bold]{name:<11}[/bold] {said}")
    if events:
        out.print()
        made = table("when", "what", "")
        made.columns[2].no_wrap = False
        for event in events:
            made.add_row(ago(now, event["at"]), event["kind"], escape(event["text"]))
        out.print(made)


def described(job: "JobDetails", now: float) -> Iterator[tuple[str, str]]:
    from rich.markup import escape

    spec = job["spec"]
    yield "job", f"{job['id']}, [bold]{escape(job['name'])}[/bold], class {escape(job['class'])}"
    reason = f": {escape(job['reason'])}" if job["reason"] else ""
    code = "" if job["exit_code"] is None else f", exit code {job['exit_code']}"
    yield "state", f"{coloured(job['state'])}{reason}{code}"
    yield "GPUs", escape(_where(job))
    yield "progress", _progress(job)
    times = [("submitted", job["submitted_at"]), ("started", job["started_at"])]
    times += [("ended", job["ended_at"]), ("next try", job["retry_at"])]
    yield "times", ", ".join(f"{name} {ago(now, at)}" for name, at in times if at is not None)
    yield (
        "starts",
        f"{job['attempts']}: {job['rescalings']} by decision, {job['restarts']} after failures "
        f"(at most {spec['retries']} failures of its own)",
    )
    yield "cost", dollars(job["cost_usd"])
    run = spec["run"]
    command = run[-1] if tuple(run[:-1]) == SHELL else shlex.join(run)
    yield "command", escape(command)


def _where(job: "JobDetails") -> str:
    nodes = ", ".join(str(part["node"]) for part in job["held"])
    held = f"{gpus(job)} on node {nodes}" if nodes else gpus(job)
    wanted = gpus(job["wanted"])
    return held if wanted in ("–", gpus(job)) else f"{held}; the plan has {wanted} for it"


def _progress(job: "JobDetails") -> str:
    said = (
        f"epoch {job['epoch'] + 1} of {job['spec']['epochs']}, {job['progress']:,.6g} units in it"
    )
    step = "" if job["step"] is None else f", step {job['step']:,}"
    return said + step + ("" if job["loss"] is None else f", loss {job['loss']:.4g}")
