"""A service whose budget changes by the hour, and one whose budget ends."""

import sys
import zoneinfo
from collections.abc import Iterator
from pathlib import Path

import pytest

from boa.model.budgets import Budget
from boa.model.calendar import Calendar, Period
from boa.scheduler.money.costs import month_of
from boa.scheduler.money.grouping import Grouped
from boa.server.render.charges import charged
from boa.server.render.statements import read_statement
from live import BILLINGS, START, Live, config, prior, profile, spec

KNOWN = profile("known", work=(360_000.0,))
DAY = Period(name="day", budget=8.0, begins=14 * 60, ends=20 * 60)
CALENDAR = Calendar(periods=(DAY, Period(name="night", budget=4.0)), until=START + 3600.0)
"""The clock begins on a Monday at 13:46 (UTC)."""


def begun(folder: Path, billing: str) -> Live:
    priors = {"known": prior(KNOWN, per_hour=0.01)}
    settings = config(
        folder, priors=priors, billing=billing, calendar=CALENDAR, budget=CALENDAR.average
    )
    return Live(settings, {"known": KNOWN})


@BILLINGS
def test_after_the_end_of_the_budget_jobs_wait_and_nothing_is_rented(
    tmp_path: Path, billing: str
) -> None:
    live = begun(tmp_path, billing)
    job = live.submit(spec("known"))
    live.advance(1800.0)
    assert live.job(job).run is not None
    assert live.loop.snapshot.money.budget == 8.0, "the day has begun"
    live.advance(3600.0)
    assert live.job(job).run is None
    ended = "waits: the budget ended on 1970-01-12 14:46 UTC"
    assert live.job(job).reason == ended
    assert not live.loop.snapshot.nodes
    assert live.loop.snapshot.money.now_per_hour == 0.0
    later = live.submit(spec("known"))
    live.advance(3600.0)
    assert (live.job(later).run, live.job(later).reason) == (None, ended)
    assert not live.loop.snapshot.nodes
    live.close()


@pytest.fixture
def no_zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine on which no time zones are installed."""
    monkeypatch.setitem(sys.modules, "tzdata", None)
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath()
    zoneinfo.ZoneInfo.clear_cache()


@pytest.mark.usefixtures("no_zones")
def test_a_calendar_of_utc_needs_no_time_zones(tmp_path: Path) -> None:
    with pytest.raises(zoneinfo.ZoneInfoNotFoundError):
        zoneinfo.ZoneInfo("UTC")
    live = begun(tmp_path, "node")
    live.submit(spec("known"))
    live.advance(1800.0)
    assert live.loop.snapshot.money.budget == 8.0
    live.close()


def test_who_paid_is_known_after_the_end_of_the_budget(tmp_path: Path) -> None:
    mine = Budget(name="mine", per_hour=2.0, classes=("known",))
    lab = Budget(name="all", per_hour=CALENDAR.average, parts=(mine,))
    settings = config(
        tmp_path,
        priors={"known": prior(KNOWN, per_hour=0.01)},
        calendar=CALENDAR,
        budget=CALENDAR.average,
        sharing=lab,
    )
    live = Live(settings, {"known": KNOWN})
    live.submit(spec("known"))
    live.advance(7200.0)
    money, now = live.loop.snapshot.money, live.clock.now()
    assert money.budget == 0.0
    assert [(part.name, part.right_now) for part in money.parts] == [("mine", 0.0)]
    assert live.store is not None
    rows = charged(live.store, 0.0, now, now, Grouped("payer"), money.sharing).rows
    assert next(row["payer"] for row in rows) == "mine"
    first, end = month_of(now)
    found = read_statement(live.store, money, first, end, now)
    (row,) = [row for row in found["by_payer"] if row["name"] == "mine"]
    assert row["total_usd"] > 0
    assert row["budget_usd"] is not None
    live.close()
