"""Answers that go on: sent as things happen, ended when the client is gone, too slow, or we end."""

import asyncio
from collections.abc import AsyncIterator, Mapping

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

LOOK_S = 0.2
"""How often a stream looks for something new, in seconds of the wall."""
SLOW_S = 30.0
"""A client that takes nothing for so long is dropped; until then nothing more is read for it."""


class LiveStream(StreamingResponse):
    def __init__(
        self, chunks: AsyncIterator[bytes], media_type: str, headers: Mapping[str, str]
    ) -> None:
        kept = {"cache-control": "no-store", "x-content-type-options": "nosniff", **headers}
        super().__init__(chunks, media_type=media_type, headers=kept)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_soon(message: Message) -> None:
            try:
                await asyncio.wait_for(send(message), SLOW_S)
            except TimeoutError:
                raise ClientDisconnect from None

        await super().__call__(scope, receive, send_soon)
