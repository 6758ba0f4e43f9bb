"""A kubelet's port, as far as `GET pods/NAME/log` needs it."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from kube.fake.pod import Pod

Finder = Callable[[str, str], "Pod | None"]
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found"}


class LogServer:
    """HTTP over TLS; one answer for each connection."""

    def __init__(self, find: Finder, serving: ssl.SSLContext) -> None:
        self._find, self._serving = find, serving
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._serving)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """At once, whoever listens."""
        if self._server is not None:
            self._server.close()
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(head.split(b" ")[1].decode(), writer)
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # nobody listens any more
        finally:
            self._open.discard(writer)
            with contextlib.suppress(OSError, ssl.SSLError):
                writer.close()

    async def _answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        address = urlsplit(target)
        code, parts = self._found(address.path, dict(parse_qsl(address.query)))
        head = (
            f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: text/plain\r\n"
            "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode())
        await writer.drain()
        async for part in parts:
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    def _found(self, path: str, query: dict[str, str]) -> tuple[int, AsyncIterator[bytes]]:
        words = path.strip("/").split("/")
        if len(words) != 4 or words[0] != "containerLogs":
            return 404, _text(f"no such path here: {path}")
        _, namespace, name, container = words
        if (pod := self._find(namespace, name)) is None:
            return 404, _text(f'pod "{name}" does not exist')
        for one in pod.containers:
            if one.name == container:
                if one.log is not None:
                    return 200, one.log.read(query)
                waits = one.state.get("waiting")
                why = f"waiting to start: {waits['reason']}" if waits else "terminated"
                return 400, _text(f'container "{container}" in pod "{name}" is {why}')
        return 400, _text(f"container {container} is not valid for pod {name}")


async def _text(text: str) -> AsyncIterator[bytes]:
    yield text.encode()
