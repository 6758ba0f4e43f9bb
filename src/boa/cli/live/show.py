"""`boa show`: everything about one job, or what was learned of a class."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from boa.amounts import dollars, duration
from boa.cli import options, parsers, shell
from boa.cli.console import check_writable, console, emit_json, note, working, write_file
from boa.cli.live.service import ago, coloured, connect, gpus, times
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import table
from boa.errors import InputError, Refused, UsageError, shown
from boa.formats.job import SHELL
from boa.model.records import RESCALE_PARTS
from boa.plots.words import significant

if TYPE_CHECKING:
    from boa.api.answers import Event, JobDetails
    from boa.api.classes import ClassDocument
    from boa.client import Client

EVENTS = 12
BATCH = ("batch_size", "accumulation", "noise_scale", "gain", "lr_factor")
"""Metrics that have words of their own."""
PARTS = (*RESCALE_PARTS, "other")
NOT_FOUND = 404
MOST_CLASSES = 10
"""Classes that an error lists, at most."""
MOST_REASONS = 12
"""Stretches of epochs that are explained."""
_T = TypeVar("_T")


def show(
    what: Annotated[str, shell.Argument(metavar="JOB|CLASS", help="A job's id, or a class.")],
    plot: Annotated[
        Path | None,
        options.plot("Of a class: draw its speedups (.png, .svg, .pdf).", parsers.FIGURES),
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
    with connect() as client:
        job = _found(lambda: client.job(what)) if what.isdecimal() else None
        if job is None:
            document = _found(lambda: client.job_class(what))
            if document is None:
                raise _neither(what, client.classes())
            reasons = None if json else _found(lambda: client.why(what))
            _show_class(document, plot, json)
            if reasons is not None:
                _print_reasons(reasons["words"])
            return
        if plot is not None:
            raise UsageError("--plot draws classes; of a job there is nothing to draw.")
        events = client.history(job=what, limit=EVENTS)
        now = client.health()["now"]
        stays = not json and _stays_at_its_least(client, job)
    if json:
        emit_json({"job": job, "events": events})
    else:
        _print(job, events, now, stays)


def _found(ask: Callable[[], _T]) -> _T | None:
    """None of what there is not, or cannot be by its name."""
    try:
        return ask()
    except InputError:
        return None
    except Refused as refused:
        if refused.status == NOT_FOUND:
            return None
        raise


def _neither(what: str, classes: Sequence[str]) -> InputError:
    few = 0 < len(classes) <= MOST_CLASSES
    named = f": {', '.join(classes)}" if few else f"; there are {len(classes) or 'none'}"
    expected = f"a job (boa ps --all lists them) or a class (boa show CLASS{named})"
    return InputError("JOB|CLASS", what, expected, f"{shown(what)} is neither a job nor a class")


def _silent(job: "JobDetails") -> bool:
    """Whether it has reported nothing, as far as can be told."""
    return not (job["epoch"] or job["progress"]) and job["step"] is None and job["loss"] is None


def _stays_at_its_least(client: "Client", job: "JobDetails") -> bool:
    """Whether no plan may give it more GPUs, since nobody has reported what more of them do."""
    least = job["spec"]["gpus"]["min"]
    if job["ended_at"] is not None or not _silent(job) or not 0 < job["width"] <= least:
        return False
    learned = _found(lambda: client.job_class(job["class"]))
    return learned is not None and all(kind["offered"] <= least for kind in learned["gpu_types"])


def _show_class(document: "ClassDocument", plot: Path | None, json: bool) -> None:
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


def _print_reasons(words: Sequence[str]) -> None:
    """Why the plan has these widths for the class."""
    if words:
        console().print("\n[bold]Why these widths[/bold]")
    for said in words[:MOST_REASONS]:
        console().print(f"  {escape(said)}")
    if len(words) > MOST_REASONS:
        console().print(f"  … and {len(words) - MOST_REASONS} more (GET /api/v1/classes/CLASS/why)")


def _print(job: "JobDetails", events: "list[Event]", now: float, stays: bool) -> None:
    out = console()
    for name, said in described(job, now, stays):
        out.print(f"[bold]{name:<11}[/bold] {said}")
    if events:
        out.print()
        made = table("when", "what", "")
        made.columns[2].no_wrap = False
        for event in events:
            made.add_row(ago(now, event["at"]), event["kind"], escape(event["text"]))
        out.print(made)


def described(job: "JobDetails", now: float, stays: bool) -> Iterator[tuple[str, str]]:
    """`stays`: it is left on its least GPUs because it reports nothing."""
    spec = job["spec"]
    yield "job", f"{job['id']}, [bold]{escape(job['name'])}[/bold], class {escape(job['class'])}"
    if job["owner"]:
        team = f", of team {escape(job['team'])}" if job["team"] else ""
        yield "owner", f"{escape(job['owner'])}{team}"
    yield "state", f"{coloured(job['state'])}{escape(_why(job))}"
    yield "GPUs", escape(_where(job))
    yield "progress", _progress(job, stays)
    if training := ", ".join(_training(job.get("metrics", {}))):
        yield "training", training
    if others := ", ".join(_others(job.get("metrics", {}))):
        yield "metrics", others
    moments = [("submitted", job["submitted_at"]), ("started", job["started_at"])]
    moments += [("ended", job["ended_at"]), ("next try", job["retry_at"])]
    yield "when", ", ".join(f"{name} {ago(now, at)}" for name, at in moments if at is not None)
    if said := ", ".join(f"{name} {duration(seconds)}" for name, seconds in times(job).items()):
        yield "times", said
    yield (
        "starts",
        f"{job['attempts']}: {_times(job['rescalings'], 'rescaling')}, "
        f"{_times(job['restarts'], 'restart')} after failures "
        f"(at most {_times(spec['retries'], 'failure')} of its own)",
    )
    if starting := _last_start(job.get("rescale_s", {})):
        yield "last start", starting
    yield "cost", dollars(job["cost_usd"])
    if terms := ", ".join(_terms(job, now)):
        yield "terms", escape(terms)
    run = spec["run"]
    command = run[-1] if tuple(run[:-1]) == SHELL else shlex.join(run)
    yield "command", escape(command)


def _terms(job: "JobDetails", now: float) -> Iterator[str]:
    """Terms of a job: others that it waits for, its limits, its deadline."""
    spec = job["spec"]
    if job["priority"] != "normal":
        yield f"priority {job['priority']}"
    if job["awaits"]:
        yield f"after {', '.join(job['awaits'])}"
    if "max_cost" in spec:
        yield f"at most {dollars(spec['max_cost'])}"
    if "max_time_s" in spec:
        yield f"at most {duration(spec['max_time_s'])} on GPUs ({duration(job['ran_s'])} so far)"
    if job["deadline"] is not None and job["ended_at"] is None:
        yield f"deadline {ago(now, job['deadline'])}"
    if "may_wait_s" in spec and job["started_at"] is None:
        yield f"may wait {duration(spec['may_wait_s'])} for other hours"
    if job["urgency"] != 1.0 and job["ended_at"] is None:
        yield f"counts {job['urgency']:.3g} times as much as its class"
    if "key" in spec:
        yield f"key {spec['key']}"
    if job["parameters"]:
        drawn = " ".join(f"{name}={value}" for name, value in job["parameters"].items())
        yield f"sweep {job['sweep']}: {drawn}"


def _times(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _training(metrics: Mapping[str, float]) -> Iterator[str]:
    """Lines on the batch, as boa.train.torch reports it."""
    if (size := metrics.get("batch_size")) is not None:
        passes = metrics.get("accumulation", 0.0) + 1  # and the one that ends in a step
        yield f"batch size {size:,.6g}" + (f" in {passes:,.6g} passes" if passes > 1 else "")
    if (noise := metrics.get("noise_scale")) is not None:
        yield f"noise scale {significant(noise)} samples"
    if (gain := metrics.get("gain")) is not None:
        yield f"gain {significant(gain)} a step"
    if (factor := metrics.get("lr_factor", 1.0)) != 1.0:
        yield f"learning rate × {significant(factor)}"


def _others(metrics: Mapping[str, float]) -> Iterator[str]:
    for name, value in sorted(metrics.items()):
        if name not in BATCH:
            yield f"{escape(name)} {value:.4g}"


def _last_start(parts_s: Mapping[str, float]) -> str:
    """How long the run that is there now took until it trained, and by part."""
    if "total" not in parts_s:
        return ""
    told = [part for part in PARTS if part in parts_s]
    parts = [f"{part.replace('_', ' ')} {duration(parts_s[part])}" for part in told]
    said = f"took {duration(parts_s['total'])} until it trained"
    return f"{said}: {', '.join(parts)}" if parts else said


def _why(job: "JobDetails") -> str:
    """Its reason, and how it ended where that does not say so."""
    reason = f": {job['reason']}" if job["reason"] else ""
    code = f"exit code {job['exit_code']}"
    known = job["ended_at"] is not None and job["exit_code"] is not None
    said = f" ({job['said']})" if job.get("said") else ""
    return (f"{reason}, {code}" if known and code not in reason else reason) + said


def _where(job: "JobDetails") -> str:
    nodes = ", ".join(str(part["node"]) for part in job["held"])
    held = f"{gpus(job)} on node {nodes}" if nodes else gpus(job)
    wanted = gpus(job["wanted"])
    as_planned = job["ended_at"] is not None or wanted in ("–", gpus(job))
    return held if as_planned else f"{held}; the plan has {wanted} for it"


def _progress(job: "JobDetails", stays: bool) -> str:
    if _silent(job) and job["started_at"] is not None:
        if job["ended_at"] is not None:
            return "it reported nothing"
        least = job["spec"]["gpus"]["min"]
        until = f": it stays at its least, {least} GPU{'s' * (least > 1)}" if stays else ""
        return f"reports nothing so far{until}"
    epochs = max(job["spec"]["epochs"], 0 if job.get("done") is None else job["epochs"])
    of = f" of {epochs}" if epochs > job["epoch"] else ""  # its script may have more
    said = f"epoch {job['epoch'] + 1}{of}, {job['progress']:,.6g} units in it"
    step = "" if job["step"] is None else f", step {job['step']:,}"
    loss = "" if job["loss"] is None else f", loss {job['loss']:.4g}"
    return f"{said}{step}{loss}{_to_its_end(job)}"


def _to_its_end(job: "JobDetails") -> str:
    """How much of it is done, and what the rest takes: unknown where its total is."""
    if job["ended_at"] is not None:
        return ""
    if (done := job.get("done")) is None:
        return "; its total is unknown: so are the time left and the cost to the end"
    left_s, left_usd = job["left_s"], job["left_usd"]
    rest = ""
    if left_s is not None and left_usd is not None:
        rest = f", {duration(left_s)} and {dollars(left_usd)} left"
    return f"; {100 * done:.0f} % done{rest}"
