"""Progress in what a script prints: numbers by pattern, and what they mean for the job."""

import math
import re
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence

from boa.train import session
from boa.train.checkpoints import Progress

COUNTED = ("step", "epoch", "progress")
"""Names in a pattern that say how far training is; at least one of them is needed."""
LONGEST_LINE = 4096
"""Characters of a line that are looked at."""
MOST_REMEMBERED = 10_000
"""Lines of progress, to know how far training was when a checkpoint was written."""
_NUMBER = r"[-+]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_IS = r"['\"]?[\s:=\[#(]{1,4}"
USUAL = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        rf"\bepoch{_IS}(?P<epoch>{_NUMBER})",
        rf"\b(?:global[_ ])?(?:step|iter|iters|iteration){_IS}(?P<step>{_NUMBER})",
        rf"epoch{_IS}\d+\]?\s*\[\s*(?P<progress>\d+)\s*/\s*\d+",  # Epoch: [3][120/390]
        r"%\|[^|]*\|\s*(?P<step>\d+)/\d+\s*\[",  # tqdm's bars
        rf"\b(?:train(?:ing)?[_ /])?loss{_IS}(?P<loss>{_NUMBER})",
    )
)
"""Patterns for logs as most scripts write them, where none is given."""


def find(line: str, patterns: Sequence[re.Pattern[str]]) -> dict[str, float]:
    """Numbers by the names of the groups that have them; of two the first pattern's."""
    found: dict[str, float] = {}
    for pattern in patterns:
        if match := pattern.search(line[:LONGEST_LINE]):
            for name, text in match.groupdict().items():
                if text is not None and name not in found:
                    number = _number(text)
                    if number is not None:
                        found[name] = number
    return found


class Account:
    """Keeps the job's progress by numbers that a log repeats, leaves out and begins again with.

    `step` counts over the whole training or within each epoch, as it turns out. Where neither it
    nor `progress` (within an epoch) is there, epochs are the unit, in parts of one if need be. All
    ranks may print: what is no news is passed over.
    """

    def __init__(self, at: Progress | None, first_epoch: int | None = None) -> None:
        """`at`: where this attempt goes on from; None: somewhere, the first line will say."""
        self._lock = threading.Lock()
        self.first_epoch = first_epoch
        """The number that the log has for its first epoch, 0 or 1; None: not seen yet."""
        self._began = False  # whether this attempt has said anything
        self._fresh, self._unknown = at == Progress(), at is None
        self._epochs = session.context().epochs
        at = at or Progress()
        self._count, self._turn = float(at.step), at.epoch
        session.resume_at(at)
        self._history = deque([(0.0, at)], maxlen=MOST_REMEMBERED)

    def at(self, when: float) -> Progress:
        """How far training was at a time of the wall clock, by the lines until then."""
        before = (found for told, found in reversed(self._history) if told <= when)
        return next(before, self._history[0][1])

    def hear(self, found: Mapping[str, float]) -> bool:
        """Numbers of a line; whether any of them says how far training is."""
        with self._lock:
            return self._hear(found)

    def _hear(self, found: Mapping[str, float]) -> bool:
        more = {name: value for name, value in found.items() if name not in COUNTED}
        loss = more.pop("loss", None)
        if not any(name in found for name in COUNTED):
            if loss is not None or more:
                session.report(loss=loss, **more)
            return False
        turn = self._epoch(found)
        count = found.get("progress", found.get("step"))
        if count is None:  # epochs are all there is
            count = max(found["epoch"] - (self.first_epoch or 0), 0.0)
        made = self._made(turn, count)
        epoch = None if turn is None or self._epochs == 1 else min(turn, self._epochs - 1)
        step = found.get("step")
        session.report(progress=made, step=step, loss=loss, epoch=epoch, **more)
        self._history.append((time.time(), session.session().at))
        return True

    def _made(self, turn: int | None, count: float) -> float:
        """Units done since the line before."""
        turn = self._turn if turn is None else turn
        before, self._began, first = (self._turn, self._count), True, not self._began
        if first:
            session.ready()
        if first and (self._unknown or ((turn, count) < before and not self._fresh)):
            self._set(turn, count)
            return 0.0
        if turn < before[0] or (turn == before[0] and count <= before[1]):
            return 0.0  # another rank's, or the same again
        self._turn, self._count = turn, count
        return count if count < before[1] else count - before[1]  # begins again with each epoch

    def _set(self, turn: int, count: float) -> None:
        """The script has gone on from another checkpoint than the newest that was seen."""
        at, kept = session.session().at, turn == self._turn or self._epochs == 1
        left = count if self._unknown else max(at.progress - (self._count - count), 0.0)
        epoch = turn if self._epochs > 1 else 0
        session.resume_at(Progress(epoch, left if kept else 0.0, int(count)))
        self._turn, self._count = turn, count

    def _epoch(self, found: Mapping[str, float]) -> int | None:
        if "epoch" not in found:
            return None
        number = int(found["epoch"])
        if self.first_epoch is None:
            # a count that has begun with 1 goes on so; parts of an epoch begin with 0
            whole = found["epoch"] == number
            self.first_epoch = 1 if number >= 1 and whole and self._fresh else 0
        return max(number - self.first_epoch, 0)


def _number(text: str) -> float | None:
    """None of what is no number, or none that anything can be counted by (1e999)."""
    try:
        found = float(text.replace(",", ""))
    except ValueError:
        return None
    return found if math.isfinite(found) else None
