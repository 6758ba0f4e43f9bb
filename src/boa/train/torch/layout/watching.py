"""Measures the layout that runs: seconds of a step, and the most memory that it held."""

import time
from dataclasses import dataclass

import torch

SKIPPED = 3
"""Steps after a start that say nothing of the usual pace."""
WINDOW, WINDOW_S = 20, 5.0
"""Steps, and seconds, that are measured at least before they are told."""


@dataclass(frozen=True, slots=True)
class Seen:
    step_s: float
    peak_bytes: int | None


class Watch:
    """Told of every step of one rank."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._last: float | None = None
        self._batch, self._skip = 0, SKIPPED
        self._steps, self._seconds = 0, 0.0

    def interrupted(self) -> None:
        """Leave out whatever comes next: it is no part of a step."""
        self._last = None

    def stepped(self, batch: int) -> Seen | None:
        """A step of so many samples has ended; what is known by now, once in a while."""
        now = time.perf_counter()
        if batch != self._batch:
            self._batch, self._skip, self._steps, self._seconds = batch, SKIPPED, 0, 0.0
        elif self._skip:
            self._skip -= 1
        elif self._last is not None:
            self._steps, self._seconds = self._steps + 1, self._seconds + now - self._last
        self._last = now
        if self._steps < WINDOW or self._seconds < WINDOW_S:
            return None
        seen = Seen(self._seconds / self._steps, self._peak())
        self._steps, self._seconds = 0, 0.0
        return seen

    def _peak(self) -> int | None:
        if self._device.type != "cuda":
            return None
        return int(torch.cuda.max_memory_allocated(self._device))
