"""Events: a list, or a stream of them as they happen (server-sent events).

Lines of logs that some of them carry are for who may read that log: others get the same event
without.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from boa.api import answers
from boa.errors import InputError
from boa.model.access import NOBODY, Caller
from boa.model.cluster import JobId
from boa.scheduler.words.sentences import without_log
from boa.server.context import Service, only_known_parameters
from boa.server.http.access import caller_of
from boa.server.http.errors import documented
from boa.server.http.log_readers import Readable, readable_by
from boa.server.http.streams import LOOK_S, LiveStream, Once
from boa.server.render import documents
from boa.store.base import StoredEvent, StoreTrouble

PAGE = 1000
HEARTBEAT_S = 15.0
STREAM = "text/event-stream"


class EventRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    def router(self) -> APIRouter:
        router = APIRouter(tags=["events"], dependencies=[Depends(only_known_parameters)])
        stream = {
            "description": "Events, by rising number. As a stream: `id` is the number, `event` the "
            "kind, `data` one event as JSON; a comment every 15 s says that the server is there.",
            "content": {STREAM: {"schema": {"type": "string"}}},
        }
        router.add_api_route(
            "/events",
            self.events,
            response_model=answers.EventList,
            responses={200: stream, **documented(401, 403, 422, 503)},
        )
        return router

    async def events(
        self,
        request: Request,
        after: Annotated[
            int | None,
            Query(ge=0, description="Those of larger numbers only. Left out: the newest."),
        ] = None,
        limit: Annotated[int, Query(ge=1, le=PAGE)] = 100,
        job: Annotated[str | None, Query(description="Of this job only.")] = None,
        last_event_id: Annotated[
            str | None, Header(description="Where a stream goes on; what browsers send.")
        ] = None,
    ) -> answers.EventList | Response:
        """Events, in plain words.

        With `Accept: text/event-stream`, what happens from now on (or after `after`, or
        `Last-Event-ID`).
        """
        if STREAM in request.headers.get("accept", ""):
            start = after if last_event_id is None else _number(last_event_id)
            return await self._stream(start, job, caller_of(request))
        readable = readable_by(self._service, caller_of(request))
        return await run_in_threadpool(self._list, after, limit, job, readable)

    def _list(
        self, after: int | None, limit: int, job: JobId | None, readable: Readable
    ) -> answers.EventList:
        store, newest = self._service.store, after is None
        found = store.events(after=after or 0, job=job, limit=limit, newest=newest)
        told = [one if not has_log(one) or readable(one.event.job) else bare(one) for one in found]
        return {"events": [documents.event(one) for one in told], "last": self._last()}

    def _last(self) -> int:
        newest = self._service.store.events(limit=1, newest=True)
        return newest[-1].number if newest else 0

    async def _stream(self, after: int | None, job: JobId | None, to: Caller) -> Response:
        if after is None:
            after = await run_in_threadpool(self._last)
        return LiveStream(
            event_chunks(self._service, after, job, to=to), STREAM, {}, self._service.streams
        )


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise InputError("Last-Event-ID", text[:60], "the number of an event")
    return int(text)


async def event_chunks(
    service: Service,
    after: int,
    job: JobId | None,
    heartbeat_s: float = HEARTBEAT_S,
    to: Caller = NOBODY,
) -> AsyncIterator[bytes]:
    yield b": events follow\n\n"  # so that the client knows at once that it was let in
    said = time.monotonic()
    once: Once[tuple[list[Told], int]] = service.shared.setdefault(("events", _loop()), Once())
    while not service.stopping.is_set():
        last = service.control.snapshot.last_event
        if last > after:
            told = b""
            with suppress(StoreTrouble):
                news = partial(_news, service, after, last, job)
                pieces, newest = await once.of((after, last, job), news)
                readable = readable_by(service, to)
                told = await _for(pieces, readable)
                after = newest
            if told:
                yield told
                said = time.monotonic()
                continue
        if time.monotonic() - said >= heartbeat_s:
            yield b": still here\n\n"
            said = time.monotonic()
        await asyncio.sleep(LOOK_S)


def _loop() -> int:
    return id(asyncio.get_running_loop())


class Told(NamedTuple):
    """Events in a row as they are sent, to all; or one with a line of a log."""

    all: bytes
    """For everybody …"""
    readers: bytes = b""
    """… and for who may read the log of this job; empty: the same."""
    job: JobId | None = None


async def _for(pieces: Sequence[Told], readable: Readable) -> bytes:
    """Pieces for one who listens."""
    if not any(piece.readers for piece in pieces):
        return b"".join(piece.all for piece in pieces)

    def chosen() -> bytes:
        return b"".join(
            piece.readers if piece.readers and readable(piece.job) else piece.all
            for piece in pieces
        )

    return await run_in_threadpool(chosen)


def _news(service: Service, after: int, last: int, job: JobId | None) -> tuple[list[Told], int]:
    """Events after one, as they are sent, and which the next ones come after. `last`: the newest
    that there is; the same for all who have seen as much, and listen to the same."""
    found = service.store.events(after=after, job=job, limit=PAGE)
    newest = found[-1].number if found else 0
    return spelled(found), newest if len(found) == PAGE else max(last, newest)


def spelled(found: Sequence[StoredEvent]) -> list[Told]:
    """As the standard for server-sent events has it; JSON has no raw line breaks."""
    told: list[Told] = []
    for has, some in groupby(found, key=has_log):
        if has:
            told += [Told(_spelled(bare(one)), _spelled(one), one.event.job) for one in some]
        else:
            told.append(Told(b"".join(map(_spelled, some))))
    return told


def _spelled(stored: StoredEvent) -> bytes:
    document = json.dumps(documents.event(stored))
    return f"id: {stored.number}\nevent: {stored.event.kind}\ndata: {document}\n\n".encode()


def has_log(stored: StoredEvent) -> bool:
    """Whether it carries a line of its job's log."""
    return bool(stored.event.data.get("said"))


def bare(stored: StoredEvent) -> StoredEvent:
    """The same without that line."""
    return replace(stored, event=without_log(stored.event))
