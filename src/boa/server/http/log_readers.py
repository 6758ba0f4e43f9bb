"""Who may read a job's log, and so the lines of it that events, jobs and classes carry."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from boa.model.access import Caller
from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.scheduler.refusals import NoSuchJob
from boa.server.context import Service

Readable: TypeAlias = Callable[[JobId | None], bool]
"""Whether somebody may read the log of a job. May block on the store."""


def may_read(caller: Caller, job: JobRecord) -> bool:
    """Its owner, members of the owner's team, and admins."""
    return caller.may_as("member") and caller.shares(job.owner, job.team)


def readable_by(service: Service, caller: Caller) -> Readable:
    """Every job is looked up once: to be made anew for each answer."""

    @lru_cache(maxsize=1000)
    def readable(job: JobId | None) -> bool:
        if caller.may_as("admin"):
            return True
        try:
            return job is not None and may_read(caller, service.job(job))
        except NoSuchJob:
            return False

    return readable
