"""Everything that a page watches: as it is, or as a stream of what changes."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from boa.api import answers
from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.runtime.snapshot import Snapshot
from boa.server.context import Service, only_known_parameters
from boa.server.http.errors import documented
from boa.server.http.streams import LOOK_S, LiveStream, Once
from boa.server.render import documents
from boa.server.render.watching import News, Watch, counts_of
from boa.server.routes.events import STREAM
from boa.store.base import StoreTrouble

EVERY_S = 1.0
"""Seconds of the wall between two messages, at least."""
HEARTBEAT_S = 5.0
"""And at least one with the budget and how many jobs there are."""
KEPT = 16
"""Messages that are kept for those who take them late; whoever is later is told what he missed."""
OPENING_S = 1.0
"""Whoever comes within so long of another is told the same at first."""
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
    said["jobs"] = _rows(service, snapshot, newest)
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
        "budget": documents.budget(snapshot.money),
        "plan": None if snapshot.plan is None else snapshot.plan.number,
        "last_event": snapshot.last_event,
        "counts": counts_of(snapshot.jobs.values()),
    }


async def live_chunks(
    service: Service, every_s: float = EVERY_S, heartbeat_s: float = HEARTBEAT_S
) -> AsyncIterator[bytes]:
    """All of it, then what all who watch are told; nobody is told anything of his own but what he
    has missed."""
    here = ("live", id(asyncio.get_running_loop()), every_s, heartbeat_s)
    told: Broadcast = service.shared.setdefault(here, Broadcast(service, every_s, heartbeat_s))
    with told.listening():
        whole = told.opening()
        yield await whole.piece(0)
        number = 1
        while not service.stopping.is_set():
            yield await whole.piece(number)
            number += 1
            if whole.complete_at == number:
                break
        teller, heard = Teller(service, whole.seen()), told.number
        while not service.stopping.is_set():
            heard = told.number  # of the snapshot that is looked at: others may come meanwhile
            missed = await run_in_threadpool(teller.next, False, told.snapshot)
            if missed is not None:
                yield missed
            if not teller.watch.behind:
                break
        while not service.stopping.is_set():
            news = await told.after(heard)
            if news is None and heard < told.number:  # it has taken too long to take the last ones
                heard = told.number
                missed = await run_in_threadpool(teller.next, False, told.snapshot)
                if missed is not None:
                    yield missed
            elif news is not None:
                heard, teller.watch = news.number, news.seen
                yield news.message


class Told(NamedTuple):
    """A message to all who watch, and what they have seen with it."""

    number: int
    message: bytes
    seen: Watch


class Broadcast:
    """Messages to all who watch: made once, however many they are. For one event loop's thread;
    it works while anybody listens."""

    def __init__(self, service: Service, every_s: float, heartbeat_s: float) -> None:
        self._service, self._every_s, self._heartbeat_s = service, every_s, heartbeat_s
        self._teller = Teller(service)
        self.snapshot = service.control.snapshot
        """Snapshot that the last message was made of."""
        self.number = 0
        """Number of the last message."""
        self._kept: deque[Told] = deque(maxlen=KEPT)
        self._listeners = 0
        self._work: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._opening: Opening | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        self._listeners += 1
        if self._work is None or self._work.done():
            self.snapshot = self._service.control.snapshot
            self._teller.watch = Watch()
            self._teller.watch.join(self.snapshot)
            self._work = asyncio.create_task(self._tell())
        try:
            yield
        finally:
            self._listeners -= 1

    def opening(self) -> "Opening":
        """All there is, for those who come at about the same time."""
        now = time.monotonic()
        if self._opening is None or now - self._opening.made_at > min(OPENING_S, self._every_s):
            self._opening = Opening(self._service, now)
        return self._opening

    async def after(self, number: int) -> Told | None:
        """The message after this one; None: nobody knows it any more, or it is time to look
        whether the service ends."""
        if number == self.number:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), LOOK_S * 5)
        return next((told for told in self._kept if told.number == number + 1), None)

    async def _tell(self) -> None:
        beaten = looked = time.monotonic()
        while self._listeners and not self._service.stopping.is_set():
            await asyncio.sleep(min(LOOK_S, self._every_s))
            at = time.monotonic()
            if at - looked < self._every_s:
                continue
            looked, heartbeat = at, at - beaten >= self._heartbeat_s
            snapshot = self._service.control.snapshot
            message = await run_in_threadpool(self._teller.next, heartbeat, snapshot)
            if heartbeat:
                beaten = at
            self.snapshot = snapshot
            if message is not None:
                self.number += 1
                self._kept.append(Told(self.number, message, self._teller.watch.seen()))
                self._news.set()
                self._news = asyncio.Event()


class Opening:
    """All there is at a moment, in pieces; each is made once."""

    def __init__(self, service: Service, made_at: float) -> None:
        self.made_at, self._service = made_at, service
        self._snapshot = service.control.snapshot
        self._teller = Teller(service)
        self._once: Once[bytes] = Once(most=10_000)
        self.complete_at = -1
        """How many pieces there are, once that is known."""

    async def piece(self, number: int) -> bytes:
        """In order: nobody asks for one before he has had the one before it."""
        return await self._once.of(number, partial(self._made, number))

    def seen(self) -> Watch:
        return self._teller.watch.seen()

    def _made(self, number: int) -> bytes:
        if number == 0:
            first = spelled(opening(self._service, self._snapshot))
            self._teller.watch.begin(self._snapshot)
            return first
        piece = self._teller.first(self._snapshot)
        if not self._teller.watch.behind:
            self.complete_at = number + 1
        return piece


class Teller:
    """Makes one watcher's messages. May block on the store."""

    def __init__(self, service: Service, watch: Watch | None = None) -> None:
        self._service = service
        self.watch = watch or Watch()

    def first(self, snapshot: Snapshot) -> bytes:
        """The next piece of all there is."""
        news = self.watch.look(snapshot)
        return spelled(self._told(snapshot, news, complete=not self.watch.behind))

    def next(self, heartbeat: bool, snapshot: Snapshot) -> bytes | None:
        """Changes since the last message; None: there are none, and it is no time to say so."""
        news = self.watch.look(snapshot)
        if not news and not heartbeat:
            return None
        message = self._told(snapshot, news, complete=True)
        if heartbeat or news.nodes or news.gone or news.last_event is not None:
            message["budget"] = documents.budget(snapshot.money)
        if heartbeat:
            message["counts"] = counts_of(snapshot.jobs.values())
        return spelled(message)

    def _told(self, snapshot: Snapshot, news: News, complete: bool) -> answers.Live:
        now = self._service.control.now()
        message: answers.Live = {"now": now, "complete": complete}
        jobs = [*news.jobs, *self._ended(news.left)]
        if jobs:
            message["jobs"] = _rows(self._service, snapshot, jobs)
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
    service: Service, snapshot: Snapshot, records: Iterable[JobRecord]
) -> list[answers.JobRow]:
    return [service.job_row(record, snapshot) for record in records]


def spelled(message: answers.Live) -> bytes:
    """As the standard for server-sent events has it; JSON has no raw line breaks."""
    return f"data: {compact(message)}\n\n".encode()


def compact(message: answers.Live) -> str:
    return json.dumps(message, allow_nan=False, separators=(",", ":"))
