"""Ports of this machine that stay a test's own."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[int]:
    """One at which nobody listens, and which the system gives to nobody else meanwhile.

    It is bound, but may be shared (SO_REUSEADDR): who says so too can listen there, again and
    again. One found free and let go could be anybody's by then.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("", 0))
        yield int(held.getsockname()[1])
