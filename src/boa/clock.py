"""Time behind one protocol: virtual in the simulator and in tests, steady when live."""

import time
from typing import Protocol

from boa.units import Seconds


class Clock(Protocol):
    def now(self) -> Seconds: ...

    def jump(self) -> Seconds:
        """How far the machine's own clock has been set forward (or back) since this one began."""
        ...


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

    def jump(self) -> Seconds:
        return 0.0


class SteadyClock:
    """Seconds since the epoch, `speed` times as fast as real ones, that no jump can disturb.

    The wall is read once. From then on time goes by the machine's uptime, sleep included, so
    setting the wall's clock neither bills anybody nor makes anything due. Where a service goes on
    after a stop, `last` is the (server time, wall time) that it had written down: time never runs
    back behind it, and what the wall says has passed since counts.
    """

    def __init__(self, speed: float = 1.0, last: tuple[Seconds, Seconds] | None = None) -> None:
        self.speed = speed
        self._wall, self._began = time.time(), uptime()
        self._origin = self._wall
        if last is not None:
            then, wall = last
            self._origin = then + max(self._wall - wall, 0.0) * speed

    def now(self) -> Seconds:
        return self._origin + (uptime() - self._began) * self.speed

    def jump(self) -> Seconds:
        return time.time() - self._wall - (uptime() - self._began)


def uptime() -> Seconds:
    """Seconds that the machine is up, its sleep included where it tells."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
