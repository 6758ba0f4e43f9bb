"""The end of patience with whoever is told: a time for all of it, however slowly they answer.

Timeouts of sockets begin anew with every byte: one byte now and then holds a courier for ever.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from boa.units import Seconds

AGAIN_S: Seconds = 1.0
"""A socket that was just being wrapped in TLS is another one the next time."""


@contextmanager
def patience(seconds: Seconds, connected: Callable[[], object]) -> Iterator[threading.Event]:
    """Shut down what is connected once that time is over; the event is set then."""
    over, late = threading.Event(), threading.Event()

    def watch() -> None:
        wait = seconds
        while not over.wait(wait):
            late.set()
            wait = AGAIN_S
            found = connected()
            if isinstance(found, socket.socket):
                with suppress(OSError):  # not by TLS's own, which another thread is using
                    socket.socket.shutdown(found, socket.SHUT_RDWR)

    threading.Thread(target=watch, name="boa-patience", daemon=True).start()
    try:
        yield late
    finally:
        over.set()
