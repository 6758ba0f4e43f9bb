"""The context of every route: the service, its control loop, its store."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args, get_origin

from starlette.requests import Request

from boa.api.answers import PATIENCE_S, JobRow
from boa.engines.base import Engine
from boa.errors import InputError
from boa.model.access import Caller
from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.runtime.audit import entry
from boa.runtime.snapshot import Control, Snapshot
from boa.scheduler.learn.estimates import EstimatesOfPlan
from boa.scheduler.money.costs import month_of
from boa.scheduler.money.forecast import Forecast
from boa.scheduler.refusals import NoSuchJob
from boa.server.http.errors import NoAnswer, TooSlow
from boa.server.http.limits import Limits
from boa.server.http.shared_answers import Shared
from boa.server.http.streams import Places
from boa.server.render import documents
from boa.server.render.charges import this_month
from boa.store.base import Store
from boa.units import Seconds

_ID = re.compile(r"[1-9][0-9]{0,17}")
_LONGEST = 60
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    control: Control
    store: Store
    engine: Engine
    secret: bytes
    version: str
    speed: float = 1.0
    """Seconds of the control loop's clock in one of the wall's."""
    has_page: bool = False
    """Whether a dashboard was built, with a page for every job."""
    endless_before: Seconds = 0.0
    """Runs requested before this may have report tokens without an end, of an earlier version."""
    believed: EstimatesOfPlan = field(default_factory=EstimatesOfPlan)
    streams: Places = field(default_factory=lambda: Places(Limits().streams))
    shared: dict[Hashable, Any] = field(default_factory=dict)
    """Things that streams have in common, by what they stream; for the event loop's thread."""
    months: Shared[Forecast] = field(default_factory=lambda: Shared(most=1))
    """The month's forecast: one for all who are told it."""
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the server is to end: streams end too."""

    def job(self, job: JobId) -> JobRecord:
        """Active or ended. May block on the store."""
        if not _ID.fullmatch(job):
            raise NoSuchJob(job[:_LONGEST])
        found = self.control.snapshot.jobs.get(job) or self.store.job(job)
        if found is None:
            raise NoSuchJob(job)
        return found

    def month(self, now: Seconds) -> "Future[Forecast]":
        """This month and its forecast; read by another thread. `now`: the snapshot's."""
        return self.months.of(month_of(now), lambda: this_month(self.store, now))

    def wall_of(self, at: Seconds) -> Seconds:
        """A moment of the service's time, by the machine's clock …"""
        return time.time() - (self.control.now() - at) / self.speed

    def time_of(self, wall: Seconds | None) -> Seconds | None:
        """… and the other way round."""
        if wall is None:
            return None
        return self.control.now() - (time.time() - wall) * self.speed

    async def note(
        self,
        by: Caller,
        what: str,
        subject: str = "",
        *,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a line into the audit log, before something is done that the control loop has no
        part in. Raises, and nothing should be done then, where it cannot be stored."""
        await answer(self.control.note([entry(by, what, subject, before=before, after=after)]))

    def job_row(self, record: JobRecord, snapshot: Snapshot) -> JobRow:
        """Its cost is of the snapshot's moment, as all money is: so rows add up to the total."""
        believed = self.believed.of(record, snapshot.plan)
        return documents.job_row(
            record, documents.holds_of(record, snapshot), snapshot.now, believed
        )


async def answer(future: "Future[_T]") -> _T:
    """The control loop's answer. It goes on with what it was asked, even if nobody waits."""
    try:
        return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), PATIENCE_S)
    except TimeoutError:
        raise TooSlow(PATIENCE_S) from None


def looked_up(look: Callable[[], _T]) -> _T:
    """Look at something that only the control loop's own thread may look at. Blocks."""
    try:
        return look()
    except TimeoutError:
        raise NoAnswer from None


async def only_known_parameters(request: Request) -> None:  # on no thread: that takes longer
    """A misspelt parameter is an error, not silently another question, and so is a second value."""
    parameters = request.scope["route"].dependant.query_params
    known = [parameter.alias for parameter in parameters]
    several = {one.alias for one in parameters if _is_list(one.field_info.annotation)}
    seen = set[str]()
    for name, _ in request.query_params.multi_items():
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else "no parameters"
            raise InputError(name[:_LONGEST], None, expected, "unknown parameter")
        if name in seen - several:
            raise InputError(name, None, "it once", "occurs twice")
        seen.add(name)


def _is_list(annotation: Any) -> bool:
    """Also one that may be left out."""
    return any(get_origin(one) is list for one in (annotation, *get_args(annotation)))
