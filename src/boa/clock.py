"""Time behind one protocol: virtual in the simulator and in tests, the wall's when live."""

import time
from typing import Protocol

from boa.units import Seconds


class Clock(Protocol):
    def now(self) -> Seconds: ...


class VirtualClock:
    """Stands still until it is moved; never backwards."""

    def __init__(self, start: Seconds = 0.0) -> None:
        self._now = start

    def now(self) -> Seconds:
        return self._now

    def advance_to(self, moment: Seconds) -> None:
        if moment < self._now:
            raise ValueError(f"time cannot run back from {self._now} to {moment}")
        self._now = moment


class WallClock:
    """Seconds since the epoch."""

    def now(self) -> Seconds:
        return time.time()
