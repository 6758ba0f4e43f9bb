"""A port of this machine that leads elsewhere, as a Service's address would in a whole cluster."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

BYTES = 64 * 1024
Target = Callable[[], tuple[str, int]]


@contextlib.contextmanager
def forwarding(host: str, target: Target) -> Iterator[int]:
    """The port. Who connects is led to where `target` says at that moment; where nobody is there,
    the connection is closed at once."""
    with socket.create_server((host, 0)) as listening:
        gate = _Gate(listening, target)
        try:
            yield listening.getsockname()[1]
        finally:
            gate.close()


class _Gate:
    def __init__(self, listening: socket.socket, target: Target) -> None:
        self._listening, self._target = listening, target
        self._open: set[socket.socket] = set()
        self._threads = [self._begin(self._accept)]

    def close(self) -> None:
        for one in (self._listening, *self._open):
            _shut(one)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            self._threads.append(self._begin(self._lead, caller))

    def _lead(self, caller: socket.socket) -> None:
        with (
            caller,
            contextlib.suppress(OSError, LookupError),
            socket.create_connection(self._target(), timeout=10) as answering,
        ):
            answering.settimeout(None)
            self._open |= {caller, answering}
            back = self._begin(_pump, answering, caller)
            _pump(caller, answering)
            back.join()
            self._open -= {caller, answering}

    def _begin(self, work: Callable[..., None], *args: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=args, daemon=True)
        thread.start()
        return thread


def _pump(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(BYTES):
            other.sendall(data)
    for end in (one, other):
        _shut(end)


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
