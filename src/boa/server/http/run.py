"""Listening and serving: in the main thread, until SIGTERM or SIGINT."""

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
from fastapi import FastAPI

from boa.errors import InputError
from boa.server.http import logs
from boa.server.http.connection import Connection, Premises
from boa.server.http.limits import Limits
from boa.server.http.refusals import Refusals
from boa.server.http.tls import Tls

GRACE_S = 1
"""How long requests that are under way may take when the server is to end."""
BACKLOG = 1024
"""Connections that wait to be accepted."""
ACCEPTED_AT_ONCE = 64
"""More would keep those waiting who are connected. asyncio tries it so many times in vain, and
tells of each, where there are no descriptors (CPython's issue 151615)."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections from now on; they are answered once `serve` runs.

    Port 0 takes a free one. A port that is taken is an error before anything else is begun.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):
        raise InputError("--host", host, "a name or an address of this machine") from None
    # asyncio turns off waiting for more to send (40 ms an answer) only where it sees it is TCP.
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as problem:
        listening.close()
        reason = os.strerror(problem.errno).lower() if problem.errno else str(problem)
        where = f"{host} port {port}: {reason}"
        raise InputError(
            "--port", port, "a free one (is another boa serve running?)", where
        ) from None
    return listening


def url_of(listening: socket.socket, tls: Tls | None = None) -> str:
    """Where processes of this machine reach it."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    scheme = "http" if tls is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def serve(
    app: FastAPI, listening: socket.socket, on_ready: Callable[[], None], tls: Tls | None = None
) -> None:
    """Answer requests until a signal says to end; streams are ended, then the call returns."""
    server_for(app, on_ready, tls).run(sockets=[listening])


def server_for(app: FastAPI, on_ready: Callable[[], None], tls: Tls | None = None) -> "Server":
    limits: Limits = app.state.limits
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="asyncio",  # no other one that happens to be there: limits are tried with this one
        timeout_keep_alive=limits.idle_s,
        log_config=None,
        access_log=bool(os.environ.get("BOA_DEBUG")),
        server_header=False,
        proxy_headers=False,  # or any process of this machine could say where it asks from
        timeout_graceful_shutdown=GRACE_S,
        backlog=ACCEPTED_AT_ONCE,
        ssl_certfile=None if tls is None else tls.cert,
        ssl_keyfile=None if tls is None else tls.key,
    )
    return Server(config, limits, app.state.stopping, on_ready, app.state.refusals)


class Server(uvicorn.Server):
    """Keeps its connections within limits, ends streams when it is to end, and leaves signals as
    it found them."""

    def __init__(
        self,
        config: uvicorn.Config,
        limits: Limits,
        stopping: threading.Event,
        on_ready: Callable[[], None],
        refusals: Refusals,
    ) -> None:
        super().__init__(config)
        self._refusals = refusals
        self.server_state = self.premises = Premises(limits)
        self._stopping, self._on_ready = stopping, on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(BACKLOG)  # asyncio has set it to how many are accepted at once
        self._on_ready()

    async def on_tick(self, counter: int) -> bool:
        self.premises.crowd.look()
        logs.tell_left_out()
        self._refusals.tick()
        return await super().on_tick(counter)

    def end(self) -> None:
        self._stopping.set()
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn's own would send the signal again at the end, before others could tidy up."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, frame: FrameType | None) -> None:
            self.end()

        before = {
            number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
