"""A job's terms as options: what it starts after, what it may take and cost, by when it is due."""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from boa.cli import parsers, shell
from boa.errors import InputError
from boa.model.priorities import PRIORITIES

PRIORITY = shell.Option(
    "--priority",
    metavar="|".join(PRIORITIES),
    parser=parsers.one_of("--priority", PRIORITIES),
    help="How much it counts; background: only on GPUs that are paid for and empty.",
)


def seconds_until(text: Any) -> float:
    """Seconds until a deadline: a span, or a time by the clock."""
    try:
        return parsers.span("--deadline")(text)
    except InputError:
        pass
    expected = "a span such as 90m, 12h or 2d, or a time to come such as 2026-11-20T18:00"
    try:
        at = datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        raise InputError("--deadline", text, expected) from None
    if at <= time.time():
        raise InputError("--deadline", text, expected, "has passed")
    return at - time.time()


def may_wait(text: Any) -> float:
    """A span, or 0: it starts as soon as it can."""
    return 0.0 if text == "0" else parsers.span("--may-wait")(text)


def usd(option: str) -> Any:
    return parsers.number(option, "a finite number of USD > 0, such as 40")


def after(given: list[str]) -> list[dict[str, str]]:
    """12,13 or 12:end."""
    found = []
    for part in (part.strip() for text in given for part in text.split(",")):
        job, _, on = part.partition(":")
        found.append({"job": job, "on": on or "success"})
    return found


def with_terms(job: dict[str, Any], terms: dict[str, Any]) -> dict[str, Any]:
    """A job's document with these terms, which go before its own; of tags, kind by kind."""
    own = {"tags": {**job.get("tags", {}), **terms["tags"]}} if "tags" in terms else {}
    return {**job, **terms, **own}


@dataclass(frozen=True, slots=True, kw_only=True)
class TermOptions:
    """Terms of a job, for a command or beside a job file."""

    priority: Annotated[str | None, PRIORITY] = None
    after: Annotated[
        list[str] | None,
        shell.Option(
            "--after",
            metavar="JOB[:ON]",
            help="Start once these jobs (or sweeps) have ended: on success, failure or end.",
        ),
    ] = None
    max_time: Annotated[
        float | None,
        shell.Option(
            "--max-time",
            metavar="SPAN",
            parser=parsers.span("--max-time"),
            help="The most that its runs may take, such as 12h; then it is stopped.",
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        shell.Option(
            "--max-cost",
            metavar="USD",
            parser=usd("--max-cost"),
            help="The most that it may cost; stopped in time for a checkpoint.",
        ),
    ] = None
    deadline: Annotated[
        float | None,
        shell.Option(
            "--deadline",
            metavar="SPAN|TIME",
            parser=seconds_until,
            help="When it is to have ended: it gets more GPUs if that takes it.",
        ),
    ] = None
    may_wait: Annotated[
        float | None,
        shell.Option(
            "--may-wait",
            metavar="SPAN|0",
            parser=may_wait,
            help="The most that its start may be put off for hours in which money buys more.",
        ),
    ] = None
    preemptible: Annotated[
        bool,
        shell.Option(
            "--preemptible",
            help="Let BOA stop the job for others although it has no checkpoint.",
        ),
    ] = False
    key: Annotated[
        str | None,
        shell.Option(
            "--key", metavar="KEY", help="Submitted again under the same key, it is the same job."
        ),
    ] = None

    tag: Annotated[
        list[str] | None,
        shell.Option(
            "--tag",
            metavar="K=V",
            help="Whom it is charged to (project=cats); may be repeated. See boa cost --by.",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Those that were given, by the file's names."""
        fields = {
            "priority": self.priority,
            "after": after(self.after) if self.after else None,
            "max_time_s": self.max_time,
            "max_cost": self.max_cost,
            "deadline_s": self.deadline,
            "may_wait_s": self.may_wait,
            "preemptible": self.preemptible or None,
            "key": self.key,
            "tags": parsers.pairs("--tag", self.tag, "project=cats") if self.tag else None,
        }
        return {name: value for name, value in fields.items() if value is not None}
