"""Answers that go on: sent as things happen, ended when the client is gone, or we end.

A client that takes nothing is dropped by its connection (`Limits.taking_s`); until then nothing
more is read for it.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from boa.server.http.access import STILL
from boa.server.http.errors import TooManyStreams, error_answer

_T = TypeVar("_T")
LOOK_S = 0.2
"""How often a stream looks for something new, in seconds of the wall."""


class Once(Generic[_T]):
    """Pieces that many streams are to send: made once for all who ask for the same one.

    For the thread of one event loop. One that could not be made is tried again by who asks next.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._made: dict[Hashable, asyncio.Future[_T]] = {}

    async def of(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """`make` may block: it is called on another thread."""
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = asyncio.ensure_future(run_in_threadpool(make))
            made.add_done_callback(lambda done: self._forget(key, done))
            while len(self._made) > self._most:
                del self._made[next(iter(self._made))]
        return await asyncio.shield(made)  # who goes away ends it for no other

    def _forget(self, key: Hashable, done: "asyncio.Future[_T]") -> None:
        if (done.cancelled() or done.exception() is not None) and self._made.get(key) is done:
            del self._made[key]


@dataclass(slots=True)
class Places:
    """How many streams there may be at once, and are."""

    most: int
    taken: int = 0


async def _while(still: Callable[[], bool], chunks: AsyncIterable[_T]) -> AsyncIterator[_T]:
    """As long as who asked may: a token that is taken back ends what it has opened."""
    async for chunk in chunks:
        if not still():
            return
        yield chunk


class LiveStream(StreamingResponse):
    def __init__(
        self,
        chunks: AsyncIterator[bytes],
        media_type: str,
        headers: Mapping[str, str],
        places: Places,
    ) -> None:
        kept = {"cache-control": "no-store", "x-content-type-options": "nosniff", **headers}
        super().__init__(chunks, media_type=media_type, headers=kept)
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        places = self._places
        if places.taken >= places.most:
            await error_answer(TooManyStreams(places.most))(scope, receive, send)
            return
        if (still := scope.get(STILL)) is not None:
            self.body_iterator = _while(still, self.body_iterator)
        places.taken += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            places.taken -= 1
