"""Reader of measured iteration times by execution plan and placement (Rubick's format)."""

from pathlib import Path

from boa.catalogue.tables import Row, read_csv
from boa.errors import InputError
from boa.goodput.plans import PlanTimes
from boa.model.cluster import Shape


def read_plan_times(path: Path) -> PlanTimes:
    """Every plan that ran; an iteration time of 0 says that it was tried and could not.

    Times are kept as written: they are what the simulator replays, not figures to be shipped.
    """
    rows = read_csv(path, ("exec_plan", "placement", "iter_time")).rows
    measured = [(row.text("exec_plan"), _shape(row), row.number("iter_time")) for row in rows]
    return PlanTimes.of(row for row in measured if row[2] > 0)


def _shape(row: Row) -> Shape:
    """GPUs on each node, one digit per node."""
    digits = row.text("placement")
    if not digits.isascii() or not digits.isdigit() or "0" in digits:
        expected = "one digit per node, its GPUs: 88 for two nodes of 8"
        raise InputError(row.at("placement"), digits, expected)
    return tuple(map(int, digits))
