"""`boa stop`: end jobs."""

from typing import Annotated

from boa.cli import shell
from boa.cli.console import emit_json, say_error
from boa.cli.live.service import connect
from boa.cli.options import Json
from boa.errors import BoaError, NoServer


def stop(
    jobs: Annotated[
        list[str],
        shell.Argument(metavar="JOB...", help="Ids of jobs."),
    ],
    json: Json = False,
) -> None:
    """Stop jobs: SIGTERM, their grace time, then SIGKILL.

    A job that has ended is left as it is. Of several jobs all are tried, and
    every error is told; the exit code is that of the worst.

    [bold]Examples[/bold]
    [dim]$[/dim] boa stop 17
    [dim]$[/dim] boa stop $(boa ps --json | jq -r '.jobs[].id')
    """
    found, wrong = [], []
    with connect() as client:
        for job in jobs:
            try:
                found.append(client.stop(job))
            except BoaError as problem:
                wrong.append(problem)
                if isinstance(problem, NoServer):
                    break
    if json and (found or not wrong):
        emit_json({"jobs": found})
    elif not json:
        for details in found:
            over = details["ended_at"] is not None
            print(f"job {details['id']}: {details['state'] if over else 'stopping'}")
    for error in wrong:
        say_error(error)
    if wrong:
        raise shell.Exit(max(error.exit_code for error in wrong))
