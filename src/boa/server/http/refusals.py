"""Refused requests for the audit log: the first of a kind at once, the others counted.

However many come, few lines are written: a window of a minute has ten kinds and all the rest, and
windows grow to an hour while refusals go on.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import NamedTuple

from boa.model.access import AuditEntry
from boa.units import Seconds

KINDS = 10
"""Kinds that have lines of their own within one window."""
SHORTEST_S, LONGEST_S = 60.0, 3600.0
LAST_S = 2.0
"""How long the end of the service may wait for the last lines."""
LONGEST_PATH = 80


class Kind(NamedTuple):
    """All that refused requests have in common which are counted together."""

    status: int
    who: str
    role: str
    address: str
    asked: str
    """Method and path."""


REST = Kind(0, "", "", "", "others")
Write = Callable[[Sequence[AuditEntry]], "Future[None]"]


class Refusals:
    """`write`: puts lines into the audit log. From any thread."""

    def __init__(self, write: Write, clock: Callable[[], Seconds] = time.time) -> None:
        self._write, self._clock = write, clock
        self._lock = threading.Lock()
        self._counted: dict[Kind, int] = {}
        """Not written yet, of every kind of this window."""
        self._window_s, self._until = SHORTEST_S, -1.0

    def add(self, kind: Kind) -> None:
        with self._lock:
            now = self._clock()
            if not self._counted:
                self._until = now + self._window_s
            if kind in self._counted:
                self._counted[kind] += 1
                return
            if len(self._counted) >= KINDS:
                self._counted[REST] = self._counted.get(REST, 0) + 1
                return
            self._counted[kind] = 0
        self._send([_line(kind, 1, now)])

    def tick(self) -> None:
        """To be called now and then: writes what a window that is over has counted."""
        if self._counted and self._clock() >= self._until:
            self.flush()

    def flush(self) -> "Future[None] | None":
        with self._lock:
            now = self._clock()
            lines = [_line(kind, count, now) for kind, count in self._counted.items() if count]
            self._counted = {}
            self._window_s = min(LONGEST_S, 2 * self._window_s) if lines else SHORTEST_S
        return self._send(lines) if lines else None

    def close(self) -> None:
        if (written := self.flush()) is not None:
            with suppress(Exception):  # the service ends all the same
                written.result(LAST_S)

    def _send(self, lines: Sequence[AuditEntry]) -> "Future[None] | None":
        with suppress(RuntimeError):
            return self._write(lines)
        return None


def kind_of(status: int, who: str, role: str, address: str, method: str, path: str) -> Kind:
    asked = "".join(c for c in f"{method} {path}"[:LONGEST_PATH] if c.isprintable())
    return Kind(status, who, role, address, asked)


def _line(kind: Kind, count: int, now: Seconds) -> AuditEntry:
    return AuditEntry(
        at=now,
        who=kind.who,
        role=kind.role,
        address=kind.address,
        what="refused",
        subject=kind.asked,
        result="of other kinds" if kind is REST else str(kind.status),
        count=count,
    )
