"""`boa logs`: what a job printed."""

import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from boa.cli import shell
from boa.cli.console import emit_json
from boa.cli.live.cost import moment
from boa.cli.live.service import JobId, connect
from boa.cli.options import Json
from boa.errors import InputError, UsageError
from boa.model.job_spec import ENDED

if TYPE_CHECKING:
    from boa.api.files import LogRun
    from boa.client import Client

LOOK_S = 0.5
ALL = "all"


def _rank(text: Any) -> int | None:
    """None: of all."""
    word = str(text)
    if word == ALL:
        return None
    if not word.isascii() or not word.isdecimal() or len(word) > 9:
        raise InputError("--rank", word, "a worker's number from 0, or all")
    return int(word)


def _pattern(text: Any) -> "re.Pattern[str]":
    try:
        return re.compile(str(text))
    except re.error as wrong:
        expected = "a regular expression, as Python's re has it"
        raise InputError("--grep", str(text), expected, str(wrong)) from None


def logs(
    job: JobId,
    follow: Annotated[
        bool, shell.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    rank: Annotated[
        str, shell.Option("--rank", metavar="R|all", help="Which of its workers, or all.")
    ] = "0",
    attempt: Annotated[
        int | None,
        shell.Option("--attempt", metavar="N", min=1, help="Only this run; default: all."),
    ] = None,
    tail: Annotated[
        int | None,
        shell.Option("--tail", "-n", metavar="N", min=0, help="Only so many last lines."),
    ] = None,
    since: Annotated[
        str | None,
        shell.Option("--since", metavar="TIME", help="A time ago (30m, 12h, 7d) or a date (UTC)."),
    ] = None,
    grep: Annotated[
        str | None,
        shell.Option("--grep", metavar="REGEX", help="Only lines in which this is found."),
    ] = None,
    json: Json = False,
) -> None:
    """Print what a job printed: rank 0, over all its runs.

    A job that was rescaled or restarted has several runs; their logs follow
    one another, each under a line with its number and when it began. Logs stay
    after the end.

    [bold]Examples[/bold]
    [dim]$[/dim] boa logs 17
    [dim]$[/dim] boa logs -f 17
    [dim]$[/dim] boa logs 17 --rank 3 --tail 50
    [dim]$[/dim] boa logs 17 --rank all --attempt 2 --since 10m --grep 'loss|Error'
    """
    if json and follow:
        raise UsageError("--json does not go with --follow: there would be no end to it.")
    wanted = _rank(rank)
    if wanted is None and follow:
        raise UsageError("--rank all does not go with --follow: follow one worker.")
    pattern = None if grep is None else _pattern(grep)
    with connect() as client:
        begin = None if since is None else moment(since, lambda: client.health()["now"])
        asked = _Asked(client, job, wanted, attempt, tail, begin)
        if json:
            emit_json(_document(asked, pattern))
            return
        shown = _followed(asked) if follow else _told(asked)
        for head, pieces in shown:
            for text in _matching(pieces, pattern):
                _write(head + text)
                head = ""  # above the first that is shown, if anything is


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@dataclass(frozen=True)
class _Asked:
    client: "Client"
    job: str
    rank: int | None
    attempt: int | None
    tail: int | None
    since: float | None

    def runs(self) -> "list[LogRun]":
        """Those that are asked for and have a log of such a worker."""
        return [
            run
            for run in self.client.log_runs(self.job)
            if self.attempt in (None, run["attempt"])
            and (self.rank is None or self.rank in run["ranks"])
        ]

    def read(self, attempt: int | None, rank: int, follow: bool = False) -> Iterator[str]:
        return self.client.logs(
            self.job,
            attempt=attempt,
            rank=rank,
            tail=self.tail,
            since=self.since,
            follow=follow,
        )


def head_of(run: "LogRun", rank: int | None = None) -> str:
    """The line above a run's output."""
    began = run["began_at"]
    when = "" if began is None else f" · {datetime.fromtimestamp(began).astimezone():%F %T}"
    whose = "" if rank is None else f" · rank {rank}"
    return f"── attempt {run['attempt']}{whose}{when} ──\n"


def _told(asked: _Asked) -> Iterator[tuple[str, Iterable[str]]]:
    """Heads, and what was printed under each; no heads where there is only one."""
    runs = asked.runs()
    if asked.rank is not None and (len(runs) < 2 or asked.tail is not None):
        yield "", asked.read(asked.attempt, asked.rank)
        return
    for run in runs:
        for rank in run["ranks"] if asked.rank is None else [asked.rank]:
            shown = rank if asked.rank is None else None
            yield _lazily(head_of(run, shown), asked.read(run["attempt"], rank))


def _lazily(head: str, pieces: Iterator[str]) -> tuple[str, Iterable[str]]:
    """The head of what there is something of; a last line is ended."""
    first = next((piece for piece in pieces if piece), None)
    if first is None:
        return "", ()

    def rest() -> Iterator[str]:
        last = first
        yield first
        for piece in pieces:
            last = piece or last
            yield piece
        if not last.endswith("\n"):
            yield "\n"

    return head, rest()


def _followed(asked: _Asked) -> Iterator[tuple[str, Iterable[str]]]:
    """The same as it grows: run after run, until the job has ended."""
    assert asked.rank is not None
    if asked.attempt is not None:
        yield "", asked.read(asked.attempt, asked.rank, follow=True)
        return
    known = asked.runs()
    seen = known[-1]["attempt"] - 1 if known and asked.tail is not None else 0
    while True:
        over = asked.client.job(asked.job)["state"] in ENDED
        for run in asked.runs():
            if run["attempt"] > seen:
                head = head_of(run) if run["attempt"] > 1 or seen else ""
                seen = run["attempt"]
                yield head, asked.read(seen, asked.rank, follow=True)
        if over:
            return
        time.sleep(LOOK_S)


def _matching(pieces: Iterable[str], pattern: "re.Pattern[str] | None") -> Iterator[str]:
    """Whole lines in which it is found; without a pattern, whatever comes."""
    if pattern is None:
        yield from pieces
        return
    left = ""
    for piece in pieces:
        *lines, left = (left + piece).split("\n")
        yield from (f"{line}\n" for line in lines if pattern.search(line))
    if left and pattern.search(left):
        yield f"{left}\n"


def _document(asked: _Asked, pattern: "re.Pattern[str] | None") -> dict[str, Any]:
    """All of it as one text, and by run and worker where there are several."""

    def read(attempt: int, rank: int) -> str:
        return "".join(_matching(asked.read(attempt, rank), pattern))

    runs = [
        {"attempt": run["attempt"], "rank": rank, "began_at": run["began_at"], "text": text}
        for run in asked.runs()
        for rank in (run["ranks"] if asked.rank is None else [asked.rank])
        if (text := read(run["attempt"], rank))
    ]
    if asked.rank is None:
        return {"job": asked.job, "rank": ALL, "runs": runs}
    text = "".join(_matching(asked.read(asked.attempt, asked.rank), pattern))
    found: dict[str, Any] = {"job": asked.job, "rank": asked.rank, "text": text}
    return {**found, "runs": runs} if len(runs) > 1 else found
