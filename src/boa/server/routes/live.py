"""Everything that a page watches: as it is, or as a stream of what changes."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from boa.api import answers
from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.runtime.snapshot import Snapshot
from boa.server.context import Service, only_known_parameters
from boa.server.http.errors import documented
from boa.server.http.streams import LOOK_S, LiveStream
from boa.server.render import documents
from boa.server.render.watching import News, Watch, counts_of
from boa.server.routes.events import STREAM
from boa.store.base import StoreTrouble

EVERY_S = 1.0
"""Seconds of the wall between two messages, at least."""
HEARTBEAT_S = 5.0
"""And at least one with the budget and how many jobs there are."""
MOST_ENDED = 200
"""So many jobs that have ended are looked up for one message."""


class LiveRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    def router(self) -> APIRouter:
        router = APIRouter(tags=["events"], dependencies=[Depends(only_known_parameters)])
        told = {
            "description": "All of it. As a stream: `data` is one message as JSON, first the "
            "figures, then all nodes and active jobs in pieces, then what has changed, at most "
            "once a second and at least every 5 s.",
            "content": {STREAM: {"schema": {"type": "string"}}},
        }
        router.add_api_route(
            "/live",
            self.live,
            response_model=answers.Live,
            responses={200: told, **documented(401, 403, 422, 503)},
        )
        return router

    async def live(self, request: Request) -> Response:
        """Budget, nodes and active jobs, with what is believed of their ends.

        With `Accept: text/event-stream`, all of it and then what changes. Costs grow with time
        by themselves: that alone sends no row again.
        """
        if STREAM in request.headers.get("accept", ""):
            return LiveStream(live_chunks(self._service), STREAM, {}, self._service.streams)
        whole = await run_in_threadpool(everything, self._service)
        return Response(compact(whole), media_type="application/json")


def everything(service: Service) -> answers.Live:
    """In one message."""
    snapshot = service.control.snapshot
    said = opening(service, snapshot)
    newest = sorted(snapshot.jobs.values(), key=lambda record: -int(record.id))
    said["jobs"] = _rows(service, snapshot, newest, said["now"])
    said["nodes"] = documents.nodes(snapshot)
    said["complete"] = True
    return said


def opening(service: Service, snapshot: Snapshot) -> answers.Live:
    """The message that a page can be painted with before it has a single row."""
    now = service.control.now()
    return {
        "now": now,
        "complete": False,
        "speed": service.speed,
        "version": service.version,
        "budget": documents.budget(snapshot.money, now),
        "plan": None if snapshot.plan is None else snapshot.plan.number,
        "last_event": snapshot.last_event,
        "counts": counts_of(snapshot.jobs.values()),
    }


async def live_chunks(
    service: Service, every_s: float = EVERY_S, heartbeat_s: float = HEARTBEAT_S
) -> AsyncIterator[bytes]:
    snapshot = service.control.snapshot
    teller = Teller(service)
    yield spelled(await run_in_threadpool(opening, service, snapshot))
    teller.watch.begin(snapshot)
    while not service.stopping.is_set():
        yield await run_in_threadpool(teller.first, snapshot)
        if not teller.watch.behind:
            break
    beaten = looked = time.monotonic()
    while not service.stopping.is_set():
        await asyncio.sleep(min(LOOK_S, every_s))
        at = time.monotonic()
        if at - looked < every_s:
            continue
        looked, heartbeat = at, at - beaten >= heartbeat_s
        message = await run_in_threadpool(teller.next, heartbeat)
        if heartbeat:
            beaten = at
        if message is not None:
            yield message


class Teller:
    """Makes one watcher's messages. May block on the store."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.watch = Watch()

    def first(self, snapshot: Snapshot) -> bytes:
        """The next piece of all there is."""
        news = self.watch.look(snapshot)
        return spelled(self._told(snapshot, news, complete=not self.watch.behind))

    def next(self, heartbeat: bool) -> bytes | None:
        """Changes since the last message; None: there are none, and it is no time to say so."""
        snapshot = self._service.control.snapshot
        news = self.watch.look(snapshot)
        if not news and not heartbeat:
            return None
        message = self._told(snapshot, news, complete=True)
        if heartbeat or news.nodes or news.gone or news.last_event is not None:
            message["budget"] = documents.budget(snapshot.money, message["now"])
        if heartbeat:
            message["counts"] = counts_of(snapshot.jobs.values())
        return spelled(message)

    def _told(self, snapshot: Snapshot, news: News, complete: bool) -> answers.Live:
        now = self._service.control.now()
        message: answers.Live = {"now": now, "complete": complete}
        jobs = [*news.jobs, *self._ended(news.left)]
        if jobs:
            message["jobs"] = _rows(self._service, snapshot, jobs, now)
        if news.nodes:
            message["nodes"] = [documents.node(*seen) for seen in news.nodes]
        if news.gone:
            message["gone"] = list(news.gone)
        if news.counts is not None:
            message["counts"] = dict(news.counts)
        if news.plan is not None:
            message["plan"] = news.plan
        if news.last_event is not None:
            message["last_event"] = news.last_event
        return message

    def _ended(self, left: Iterable[JobId]) -> list[JobRecord]:
        """As they were stored; those that cannot be read now are tried again."""
        found: list[JobRecord] = []
        later = list(left)
        try:
            while later and len(found) < MOST_ENDED:
                record = self._service.store.job(later[-1])
                later.pop()
                if record is not None and record.ended:
                    found.append(record)
        except StoreTrouble:
            pass
        self.watch.again(later)
        return found


def _rows(
    service: Service, snapshot: Snapshot, records: Iterable[JobRecord], now: float
) -> list[answers.JobRow]:
    return [service.job_row(record, snapshot, now) for record in records]


def spelled(message: answers.Live) -> bytes:
    """As the standard for server-sent events has it; JSON has no raw line breaks."""
    return f"data: {compact(message)}\n\n".encode()


def compact(message: answers.Live) -> str:
    return json.dumps(message, allow_nan=False, separators=(",", ":"))
