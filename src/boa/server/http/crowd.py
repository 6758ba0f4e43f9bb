"""All connections of the server: how many there are, from where, and who keeps us waiting.

Where there are too many, the one that has kept us waiting longest makes room: it is the one that
is least likely to ask anything. Only where all are being served is a new one refused.
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol

from boa.errors import BoaError
from boa.server.http.errors import Crowded, TooManyConnections
from boa.server.http.limits import Limits
from boa.units import Seconds

LINGER_S: Seconds = 2.0
"""How long a client that was refused may take to read why."""
MOST_LINGERING = 64
"""Refused ones that are given that time; others are cut off."""
_log = logging.getLogger("boa.server")


class Guest(Protocol):
    """A connection, as the crowd sees it."""

    address: str

    def patience_s(self) -> Seconds:
        """How long it may keep us waiting for what it owes now."""
        ...

    def expire(self) -> None:
        """It took too long."""
        ...

    def cut(self) -> None:
        """It ends at once."""
        ...


class Crowd:
    """Used by the event loop's thread alone."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self._clock = limits, clock
        self._guests: set[Guest] = set()
        self._from: dict[str, int] = {}
        self._waited_for: dict[Guest, float] = {}
        """Since when, the longest first."""
        self._waited_for_from: dict[str, dict[Guest, None]] = {}
        self._lingering: dict[Guest, float] = {}
        """Until when. They count as gone."""
        self._soonest = min(limits.head_s, limits.body_s, limits.taking_s)

    def __len__(self) -> int:
        return len(self._guests)

    def enter(self, guest: Guest) -> BoaError | None:
        """The reason why it cannot, or None."""
        limits, near = self.limits, self._from.get(guest.address, 0)
        if near >= limits.per_address:
            if not self._make_room(self._waited_for_from.get(guest.address)):
                _log.warning("too many connections from one address: refused %s", guest.address)
                return TooManyConnections(limits.per_address)
        elif len(self._guests) >= limits.connections and not self._make_room(self._waited_for):
            _log.warning("too many connections: refused %s", guest.address)
            return Crowded(limits.connections)
        self._guests.add(guest)
        self._from[guest.address] = self._from.get(guest.address, 0) + 1
        return None

    def _make_room(self, waited_for: "dict[Guest, float] | dict[Guest, None] | None") -> bool:
        for guest in waited_for or ():
            _log.warning(
                "too many connections: closed one of %s that was waited for", guest.address
            )
            self.leave(guest)
            guest.cut()
            return True
        return False

    def wait_for(self, guest: Guest) -> None:
        """It owes us something from now on."""
        if guest in self._guests:
            self.serve(guest)
            self._waited_for[guest] = self._clock()
            self._waited_for_from.setdefault(guest.address, {})[guest] = None

    def serve(self, guest: Guest) -> None:
        """It owes us nothing now."""
        if self._waited_for.pop(guest, None) is not None:
            near = self._waited_for_from[guest.address]
            del near[guest]
            if not near:
                del self._waited_for_from[guest.address]

    def linger(self, guest: Guest) -> bool:
        """Whether it may stay for a moment to be told why it was refused."""
        self.leave(guest)
        if len(self._lingering) >= MOST_LINGERING:
            return False
        self._lingering[guest] = self._clock() + LINGER_S
        return True

    def leave(self, guest: Guest) -> None:
        """Also of one that has left, or was never let in."""
        self._lingering.pop(guest, None)
        if guest not in self._guests:
            return
        self._guests.discard(guest)
        self.serve(guest)
        self._from[guest.address] -= 1
        if not self._from[guest.address]:
            del self._from[guest.address]

    def look(self) -> None:
        """End what has taken too long. To be called now and then."""
        now = self._clock()
        late = []
        for guest, since in self._waited_for.items():
            if now - since < self._soonest:
                break
            if now - since >= guest.patience_s():
                late.append(guest)
        for guest in late:
            guest.expire()
        for guest in [guest for guest, until in self._lingering.items() if now >= until]:
            self.leave(guest)
            guest.cut()
