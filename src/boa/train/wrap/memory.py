"""Notes that one attempt of a wrapped script leaves to the next, in the job's checkpoint folder."""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from boa.train.wrap import watching
from boa.train.wrap.account import Mark, Unit

MOST_KEPT = 10
"""Checkpoints that are remembered."""
LEAST_STEPS, LEAST_S = 20.0, 10.0
"""Steps and seconds from which on a pace is worth comparing."""
GAIN, WIDER = 1.1, 1.5
"""Steps per second that do not rise by 10 % with half as many GPUs more do not rise."""


@dataclass(slots=True)
class Memory:
    path: Path | None
    first_epoch: int | None = None
    unit: Unit | None = None
    saved: dict[str, Mark] = field(default_factory=dict)
    """How far training was when each checkpoint was written, the newest last."""
    every_s: float | None = None
    """Longest time from one checkpoint to the next."""
    paces: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Steps and their seconds, by width."""
    told: bool = False
    """Whether the log has said that more GPUs bring nothing."""

    @staticmethod
    def read(folder: Path | None) -> "Memory":
        path = None if folder is None else folder / watching.OURS
        try:
            document = json.loads(path.read_text("utf-8")) if path else {}
            return Memory(
                path,
                document["first_epoch"],
                document.get("unit"),
                {name: Mark.from_document(at) for name, at in document["saved"].items()},
                document.get("every_s"),
                {int(width): (n, s) for width, (n, s) in document.get("paces", {}).items()},
                document.get("told", False),
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return Memory(path)  # none, or none of ours: from what the log says

    def write(self) -> None:
        if self.path is None:
            return
        document = {
            "first_epoch": self.first_epoch,
            "unit": self.unit,
            "saved": {
                name: mark.as_document() for name, mark in list(self.saved.items())[-MOST_KEPT:]
            },
            "every_s": self.every_s,
            "paces": self.paces,
            "told": self.told,
        }
        partial = self.path.with_suffix(".part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps(document))
            os.replace(partial, self.path)
        except OSError as problem:
            say(f"{self.path} cannot be written ({problem}): progress may be counted twice")

    def newest(self) -> str | None:
        """Return the newest checkpoint that still exists."""
        return next((path for path in reversed(self.saved) if os.path.exists(path)), None)

    def rate(self, width: int) -> float | None:
        """Return steps per second at a width; None: too few were seen."""
        steps, seconds = self.paces.get(width, (0.0, 0.0))
        return steps / seconds if steps >= LEAST_STEPS and seconds >= LEAST_S else None

    def flat(self) -> tuple[int, int] | None:
        """Return two widths of which the larger one brought no more steps per second."""
        rates = {width: rate for width in self.paces if (rate := self.rate(width))}
        pairs = ((low, high) for low in rates for high in rates if high >= WIDER * low)
        return next((each for each in pairs if rates[each[1]] < GAIN * rates[each[0]]), None)


def say(text: str) -> None:
    print(f"boa: {text}", file=sys.stderr, flush=True)
