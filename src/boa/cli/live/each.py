"""One request for each of several jobs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from boa.cli import shell
from boa.cli.console import emit_json, say_error
from boa.errors import BoaError, NoServer

if TYPE_CHECKING:
    from boa.api.answers import JobDetails


def each(
    jobs: Sequence[str],
    do: "Callable[[str], JobDetails]",
    became: "Callable[[JobDetails], str]",
    json: bool,
) -> None:
    """Try all, say what became of them, and tell every error; the exit code is the worst's."""
    found: list[JobDetails] = []
    wrong: list[BoaError] = []
    for job in jobs:
        try:
            found.append(do(job))
        except BoaError as problem:
            wrong.append(problem)
            if isinstance(problem, NoServer):
                break
    if json and (found or not wrong):
        emit_json({"jobs": found})
    elif not json:
        for details in found:
            print(f"job {details['id']}: {became(details)}")
    for error in wrong:
        say_error(error)
    if wrong:
        raise shell.Exit(max(error.exit_code for error in wrong))
