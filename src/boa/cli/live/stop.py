"""`boa stop`: end jobs."""

from typing import TYPE_CHECKING, Annotated

from boa.cli import shell
from boa.cli.live.each import each
from boa.cli.live.service import connect
from boa.cli.options import Json

if TYPE_CHECKING:
    from boa.api.answers import JobDetails


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
    with connect() as client:
        each(jobs, client.stop, _became, json)


def _became(job: "JobDetails") -> str:
    return job["state"] if job["ended_at"] is not None else "stopping"
