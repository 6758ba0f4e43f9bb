"""A connection of uvicorn's that waits for its client within limits, and no longer.

What is used of uvicorn's own: that a connection has a `cycle`, its newest request, which says how
far that is, and a `flow`, which says whether the client takes what is sent to it.

httptools reads the requests: what h11 does in Python was a third of a short one's work. It knows
no limit on a head and lets pass what h11 refused of Host and of versions: both are looked after
here.
"""

import asyncio
import http
import json
import logging
from typing import Any, Literal, TypeAlias, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from boa.errors import BoaError
from boa.server.http.crowd import Crowd
from boa.server.http.errors import (
    HeadTooLarge,
    NotHttp,
    TooLarge,
    TooLate,
    error_document,
    status_of,
)
from boa.server.http.gathered import Gathered
from boa.server.http.limits import Limits
from boa.units import Seconds

Awaited: TypeAlias = Literal["head", "body", "taking"]
"""Something that a client owes us: a request's head, its body, or to take its answer."""
VERSIONS = ("1.0", "1.1")
_log = logging.getLogger("boa.server")


class Premises(ServerState):
    """State that uvicorn's connections share, and the crowd that they are."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.crowd = Crowd(limits)


class Connection(HttpToolsProtocol):
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        assert isinstance(server_state, Premises)
        self._crowd, self._limits = server_state.crowd, server_state.crowd.limits
        self._most_bytes = self._limits.head_bytes + self._limits.body_bytes
        self.address = ""
        self._awaited: Awaited | None = None
        self._received = 0
        """Bytes since the last answer."""
        self._refused = False

    # What uvicorn and asyncio tell it

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._gathered = Gathered(transport, self.loop)
        super().connection_made(cast(asyncio.Transport, self._gathered))
        self.address = self.client[0] if self.client else ""
        problem = self._crowd.enter(self)
        if problem is None:
            self._settle()
        else:
            self._refuse(problem)

    def eof_received(self) -> None:
        self._gathered.flush()  # asyncio closes it now: what was answered is still to be sent

    def connection_lost(self, exc: Exception | None) -> None:
        self._crowd.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return  # it is read so that the client comes to read our answer
        self._received += len(data)
        if self._received > self._most_bytes:
            self._refuse(TooLarge(self._limits.body_bytes))
            return
        super().data_received(data)
        if self._received > self._limits.head_bytes and self._what_is_awaited() == "head":
            self._refuse(HeadTooLarge(self._limits.head_bytes))
            return
        self._settle()

    def on_headers_complete(self) -> None:
        """Refuse what h11 would have: whatever is raised here is answered as what is no HTTP."""
        version = self.parser.get_http_version()
        hosts = sum(name == b"host" for name, _ in self.headers)
        if version not in VERSIONS or hosts > 1 or (hosts == 0 and version == VERSIONS[-1]):
            raise ValueError(f"HTTP/{version} with {hosts} hosts")
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._settle()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._settle()

    def on_response_complete(self) -> None:
        self._received = 0
        super().on_response_complete()
        self._settle()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(NotHttp())

    def shutdown(self) -> None:
        if self._refused:
            self.cut()
        else:
            super().shutdown()

    # What the crowd tells it

    def patience_s(self) -> Seconds:
        limits = self._limits
        waits = {"head": limits.head_s, "body": limits.body_s, "taking": limits.taking_s}
        return waits[self._awaited or "taking"]

    def expire(self) -> None:
        if self._awaited == "taking" or self.transport.is_closing():
            _log.warning("a client took nothing of its answer: dropped %s", self.address)
            self.cut()
        elif self._received:
            _log.warning("a request did not come in time: refused %s", self.address)
            self._refuse(TooLate(self.patience_s()))
        else:  # it never asked anything, or nothing more
            self.transport.close()

    def cut(self) -> None:
        self._refused = True
        self.transport.abort()

    def _settle(self) -> None:
        """Tell the crowd if it is now waited for, or for something else than before."""
        awaited = self._what_is_awaited()
        if awaited == self._awaited or self._refused:
            return
        self._awaited = awaited
        if awaited is None:
            self._crowd.serve(self)
        else:
            self._crowd.wait_for(self)

    def _what_is_awaited(self) -> Awaited | None:
        if self.flow.write_paused:
            return "taking"
        if self.cycle is None or self.cycle.response_complete:
            return "head"
        return "body" if self.cycle.more_body else None

    def _refuse(self, problem: BoaError) -> None:
        """Say why, if that can still be said, and end. What the client still sends is read for a
        moment: closed before, its system might throw our answer away."""
        begun = self._abandon()
        stays = not begun and not self.flow.write_paused and self._crowd.linger(self)
        if not stays:
            self.cut()
            return
        self._refused = True
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        self.transport.write(spelled(problem))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _abandon(self) -> bool:
        """The request under way is nobody's any more; whether its answer had begun."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return False
        cycle.disconnected = True
        cycle.message_event.set()
        return cycle.response_started


def spelled(problem: BoaError) -> bytes:
    """An error as a whole answer, after which the connection is closed."""
    status, body = status_of(problem), json.dumps(error_document(problem)).encode()
    lines = [
        f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if status in (429, 503):
        lines.append("Retry-After: 1")
    return "\r\n".join([*lines, "", ""]).encode() + body
