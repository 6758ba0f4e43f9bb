"""What a budget, and those who share it, have for a calendar month."""

from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from boa.model.budgets import Budget
from boa.model.terms import Each, Terms
from boa.scheduler.money import rights
from boa.scheduler.money.money_state import MoneyState, PartState, StretchState
from boa.scheduler.money.months import Allowed
from boa.scheduler.money.rights import Month
from boa.units import Seconds

PART = Budget(name="vision", per_hour=2.0)
MONEY = MoneyState(
    at=0.0,
    budget=10.0,
    max_spend=None,
    effective=10.0,
    since=0.0,
    spent=0.0,
    total=0.0,
    jobs=0.0,
    idle=0.0,
    provisioning=0.0,
    now_per_hour=0.0,
    sharing=Budget(name="all", per_hour=10.0, parts=(PART,)),
)


def first_of(month: int, year: int = 2026) -> Seconds:
    return datetime(year, month, 1, tzinfo=UTC).timestamp()


def month(number: int, now: Seconds) -> Month:
    """Of 2026, in which the service was there from the beginning."""
    first, end = first_of(number), first_of(number % 12 + 1, 2026 + number // 12)
    return Month(first, end, now, Allowed(first, 1.0))


def stretch_at(now: Seconds, each: Each, zone: tzinfo) -> StretchState:
    span = Terms(usd=9200.0, each=each).span(now, zone)
    return StretchState(
        name=span.name,
        each=each,
        usd=9200.0,
        allowed=9200.0,
        rolled=0.0,
        spent=0.0,
        since=span.begins,
        ends=span.ends,
        rolls_over=False,
        used_up=False,
    )


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Auckland"])
@pytest.mark.parametrize(("each", "right"), [("month", 9200.0), ("quarter", 9200.0 * 30 / 91)])
def test_a_month_that_is_over_keeps_its_budget_by_the_clocks_of_every_zone(
    zone: str, each: Each, right: float
) -> None:
    """The present month, or quarter, begins within it where clocks are ahead of UTC."""
    now = first_of(7) + 3 * 86_400.0
    stretch = stretch_at(now, each, ZoneInfo(zone))
    part = PartState(
        budget=PART,
        above=None,
        per_hour=2.0,
        right_now=2.0,
        lent=0.0,
        now_per_hour=0.0,
        stretch=stretch,
    )
    whole = replace(MONEY, stretch=stretch)
    shared = replace(MONEY, parts=(part,))
    june = month(6, now)
    assert rights.of_whole(whole, june) == pytest.approx(right)
    assert rights.of_part(PART, shared, june, 7200.0) == pytest.approx(right)


@pytest.mark.parametrize(("each", "part"), [("month", 1.0), ("quarter", 31 / 92)])
@pytest.mark.parametrize("rolls_over", [False, True])
def test_the_first_hours_of_a_month_have_its_own_money_by_clocks_behind_utc(
    each: Each, part: float, rolls_over: bool
) -> None:
    now = first_of(7) + 2 * 3600.0
    before = stretch_at(now, each, ZoneInfo("America/New_York"))
    assert before.name in ("2026-06", "2026-Q2"), "there it is still June"
    for allowed, spent in ((5000.0, 4800.0), (5000.0, 5300.0), (5000.0, 20_000.0)):
        stretch = replace(before, allowed=allowed, spent=spent, rolls_over=rolls_over)
        right = max(9200.0 + (allowed - spent if rolls_over else 0.0), 0.0)
        money = replace(MONEY, stretch=stretch)
        assert rights.of_whole(money, month(7, now)) == pytest.approx(right * part)
        august = rights.of_whole(money, month(8, now))
        assert each == "quarter" or august == 9200.0, "nobody knows what July will leave"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Auckland"])
def test_the_months_of_a_quarter_have_all_of_its_money(zone: str) -> None:
    now = first_of(6) + 3 * 86_400.0
    money = replace(MONEY, stretch=stretch_at(now, "quarter", ZoneInfo(zone)))
    found = [rights.of_whole(money, month(number, now)) for number in (4, 5, 6)]
    assert sum(found) == pytest.approx(9200.0)


def test_before_there_was_a_service_nobody_had_anything() -> None:
    now = first_of(7)
    january = month(1, now)._replace(allowed=None)
    for money in (MONEY, replace(MONEY, stretch=stretch_at(now, "month", UTC))):
        assert rights.of_whole(money, january) == 0.0
        assert rights.of_part(PART, money, january, 0.0) == 0.0
