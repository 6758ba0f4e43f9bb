"""Priorities of jobs in people's words, and how much a second of a job of each counts."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Priority: TypeAlias = Literal["urgent", "normal", "background"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
"""From the most urgent on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priorities:
    """How much jobs count, against normal ones."""

    urgent: float = 4.0
    """Times a normal job's weight. Where speed grows as the square root of the GPUs, four times the
    weight is half the time for twice the money."""

    def weight(self, priority: Priority) -> float:
        """Times its class's weight; nothing in the background, which is never paid for."""
        return {"urgent": self.urgent, "normal": 1.0, "background": 0.0}[priority]
