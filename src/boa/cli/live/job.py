"""`boa job`: change a job that is there, pause it, resume it, submit it again."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from boa.cli import options, parsers, shell
from boa.cli.console import emit_json
from boa.cli.live.each import each
from boa.cli.live.job_options import variables
from boa.cli.live.service import connect
from boa.cli.live.term_options import PRIORITY, may_wait, seconds_until, usd
from boa.cli.options import Json
from boa.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

app = shell.Group("job", "Change a job that is there, pause it, resume it, submit it again.")
Job: TypeAlias = Annotated[str, shell.Argument(metavar="JOB", help="The id of a job.")]
Jobs: TypeAlias = Annotated[list[str], shell.Argument(metavar="JOB...", help="Ids of jobs.")]
Force: TypeAlias = Annotated[
    bool, shell.Option("--force", help="Go ahead although a job loses work.")
]
NONE = "none"
"""In place of a limit: there is to be none."""


def _or_none(parse: "Callable[[Any], Any]") -> "Callable[[Any], Any]":
    return lambda text: NONE if text == NONE else parse(text)


def _max_time(help: str) -> shell.Option:
    parse = _or_none(parsers.span("--max-time"))
    return shell.Option("--max-time", metavar="SPAN|none", parser=parse, help=help)


def _max_cost(help: str) -> shell.Option:
    parse = _or_none(usd("--max-cost"))
    return shell.Option("--max-cost", metavar="USD|none", parser=parse, help=help)


def _changed(value: Any) -> Any:
    return None if value == NONE else value


@app.add("set")
def set_fields(
    job: Job,
    name: Annotated[str | None, shell.Option("--name", metavar="N", help="For people.")] = None,
    priority: Annotated[str | None, PRIORITY] = None,
    weight: Annotated[
        float | None,
        shell.Option(
            "--weight",
            metavar="X",
            parser=parsers.number("--weight", "a finite number > 0"),
            help="How much its JCT counts.",
        ),
    ] = None,
    min_gpus: Annotated[
        int | None, options.count("--min-gpus", "K", 1, "The fewest it can run on.")
    ] = None,
    max_gpus: Annotated[
        int | None, options.count("--max-gpus", "K", 1, "The most it may get.")
    ] = None,
    gpus: Annotated[
        str | None,
        shell.Option("--gpus", metavar="T4,A100", help="GPU types it can run on; none: any."),
    ] = None,
    retries: Annotated[
        int | None, options.count("--retries", "N", 0, "Restarts after failures of its own.")
    ] = None,
    max_time: Annotated[
        str | None, _max_time("The most that its runs may take, all together.")
    ] = None,
    max_cost: Annotated[str | None, _max_cost("The most that it may cost, in all.")] = None,
    deadline: Annotated[
        str | None,
        shell.Option(
            "--deadline",
            metavar="SPAN|TIME|none",
            parser=_or_none(seconds_until),
            help="When it is to have ended, from now.",
        ),
    ] = None,
    wait: Annotated[
        str | None,
        shell.Option(
            "--may-wait",
            metavar="SPAN|0|none",
            parser=_or_none(may_wait),
            help="The most that its start may be put off, from its submission on; none: as the "
            "calendar says.",
        ),
    ] = None,
    tag: Annotated[
        list[str] | None,
        shell.Option(
            "--tag",
            metavar="K=V|none",
            help="Whom it is charged to, all that it has cost too; may be repeated.",
        ),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Change priority, weight, limits and tags of a job that has not ended.

    They are in force at once: a job that may have fewer GPUs is moved, one that
    counts more gets more of them. A limit that is none is no limit, a
    tag that is none is taken away. A job that has no checkpoint is made a
    background job only with --force, since BOA may stop those at any time.

    [bold]Examples[/bold]
    [dim]$[/dim] boa job set 17 --priority urgent
    [dim]$[/dim] boa job set 17 --max-gpus 4 --max-cost 60
    [dim]$[/dim] boa job set 17 --deadline none
    [dim]$[/dim] boa job set 17 --may-wait 0
    [dim]$[/dim] boa job set 17 --tag project=cats --tag cost_center=none
    """
    types = None if gpus is None else [] if gpus == NONE else [g.strip() for g in gpus.split(",")]
    limits = {"min": min_gpus, "max": max_gpus, "types": types}
    limits = {key: value for key, value in limits.items() if value is not None}
    fields = {"name": name, "weight": weight, "gpus": limits or None, "retries": retries}
    fields["priority"] = priority
    bounds = {"max_time_s": max_time, "max_cost": max_cost}
    bounds |= {"deadline_s": deadline, "may_wait_s": wait}
    changes = {key: value for key, value in fields.items() if value is not None}
    changes |= {key: _changed(value) for key, value in bounds.items() if value is not None}
    if tag:
        tags = parsers.pairs("--tag", tag, "project=cats")
        changes["tags"] = {kind: _changed(value) for kind, value in tags.items()}
    if not changes:
        raise UsageError("nothing to change: boa job set JOB --priority urgent, or another option.")
    with connect() as client:
        found = client.change(job, force=force, **changes)
    if json:
        emit_json({"job": found})
    else:
        print(f"job {found['id']}: changed")


@app.add("pause")
def pause(jobs: Jobs, force: Force = False, json: Json = False) -> None:
    """Pause jobs: checkpoint, release GPUs, wait for `boa job resume`.

    A job that would lose work is not paused, and says how much it would be.

    [bold]Examples[/bold]
    [dim]$[/dim] boa job pause 17 18
    [dim]$[/dim] boa job pause --force 17
    """
    with connect() as client:
        each(jobs, partial(client.pause, force=force), lambda _: "paused", json)


@app.add("resume")
def resume(jobs: Jobs, json: Json = False) -> None:
    """Go on with jobs that were paused, from their checkpoints.

    [bold]Examples[/bold]
    [dim]$[/dim] boa job resume 17 18
    """
    with connect() as client:
        each(jobs, client.resume, lambda _: "resumed", json)


@app.add("resubmit")
def resubmit(
    job: Job,
    env: Annotated[
        list[str] | None,
        shell.Option("--env", metavar="K=V", help="Another variable; may be repeated."),
    ] = None,
    max_cost: Annotated[str | None, _max_cost("The most that it may cost this time.")] = None,
    max_time: Annotated[str | None, _max_time("The most that its runs may take this time.")] = None,
    from_checkpoint: Annotated[
        bool,
        shell.Option("--from-checkpoint", help="Go on where it ended, in its own checkpoints."),
    ] = False,
    json: Json = False,
) -> None:
    """Submit a job once more, and print the new one's id.

    It is what was submitted, with what was changed since; less its key and what
    it was to start after. A job that was stopped by a limit goes on with
    --from-checkpoint and a higher one.

    [bold]Examples[/bold]
    [dim]$[/dim] boa job resubmit 17
    [dim]$[/dim] boa job resubmit 17 --from-checkpoint --max-cost 80
    """
    changes: dict[str, Any] = {
        name: _changed(value)
        for name, value in (("max_cost", max_cost), ("max_time_s", max_time))
        if value is not None
    }
    with connect() as client:
        if env:
            changes["env"] = {
                **client.job(job)["spec"].get("env", {}),
                **variables(env),
            }
        found = client.resubmit(job, changes, from_checkpoint=from_checkpoint)
    if json:
        emit_json({"job": found})
    else:
        print(found["id"])
