"""From what jobs report to what was measured where."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boa.formats.checks import HUGE, TINY
from boa.model.records import Cell, CellKey, Report
from boa.units import Seconds

HALF_LIFE_S: Seconds = 7200.0
"""Seconds of more training in a cell after which a measurement there counts half."""
MOST_EPOCHS = 1000
"""Epochs that are told apart; those beyond count as the last."""
NOTICED = 0.01
"""Part by which the rate of a cell must have moved for the curves to be made anew."""
GROWN = 1.5
"""Or so many times more must have been measured there: it counts for more against the rest."""
APART = 2.0
"""Totals of a job that differ by more than this factor are in different units."""
LONGEST_S: Seconds = 30 * 86_400.0
"""Longer than this nothing takes that is told in one piece: a clock was wrong."""


def is_duration(seconds: Seconds) -> bool:
    """Whether this can be a time between two reports, or of a rescaling."""
    return 0 <= seconds <= LONGEST_S


def is_amount(units: float) -> bool:
    """Whether a job can have made so much progress."""
    return TINY <= units <= HUGE


def contradicts(said: float, done: float) -> bool:
    """Whether two totals of one job are so far apart that they cannot be of one unit."""
    return max(said, done) > APART * min(said, done)


def units_before(units: Sequence[float], epoch: int) -> float:
    """Return the units of all epochs before one, by those of a class: further ones are like its
    mean epoch."""
    further = max(epoch - len(units), 0)
    return sum(units[:epoch]) + further * sum(units) / len(units)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Progress of one run inside one epoch."""

    epoch: int
    seconds: Seconds
    units: float


def stretches(before: Report, report: Report) -> Iterator[Stretch]:
    """Stretches between two reports of one attempt, by epoch; none where they make no sense.

    Where epochs ended in between, the new one has the units that it reports and the others share
    the rest equally; the time is split like the units, as if the rate had been the same throughout.
    """
    seconds, units = report.uptime_s - before.uptime_s, report.units - before.units
    epochs = report.epoch - before.epoch
    sane = is_duration(seconds) and seconds > 0 and (units == 0 or is_amount(units))
    if not sane or before.attempt != report.attempt or epochs < 0 or before.epoch < 0:
        return
    if epochs == 0 or units == 0:
        yield Stretch(before.epoch, seconds, units)
        return
    newest = min(report.progress, units) if is_amount(report.progress) else 0.0
    each = (units - newest) / epochs
    if is_amount(each):  # a job may count its epochs as far as it likes
        for epoch in range(before.epoch, min(report.epoch, before.epoch + MOST_EPOCHS)):
            yield Stretch(epoch, seconds * each / units, each)
    if is_amount(newest):
        yield Stretch(report.epoch, seconds * newest / units, newest)


def added(cell: Cell | None, key: CellKey, stretch: Stretch) -> Cell:
    """The cell with one more measurement, the older ones faded."""
    left = 0.5 ** (stretch.seconds / HALF_LIFE_S)
    before = cell or Cell(key, 0.0, 0.0, 0)
    return Cell(
        key,
        before.seconds * left + stretch.seconds,
        before.units * left + stretch.units,
        before.reports + 1,
    )


def is_news(cell: Cell, before: Cell | None) -> bool:
    """Whether the curves are to be made anew for it."""
    if before is None or not before.seconds:
        return True
    if cell.seconds > GROWN * before.seconds or cell.reports > GROWN * before.reports:
        return True
    was = before.units / before.seconds
    return abs(cell.units / cell.seconds - was) > NOTICED * was
