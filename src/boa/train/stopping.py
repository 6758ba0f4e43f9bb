"""SIGTERM means: checkpoint and exit. Here it only sets a flag, which the script asks for."""

import atexit
import os
import signal
import time
from types import FrameType

_asked: float | None = None
"""When, by the monotonic clock."""
_listening: int | None = None
"""The process that listens. Forked ones inherit the handler, but are not ours to keep alive."""
_handler: object = None


def stop_requested() -> bool:
    """Whether to save a checkpoint now and exit with code 0."""
    listen()
    return _asked is not None


def asked_s_ago() -> float:
    """Seconds since SIGTERM came first; 0 if it has not."""
    return 0.0 if _asked is None else time.monotonic() - _asked


def listen() -> None:
    """Catch SIGTERM from now on. A handler that is already there is called as well.

    So is one that somebody has put in our place since: without ours, every stop would be a kill.
    """
    global _handler, _listening
    before = signal.getsignal(signal.SIGTERM)
    if _listening is not None and (before is _handler or os.getpid() != _listening):
        return

    def on_stop(number: int, frame: FrameType | None) -> None:
        global _asked
        if os.getpid() == _listening:
            _asked = time.monotonic() if _asked is None else _asked
        elif not callable(before):  # a data loader, say: SIGTERM does to it what it always did
            signal.signal(number, before or signal.SIG_DFL)
            signal.raise_signal(number)
        if callable(before):
            before(number, frame)

    try:
        signal.signal(signal.SIGTERM, on_stop)
    except ValueError:  # only the main thread may; it will when it asks
        return
    if _listening is None:
        atexit.register(_stop_listening)
    _handler, _listening = on_stop, os.getpid()


def _stop_listening() -> None:
    """At the end Python would have SIGTERM kill again: ranks that have stopped because one of them
    was asked to are asked themselves while they exit."""
    if os.getpid() == _listening:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
