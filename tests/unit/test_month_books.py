"""Books of `bench/month.py`: who is charged what, at which price."""

import pytest

from _month_books import Seen, books_of
from boa.model.calendar import DAYS, Calendar, Period
from boa.model.records import Hold, NodeRecord
from boa.model.workload import GpuType

HOUR = 3600.0
TYPES = {"T4": GpuType(name="T4", price=0.5, gpus_per_node=4)}
DAY = Period(name="day", budget=4.0, begins=480, ends=1200)
NIGHT = Period(name="night", budget=8.0, days=DAYS, price_factor=0.5)
CALENDAR = Calendar(periods=(DAY, NIGHT)).begun_on_a_monday()


def node(number: int, billed_from: float, gone_at: float | None) -> NodeRecord:
    return NodeRecord(
        id=number,
        token=str(number),
        gpu="T4",
        gpus=4,
        price=99.0,
        requested_at=billed_from,
        billed_from=billed_from,
        gone_at=gone_at,
    )


def hold(team: str, gpus: int, since: float, until: float) -> Hold:
    return Hold(
        job="1", stream=f"{team}.bert", node=1, gpus=gpus, price=99.0, since=since, until=until
    )


def test_nodes_are_counted_at_the_calendars_price_and_what_nobody_holds_as_what_jobs_hold() -> None:
    seen = Seen(
        nodes={1: node(1, 6 * HOUR, 10 * HOUR), 2: node(2, 9 * HOUR, None)},
        holds=[hold("a", 3, 7 * HOUR, 10 * HOUR), hold("b", 1, 8 * HOUR, 9 * HOUR)],
    )
    books = books_of(seen, CALENDAR, TYPES, 11 * HOUR)
    night, day = 2 * 1.0, 1 * 2.0 + 1 * 4.0 + 1 * 2.0
    assert books.spent == pytest.approx({(1, 0): night, (0, 0): day})
    assert books.teams == pytest.approx({("a", 1): 1.0, ("a", 0): 1.5 + 4.0, ("b", 0): 0.5})
    assert (books.peak, books.held_peaks) == (4.0, {"a": 1.5, "b": 0.5})
