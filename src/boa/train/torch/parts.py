"""Parts of a rescaling, as this process sees them; and when it is time to save again."""

import time
from collections.abc import Mapping
from statistics import median

from boa.train import session, stopping

USUAL = 5
"""Steps after the first that tell how long a usual one takes."""


class Parts:
    """stop and save: of the attempt before, out of its checkpoint; the others are our own.

    start: from the birth of the process until all ranks have met. load: until model, optimiser and
    all else are as they were. first_step: how much longer than a usual step the first one takes.
    """

    def __init__(self) -> None:
        self._joined = time.monotonic()
        self._last = self._joined
        self._steps: list[float] = []
        self._stopping: tuple[float, float] | None = None
        self._start = session.session().age()

    def loaded(self, before: Mapping[str, float]) -> None:
        """Training can go on; `before`: parts out of the checkpoint."""
        self._last = time.monotonic()
        own = {"start": self._start, "load": self._last - self._joined}
        session.rescaled({**before, **own})
        session.ready()

    def stepped(self) -> None:
        """A step is over; after some of them it is known how much longer the first took."""
        if len(self._steps) > USUAL:
            return
        now = time.monotonic()
        self._steps.append(now - self._last)
        self._last = now
        if len(self._steps) > USUAL:
            first, *others = self._steps
            session.rescaled({"first_step": max(first - median(others), 0.0)})

    def stopping(self) -> None:
        """All ranks stop here."""
        self._stopping = stopping.asked_s_ago(), time.monotonic()

    def so_far(self) -> dict[str, float]:
        """Seconds by part of a save that is about to be published: none unless it is the one of a
        stop."""
        if self._stopping is None:
            return {}
        stop, since = self._stopping
        return {"stop": stop, "save": time.monotonic() - since}


class Patience:
    """Whether so many seconds have passed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.restart()

    def over(self) -> bool:
        return time.monotonic() - self._since > self._seconds

    def restart(self) -> None:
        self._since = time.monotonic()
