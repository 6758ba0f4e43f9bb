"""The month's forecast: made of spend, never of a budget."""

from datetime import UTC, datetime

import pytest

from boa.model.records import NodeRecord
from boa.scheduler.money.forecast import forecast, looks_back_to

HOUR = 3600.0
MONTH = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
END = datetime(2026, 12, 1, tzinfo=UTC).timestamp()


def node(begin: float, gone: float | None = None) -> NodeRecord:
    """Two dollars an hour."""
    return NodeRecord(
        id=1,
        token="t",
        gpu="T4",
        gpus=2,
        price=1.0,
        state="ready" if gone is None else "gone",
        requested_at=begin,
        billed_from=begin,
        gone_at=gone,
    )


def test_nothing_spent_is_no_forecast() -> None:
    found = forecast([], MONTH + HOUR)
    assert (found.basis, found.amount, found.over_s) == ("none", None, 0.0)


def test_nothing_is_extrapolated_from_less_than_an_hour() -> None:
    now = MONTH + 48 * HOUR
    short = forecast([node(now - HOUR + 1)], now)
    assert (short.basis, short.amount, short.band) == ("short", None, None)
    assert short.pace == pytest.approx(2.0)
    found = forecast([node(now - HOUR)], now)
    assert found.basis == "spend"
    assert found.amount == pytest.approx(2.0 + 2.0 * (END - now) / HOUR)


def test_the_pace_is_since_the_months_first_charge() -> None:
    now = MONTH + 48 * HOUR
    found = forecast([node(now - 10 * HOUR, now - 5 * HOUR)], now)
    assert (found.basis, found.over_s) == ("spend", 10 * HOUR)
    assert found.pace == pytest.approx(1.0), "half of the time nothing was rented"


def test_a_month_younger_than_a_day_goes_by_the_pace_of_the_last_day() -> None:
    now = MONTH + HOUR
    found = forecast([node(now - 100 * HOUR, MONTH - 11 * HOUR)], now)
    assert looks_back_to(now) == now - 24 * HOUR
    assert (found.basis, found.over_s, found.spent) == ("spend", 24 * HOUR, 0.0)
    assert found.pace == pytest.approx(1.0), "twelve of these hours at $2/h"


def test_there_is_no_band_before_eight_hours_of_history() -> None:
    now = MONTH + 48 * HOUR
    assert forecast([], now).band is None
    assert forecast([node(now - 7.9 * HOUR)], now).band is None
    assert forecast([node(now - 8 * HOUR)], now).band is not None


def test_spend_that_never_varied_is_a_band_of_one_amount() -> None:
    found = forecast([node(MONTH)], MONTH + 48 * HOUR)
    assert found.band == pytest.approx((found.amount, found.amount))


def test_a_month_never_ends_below_what_was_spent() -> None:
    now = MONTH + 48 * HOUR
    found = forecast([node(now - 10 * HOUR, now - 9 * HOUR)], now)
    assert found.band is not None
    assert found.amount is not None
    assert found.band[0] == found.spent < found.amount < found.band[1]
