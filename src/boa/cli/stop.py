"""`boa stop`: end jobs."""

from typing import Annotated

import typer

from boa.cli.console import emit_json
from boa.cli.live import connect
from boa.cli.options import Json
from boa.errors import Refused


def stop(
    jobs: Annotated[
        list[str],
        typer.Argument(metavar="JOB...", help="Ids of jobs.", show_default=False),
    ],
    json: Json = False,
) -> None:
    """Stop jobs: SIGTERM, their grace time, then SIGKILL.

    A job that has ended is left as it is. Of several jobs all are tried, and
    the first error is told.

    [bold]Examples[/bold]
    [dim]$[/dim] boa stop 17
    [dim]$[/dim] boa stop $(boa ps --json | jq -r '.jobs[].id')
    """
    found, wrong = [], None
    with connect() as client:
        for job in jobs:
            try:
                found.append(client.stop(job))
            except Refused as refused:
                wrong = wrong or refused
    if json:
        if wrong is None:
            emit_json({"jobs": found})
    else:
        for details in found:
            over = details["ended_at"] is not None
            print(f"job {details['id']}: {details['state'] if over else 'stopping'}")
    if wrong is not None:
        raise wrong
