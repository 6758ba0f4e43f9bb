"""Processes of ours that go on without the service: each in a session of its own."""

import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any


def begun(words: Sequence[str], env: Mapping[str, str], given: int | None = None) -> int:
    """Its process id. `given`: a descriptor for its standard input; else it has none, and nobody
    sees what it prints."""
    closed = (1, 2) if given is not None else (0, 1, 2)
    actions: list[tuple[Any, ...]] = [
        (os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in closed
    ]
    if given is not None:
        actions.insert(0, (os.POSIX_SPAWN_DUP2, given, 0))
    return os.posix_spawnp(
        words[0],
        list(words),
        dict(env),
        file_actions=actions,
        setsid=True,  # so that a terminal's Ctrl-C is the service's alone
        setsigmask=[],
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
    )
