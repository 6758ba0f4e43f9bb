"""`boa logs`: what a job printed."""

import sys
from typing import Annotated

from boa.cli import shell
from boa.cli.console import emit_json
from boa.cli.live.service import JobId, connect
from boa.cli.options import Json
from boa.errors import UsageError


def logs(
    job: JobId,
    follow: Annotated[
        bool, shell.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    rank: Annotated[
        int, shell.Option("--rank", metavar="R", min=0, help="Which of its workers.")
    ] = 0,
    attempt: Annotated[
        int | None,
        shell.Option("--attempt", metavar="N", min=1, help="Only this run; default: all."),
    ] = None,
    tail: Annotated[
        int | None,
        shell.Option("--tail", "-n", metavar="N", min=0, help="Only so many last lines."),
    ] = None,
    json: Json = False,
) -> None:
    """Print what a job printed: rank 0, over all its runs.

    A job that was rescaled or restarted has several runs; their logs follow
    one another.

    [bold]Examples[/bold]
    [dim]$[/dim] boa logs 17
    [dim]$[/dim] boa logs -f 17
    [dim]$[/dim] boa logs 17 --rank 3 --tail 50
    """
    if json and follow:
        raise UsageError("--json does not go with --follow: there would be no end to it.")
    with connect() as client:
        pieces = client.logs(job, attempt=attempt, rank=rank, tail=tail, follow=follow)
        if json:
            emit_json({"job": job, "rank": rank, "text": "".join(pieces)})
            return
        for text in pieces:
            sys.stdout.write(text)
            sys.stdout.flush()
