"""Answers that go on: sent as things happen, ended when the client is gone, or we end.

A client that takes nothing is dropped by its connection (`Limits.taking_s`); until then nothing
more is read for it.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from boa.server.http.errors import TooManyStreams, error_answer

LOOK_S = 0.2
"""How often a stream looks for something new, in seconds of the wall."""


@dataclass(slots=True)
class Places:
    """How many streams there may be at once, and are."""

    most: int
    taken: int = 0


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
        places.taken += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            places.taken -= 1
