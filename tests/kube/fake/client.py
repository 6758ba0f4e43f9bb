"""The API server as nodes ask it: patiently, and all of them through a few connections.

Plain HTTP/1.1 over asyncio's streams: hundreds of pods that tell their state at once would have
httpx look through its pool most of the time.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode, urlsplit

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
_AGAIN_S = 0.2
_PATIENCE_S = 30.0
_CONNECTIONS = 16
_LATER = (429, 500, 503, 504)


class Refused(Exception):
    """An answer that is not 2xx; `code` is its number."""

    def __init__(self, code: int, said: str) -> None:
        self.code = code
        super().__init__(f"{code} {said[:500]}")


class _Connection:
    """One question at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def begin(self, head: str, body: bytes) -> tuple[int, dict[str, str]]:
        """Ask; the answer's code and headers."""
        self._writer.write(head.encode() + body)
        said = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = said.strip().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return int(status.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def parts(self, headers: dict[str, str]) -> AsyncIterator[bytes]:
        """The answer's body, as it comes."""
        if headers.get("transfer-encoding") != "chunked":
            yield await self._reader.readexactly(int(headers.get("content-length", 0)))
            return
        while size := int(await self._reader.readline() or b"x", 16):  # nothing: it broke off
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()

    def close(self) -> None:
        self._writer.transport.abort()


class Client:
    """Waits for an API server that is away: a machine goes on without one."""

    def __init__(self, server: str, authority: str, pair: tuple[str, str]) -> None:
        self._context = ssl.create_default_context(cafile=authority)
        self._context.load_cert_chain(*pair)
        address = urlsplit(server)
        self._where = (address.hostname or "", address.port or 443)
        self._idle: list[_Connection] = []
        self._slots = asyncio.Semaphore(_CONNECTIONS)

    async def ask(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", **query: str
    ) -> Any:
        """The answer, however long it takes.

        Raises:
            Refused: the API says no.
        """
        content = b"" if body is None else json.dumps(body).encode()
        while True:
            try:
                async with self._slots, asyncio.timeout(_PATIENCE_S):
                    code, said = await self._once(method, _target(path, query), content, kind)
            except (OSError, EOFError, ValueError, TimeoutError):
                await asyncio.sleep(_AGAIN_S)
                continue
            if 200 <= code < 300:
                return json.loads(said)
            if code not in _LATER:
                raise Refused(code, said.decode(errors="replace"))
            await asyncio.sleep(_AGAIN_S)

    async def watch(self, path: str, **query: str) -> AsyncIterator[tuple[str, Any]]:
        """ADDED, MODIFIED and DELETED as they come; once more ALL, a list, whenever anything may
        have been missed."""
        while True:
            listed = await self.ask("GET", path, **query)
            yield "ALL", listed["items"]
            version = listed["metadata"]["resourceVersion"]
            try:
                async for kind, what in self._changes(path, version, query):
                    yield kind, what
            except (OSError, EOFError, ValueError):
                await asyncio.sleep(_AGAIN_S)

    async def _once(self, method: str, target: str, body: bytes, kind: str) -> tuple[int, bytes]:
        connection = self._idle.pop() if self._idle else await self._connect()
        try:
            head = self._head(method, target, kind, len(body))
            code, headers = await connection.begin(head, body)
            said = b"".join([part async for part in connection.parts(headers)])
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return code, said

    async def _changes(
        self, path: str, version: str, query: dict[str, str]
    ) -> AsyncIterator[tuple[str, Any]]:
        asked = {**query, "watch": "true", "resourceVersion": version, "timeoutSeconds": "600"}
        connection = await self._connect()
        try:
            head = self._head("GET", _target(path, asked), "application/json", 0)
            code, headers = await connection.begin(head, b"")
            begun = b""
            async for part in connection.parts(headers):
                *lines, begun = (begun + part).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if code != 200 or event["type"] == "ERROR":
                        return
                    yield event["type"], event["object"]
        finally:
            connection.close()

    async def _connect(self) -> _Connection:
        async with asyncio.timeout(_PATIENCE_S):
            pair = await asyncio.open_connection(*self._where, ssl=self._context, limit=1 << 26)
        return _Connection(*pair)

    def _head(self, method: str, target: str, kind: str, length: int) -> str:
        host, port = self._where
        return (
            f"{method} {target} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: application/json\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        )


def _target(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path
