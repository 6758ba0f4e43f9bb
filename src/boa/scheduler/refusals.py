"""Refusals: errors that a request can be answered with."""

from boa.errors import BoaError, shown
from boa.model.cluster import JobId
from boa.scheduler.words.amounts import dollars, seconds
from boa.units import Seconds, Usd


class NoSuchJob(BoaError):
    exit_code = 2

    def __init__(self, job: JobId) -> None:
        self.job = job
        super().__init__(f"job: got {job!r}; expected the id of a job (boa ps --all lists them)")


class NoSuchToken(BoaError):
    exit_code = 2
    status = 404

    def __init__(self, name: str) -> None:
        super().__init__(
            f"name: got {shown(name)}; expected the name of a token (boa token list shows them)"
        )


class WouldLoseWork(BoaError):
    """A request that was not forced would throw work away."""

    status = 409

    def __init__(self, job: JobId, lost_s: Seconds, lost_usd: Usd, what: str, again: str) -> None:
        super().__init__(
            f"job {job} has no checkpoint of its last {seconds(lost_s)} of work "
            f"({dollars(lost_usd)}): {what} would lose it; {again}"
        )


class NotNow(BoaError):
    """The service could not write it down (database locked, disk full): nothing has changed."""


class NoSuchSweep(BoaError):
    exit_code = 2
    status = 404

    def __init__(self, name: str) -> None:
        super().__init__(
            f"sweep: got {shown(name)}; expected the id of a sweep (boa sweep list shows them)"
        )
