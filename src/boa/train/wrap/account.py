"""Progress of a job by the numbers that its log repeats, leaves out and begins again with."""

import bisect
import statistics
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from boa.train import session
from boa.train.checkpoints import Progress
from boa.train.wrap.reading import BAR_TOTAL, COUNTED, TOTAL, TOTAL_EPOCHS, TOTALS, Totals

MOST_REMEMBERED = 10_000
"""Lines of progress that are kept, to know how far training was when a checkpoint was written."""
RIGHT_AFTER = 0.05
"""A checkpoint that was written this part of the time between two lines, or less, before the second
one belongs to the second: its script saves first, and then prints."""
Unit: TypeAlias = Literal["steps", "epochs", "parts"]
"""Units of a log's count; parts: of epochs, as `0.25`."""
UNKNOWN = Totals()


@dataclass(frozen=True, slots=True)
class Mark:
    """How far training was at some moment: as it is reported, and as the log counts."""

    at: Progress = field(default_factory=Progress)
    turn: int = 0
    """The log's epoch, counted from 0."""
    count: float = 0.0
    """The log's count: over the whole training or within this epoch."""
    whole: float = 0.0
    """Units done since the job's beginning, over all epochs."""

    def as_document(self) -> dict[str, Any]:
        return {**asdict(self.at), "turn": self.turn, "count": self.count, "whole": self.whole}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> "Mark":
        """Read a mark; earlier versions wrote its progress alone."""
        at = Progress(document["epoch"], document["progress"], document["step"])
        return Mark(
            at,
            document.get("turn", at.epoch),
            document.get("count", at.step),
            document.get("whole", at.progress),
        )


class Account:
    """Keeps the job's progress.

    `step` counts over the whole training or within each epoch, as it turns out. Where neither it
    nor `progress` (within an epoch) is printed, epochs are the unit. All ranks may print: a line
    without news is passed over. With `per_step`, progress counts in samples.
    """

    def __init__(
        self,
        mark: Mark | None,
        first_epoch: int | None = None,
        *,
        unit: Unit | None = None,
        per_step: float = 1.0,
        totals: Totals = UNKNOWN,
    ) -> None:
        """`mark`: where this attempt goes on from; None: unknown, the first line will tell."""
        self._lock = threading.Lock()
        self.first_epoch = first_epoch
        """The number that the log has for its first epoch, 0 or 1; None: not seen yet."""
        self.unit = unit
        self.first: Mark | None = None
        """The first count that this attempt printed."""
        self.since: float | None = None
        """When it was printed (real time)."""
        self.infers_epochs = False
        """Whether epochs show only by bars that begin again."""
        self._fresh, self._unknown = mark == Mark(), mark is None
        self._epochs = session.context().epochs
        self.per_step = per_step
        mark = mark or Mark()
        self._turn, self._count, self._whole = mark.turn, mark.count, mark.whole
        self._told_turn: int | None = None  # of a line that has an epoch alone
        self._parts = unit == "parts"  # whether epochs are printed in parts
        self._echoes = False  # whether counts are printed more than once
        self._with_epoch = False  # whether counts are printed next to their epoch
        self._begins_anew: bool | None = None  # whether counts begin again with each epoch
        self._of, self._argument = totals.steps, totals.steps
        self._of_bar = self._is_printed = False  # whose total it is
        self._of_epochs = totals.epochs or (self._epochs if self._epochs > 1 else None)
        self._wrong: set[float] = set()  # totals that progress has contradicted
        self._began: tuple[float, float] | None = None
        self._until = (0.0, 0.0)  # units and moment of the newest line
        self._is_ready = False
        session.resume_at(mark.at)
        self._history = deque([(0.0, mark)], maxlen=MOST_REMEMBERED)

    @property
    def now(self) -> Mark:
        """The position by the newest line."""
        return self._history[-1][1]

    @property
    def pace(self) -> tuple[float, float]:
        """Steps since this attempt's first line, and the seconds that they took."""
        if self._began is None or self.unit != "steps":
            return 0.0, 0.0
        units, moment = self._began
        return (self._until[0] - units) / self.per_step, self._until[1] - moment

    @property
    def total(self) -> float | None:
        """Units of the whole job; None: unknown."""
        left = self._left()[0]
        return None if left is None else self._whole + left

    @property
    def reached(self) -> bool:
        """Whether the count has reached its total, which may be one epoch's."""
        return self._left()[0] == 0

    def finished(self, *, exited: bool) -> bool:
        """Return whether the total is reached and surely is the whole job's.

        A total that only the log prints may be one epoch's. It counts if the script has also
        `exited` with code 0.
        """
        left, sure = self._left()
        return left == 0 and (sure or (exited and not self._of_bar))

    @property
    def grain(self) -> float:
        """Count from one line to the next, as most of them are; 0: too few lines."""
        with self._lock:
            counts = [mark.count for told, mark in self._history if told]
        gaps = [after - before for before, after in pairwise(counts) if after > before]
        return statistics.median(gaps) if gaps else 0.0

    def at(self, when: float) -> Mark:
        """Return how far training was at a real time, by the lines until then, and by one that came
        `RIGHT_AFTER`."""
        with self._lock:
            history = list(self._history)
        number = bisect.bisect_right(history, when, key=itemgetter(0))
        told, mark = history[max(number - 1, 0)]
        if told and number < len(history):
            late, following = history[number]
            if late - when <= RIGHT_AFTER * (late - told):
                return following
        return mark

    def hear(self, found: Mapping[str, float]) -> bool:
        """Take the numbers of a line; return whether any of them says how far training is."""
        with self._lock:
            return self._hear(found)

    def _hear(self, found: Mapping[str, float]) -> bool:
        known = (*COUNTED, *TOTALS)
        more = {name: value for name, value in found.items() if name not in known}
        loss = more.pop("loss", None)
        count = found.get("progress", found.get("step"))
        if count is not None and not self._is_counter(found, count):
            return False
        turn = self._epoch(found)
        if count is None and turn is not None and self.unit != "steps":
            count = self._epochs_done(found["epoch"], ends=loss is not None or bool(more))
            self.unit = "parts" if self._parts else "epochs"
        elif count is not None:
            if self.unit != "steps" and self._began is not None:
                self._count = 0.0  # the header of an epoch came before its steps
            self.unit = "steps"
            self._with_epoch = self._with_epoch or turn is not None
            turn = self._turn_of(turn, found, count)
        if count is None:
            if turn is not None:
                self._told_turn = turn
                self._ready(loss is None)
            if loss is not None or more:
                session.report(loss=loss, **more)
            return turn is not None
        made = self._made(turn, count)
        self._check_totals()
        if self.unit == "steps" or self._whole:  # the header of an epoch may come before steps
            session.total(self.total)
        epoch = None if turn is None or self._epochs == 1 else min(turn, self._epochs - 1)
        session.report(progress=made, step=found.get("step"), loss=loss, epoch=epoch, **more)
        mark = Mark(session.session().at, self._turn, self._count, self._whole)
        self.first, self.since = self.first or mark, self.since or time.time()
        self._history.append((time.time(), mark))
        return True

    def _epochs_done(self, number: float, *, ends: bool) -> float:
        """Return the epochs done by a line that has nothing else. One with a loss and a whole
        number is printed at the end of its epoch, a header at its beginning."""
        self._parts = self._parts or number != int(number)
        if self._parts:
            self.first_epoch = 0
            return max(number, 0.0)
        return max(number - (self.first_epoch or 0), 0.0) + ends

    def _made(self, turn: int | None, count: float) -> float:
        """Return the units done since the line before."""
        turn = self._turn if turn is None else turn
        first = self._began is None
        before = (self._turn, self._count)
        each = self.per_step if self.unit == "steps" else 1.0
        if first and (self._unknown or ((turn, count) < before and not self._fresh)):
            self._set(turn, count, each)
            made = 0.0
        elif turn < before[0] or (turn == before[0] and count <= before[1]):
            made = 0.0  # another rank's, or the same again
            self._echoes = self._echoes or not first
        else:
            anew = count < before[1] or (count == before[1] and self._is_repeated(turn, count))
            if turn > before[0] and self.unit == "steps" and not first:
                self._begins_anew = anew
            self._turn, self._count = turn, count
            made = (count if anew else count - before[1]) * each
        self._ready(first and self._begins_now(made / each))
        self._whole += made
        self._until = (self._whole, time.monotonic())
        self._began = self._began or self._until
        return made

    def _is_repeated(self, turn: int, count: float) -> bool:
        """Return whether the same count in another epoch is that epoch's own."""
        if self._begins_anew is not None or self._parts:
            return bool(self._begins_anew)
        is_full = self._is_printed and count == self._of
        return is_full or (turn == self._told_turn and not self._with_epoch)

    def _ready(self, begins: bool) -> None:
        """Report once that training begins, before anything is done."""
        if begins and not self._is_ready:
            session.ready()
        self._is_ready = self._is_ready or begins

    def _begins_now(self, steps: float) -> bool:
        """Return whether the first line says that training begins. Scripts that print every few
        steps began before it: the service finds out when, by the pace that follows."""
        return steps <= (1 if self.unit == "steps" else 0)

    def _set(self, turn: int, count: float, each: float) -> None:
        """The script has gone on from another checkpoint than the newest that was seen."""
        at, kept = session.session().at, turn == self._turn or self._epochs == 1
        if self._unknown:
            left = whole = count * each
        else:
            gone = max(self._count - count, 0.0) * each
            if turn == 0 and self._count > 0:  # in shares: another width had other samples a step
                gone = at.progress * max(1 - count / self._count, 0.0)
            left = max(at.progress - gone, 0.0)
            whole = max(self._whole - (at.progress - left), 0.0)
        epoch = turn if self._epochs > 1 else 0
        session.resume_at(Progress(epoch, left if kept else 0.0, int(count)))
        self._turn, self._count, self._whole = turn, count, whole

    def _epoch(self, found: Mapping[str, float]) -> int | None:
        if "epoch" not in found:
            return None
        number = int(found["epoch"])
        if self.first_epoch is None:
            # a count that has begun with 1 goes on so; parts of an epoch begin with 0
            whole = found["epoch"] == number
            self.first_epoch = 1 if number >= 1 and whole and self._fresh else 0
        if TOTAL_EPOCHS in found and found[TOTAL_EPOCHS] not in self._wrong:
            self._of_epochs = found[TOTAL_EPOCHS]
            self.first_epoch = 1 if number == self._of_epochs else self.first_epoch
        return max(number - self.first_epoch, 0)

    def _turn_of(self, turn: int | None, found: Mapping[str, float], count: float) -> int | None:
        """Return the epoch of a count: its line's, or that of a line before. A bar that was full
        and begins again is the next epoch's."""
        if turn is not None:
            return turn
        again = count <= self._count / 2 or count <= 1
        if self._told_turn is not None and self._told_turn > self._turn:
            # ranks that lag still print the last counts of the epoch before
            lags = self._echoes and not again and count <= self._count
            return None if lags else self._told_turn
        of = found.get(TOTAL, found.get(BAR_TOTAL))
        if of is not None and again and 1 < of <= self._count:
            self.infers_epochs = True
            return self._turn + 1
        return None

    # Totals

    def _is_counter(self, found: Mapping[str, float], count: float) -> bool:
        """Return whether a count is training's. Another total is another counter's (a
        validation's), unless it is larger and the first one was full, or is passed."""
        of, is_bar = found.get(TOTAL, found.get(BAR_TOTAL)), TOTAL not in found
        if of is None or count > of or (of == self._of and self._is_printed):
            return True
        bare = self._began is not None and self.unit == "steps" and not self._is_printed
        if bare and (is_bar or of < self._count) and of != self._argument:
            return False  # training's own counts have no such total
        if of in self._wrong:
            return False
        longer = self._of is not None and of > self._of and max(count, self._count) >= self._of
        if self._is_printed and not longer:
            return False
        self._of, self._of_bar, self._is_printed = of, is_bar, True
        return True

    def _check_totals(self) -> None:
        """Drop totals that progress contradicts."""
        if self.unit == "steps" and self._of is not None and self._count > self._of:
            self._wrong.add(self._of)
            self._of, self._is_printed = None, False
        done = self._turn + 1 if self.unit == "steps" else self._count
        if self._of_epochs is not None and done > self._of_epochs:
            self._wrong.add(self._of_epochs)
            self._of_epochs = None

    def _left(self) -> tuple[float | None, bool]:
        """Return the units left to do (None: unknown), and whether that is sure."""
        epochs, of = self._of_epochs, self._of
        if self.unit is None:
            return None, False
        if self.unit != "steps":
            return (None if epochs is None else epochs - self._count), self._parts
        within = self._is_of_epoch()
        if of is None or within is None or (within and epochs is None):
            return None, False
        left = of - self._count
        if within and epochs is not None:
            left += (epochs - 1 - self._turn) * of
        return left * self.per_step, within or of == self._argument

    def _is_of_epoch(self) -> bool | None:
        """Return whether the total is one epoch's; None: not known yet."""
        several = self._of_epochs is not None or self._told_turn is not None
        if self._begins_anew is not None:
            return None if self._begins_anew and not self._is_printed else self._begins_anew
        if self._of_epochs == 1 or not self._is_printed or self._parts:
            return False
        if self._with_epoch and self._of != self._argument:
            return True
        return None if several else False
