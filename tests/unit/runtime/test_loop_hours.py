"""Jobs of a service that wait for hours in which money buys more."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.model.calendar import Calendar, Period
from boa.model.calendar_prices import prices_by
from boa.model.job import JobSpec
from boa.policy.market.hours import Start, starts
from boa.policy.registry import Knobs, choose
from boa.scheduler.decide import week_runs
from boa.scheduler.words.of_terms import NO_WEEK, UNTOLD
from live import BILLINGS, START, Live, asked, config, prior, profile, spec

HOUR = 3600.0
KNOWN = profile("known", work=(10 * HOUR,), alpha=0.5)
LONG = profile("long", work=(4000 * HOUR,), alpha=0.5)
DAY = Period(name="day", budget=2.1, begins=13 * 60, ends=20 * 60)
CALENDAR = Calendar(periods=(DAY, Period(name="night", budget=40.0)))
"""The clock begins on a Monday at 13:46 (UTC); night begins at 20:00. Jobs come two hours before:
the week's plan has who comes sooner run by day."""
NIGHT = START + 22_400.0
HURRIES: list[dict[str, Any]] = [{"deadline_s": 40 * HOUR}, {"priority": "urgent"}]


def begun(
    folder: Path,
    calendar: Calendar | None = CALENDAR,
    *,
    before_s: float = 7000.0,
    **fields: object,
) -> Live:
    priors = {"known": prior(KNOWN, per_hour=0.2), "long": prior(LONG, per_hour=1e-6)}
    budget = 8.0 if calendar is None else calendar.average
    settings = config(folder, priors=priors, calendar=calendar, budget=budget, **fields)
    known = {"known": KNOWN, "long": LONG}
    live = Live(settings, known, schedule=prices_by(calendar))
    live.advance(NIGHT - START - before_s, tick=2000.0)
    return live


def waiting(**fields: object) -> JobSpec:
    return spec("known", **{"may_wait_s": 12 * HOUR, **fields})


@BILLINGS
def test_a_job_that_may_wait_begins_when_money_buys_more(tmp_path: Path, billing: str) -> None:
    live = begun(tmp_path, billing=billing)
    job, other = live.submit(waiting()), live.submit(spec("known"))
    live.advance(1800.0)
    assert live.job(other).run is not None, "who says nothing begins at once"
    assert live.job(job).run is None
    assert live.job(job).waits_until == NIGHT
    assert live.job(job).reason.startswith("waits for night, from Mon 1970-01-12 20:00 UTC on: ")
    live.advance(NIGHT - live.clock.now() + 300.0)
    assert live.job(job).waits_until is None
    started = live.job(job).started_at
    assert started is not None
    assert NIGHT <= started < NIGHT + 300.0
    live.close()


def test_an_estimate_says_what_then_becomes_of_the_job(tmp_path: Path) -> None:
    live = begun(tmp_path)
    assert live.loop.estimate(spec("known")).put_off is None
    for hurry in HURRIES:
        assert live.loop.estimate(waiting(**hurry)).put_off is None
    told = live.loop.estimate(waiting()).put_off
    assert told is not None
    assert (told.until, told.why) == (None, UNTOLD), "the week is planned once anybody may wait"
    live.submit(waiting())
    live.advance(60.0)
    told = live.loop.estimate(waiting()).put_off
    assert told is not None
    job = live.submit(waiting())
    live.advance(30.0)
    assert (told.until, told.why) == (live.job(job).waits_until, live.job(job).reason)
    assert live.loop.estimate(waiting(may_wait_s=600.0)).put_off is None, "night is too far away"
    live.close()


def test_the_calendar_says_how_long_those_wait_that_do_not_say(tmp_path: Path) -> None:
    live = begun(tmp_path, replace(CALENDAR, may_wait=12 * HOUR))
    job, at_once = live.submit(spec("known")), live.submit(spec("known", may_wait_s=0.0))
    live.advance(60.0)
    assert live.job(job).waits_until == NIGHT
    assert live.job(at_once).run is not None
    live.close()


def test_nobody_waits_longer_than_allowed(tmp_path: Path) -> None:
    live = begun(tmp_path)
    job = live.submit(waiting(may_wait_s=6_999.0))
    live.advance(60.0)
    assert live.job(job).run is not None
    live.close()


def test_a_run_that_is_longer_than_the_night_does_not_wait_for_it(tmp_path: Path) -> None:
    """It meets as much of every period whenever it begins."""
    live = begun(tmp_path)
    job = live.submit(
        waiting(),
    ) and live.submit(spec("long", may_wait_s=12 * HOUR))
    live.advance(60.0)
    assert live.job(job).run is not None
    live.close()


@pytest.mark.parametrize("terms", HURRIES)
def test_who_is_in_a_hurry_does_not_wait(tmp_path: Path, terms: dict[str, object]) -> None:
    live = begun(tmp_path)
    job = live.submit(waiting(**terms))
    live.advance(60.0)
    assert live.job(job).run is not None
    live.close()


def test_a_job_that_waits_goes_at_once_when_told_to(tmp_path: Path) -> None:
    live = begun(tmp_path)
    job = live.submit(waiting())
    live.advance(600.0)
    asked(live, live.loop.change(job, {"may_wait_s": 0.0}))
    live.advance(60.0)
    assert live.job(job).waits_until is None
    assert live.job(job).run is not None
    live.close()


def test_a_job_that_waits_still_does_after_a_crash(tmp_path: Path) -> None:
    live = begun(tmp_path)
    job = live.submit(waiting())
    live.advance(600.0)
    live.crash()
    live.advance(600.0)
    assert (live.job(job).waits_until, live.job(job).run) == (NIGHT, None)
    live.advance(NIGHT - live.clock.now() + 300.0)
    assert live.job(job).run is not None
    live.close()


def test_a_job_that_waits_begins_when_the_calendar_is_taken_away(tmp_path: Path) -> None:
    live = begun(tmp_path)
    job = live.submit(waiting())
    live.advance(600.0)
    live.config = replace(live.config, calendar=None)
    live.crash()
    live.advance(600.0)
    assert live.job(job).waits_until is None
    assert live.job(job).run is not None
    live.close()


def test_a_job_that_waits_may_be_paused_and_stopped(tmp_path: Path) -> None:
    live = begun(tmp_path)
    paused, stopped = live.submit(waiting()), live.submit(waiting())
    live.advance(600.0)
    asked(live, live.loop.pause(paused))
    asked(live, live.loop.stop(stopped))
    assert live.job(stopped).state == "stopped"
    live.advance(NIGHT - live.clock.now() + 300.0)
    assert live.job(paused).run is None
    asked(live, live.loop.resume(paused))
    live.advance(300.0)
    assert live.job(paused).run is not None
    live.close()


def test_hours_that_cost_less_are_waited_for_too(tmp_path: Path) -> None:
    night = Period(name="night", budget=DAY.budget, price_factor=0.2)
    calendar = Calendar(periods=(DAY, night))
    live = begun(tmp_path, calendar)
    job = live.submit(waiting())
    live.advance(600.0)
    assert live.job(job).waits_until == NIGHT
    live.close()


def test_nobody_waits_where_all_hours_are_alike(tmp_path: Path) -> None:
    night = Period(name="night", budget=DAY.budget)
    live = begun(tmp_path, Calendar(periods=(DAY, night)))
    job = live.submit(waiting())
    live.advance(60.0)
    assert live.job(job).run is not None
    live.close()


def test_jobs_that_are_alike_are_weighed_once_however_many_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = begun(tmp_path)
    jobs = [live.submit(waiting()) for _ in range(5)]
    live.advance(600.0)
    assert {live.job(job).waits_until for job in jobs} == {NIGHT}
    weighed: list[float] = []

    def counted(calendar: Calendar, now: float, *of: Any) -> list[Start]:
        weighed.append(now)
        return starts(calendar, now, *of)

    monkeypatch.setattr(week_runs, "starts", counted)
    live.clock.advance_to(live.clock.now() + 60.0)
    live.loop.step()
    assert len(weighed) == 1
    live.close()


def test_a_job_that_waited_for_a_plan_is_put_off_only_if_it_gains_enough(tmp_path: Path) -> None:
    """Just before the night it gains a little: less than is asked of the next."""
    live = begun(tmp_path, before_s=400.0)
    first = live.submit(waiting())
    assert live.job(first).reason == NO_WEEK
    live.advance(60.0)
    second = live.submit(waiting())
    live.advance(60.0)
    for job in (first, second):
        assert (live.job(job).waits_until, live.job(job).started_at is None) == (None, False)
    live.close()


def test_a_job_that_was_paused_while_it_waited_says_again_what_for(tmp_path: Path) -> None:
    live = begun(tmp_path)
    job = live.submit(waiting())
    live.advance(600.0)
    asked(live, live.loop.pause(job))
    assert live.job(job).waits_until is None, "what it waits for is to be resumed"
    asked(live, live.loop.resume(job))
    live.advance(60.0)
    assert live.job(job).waits_until == NIGHT
    assert live.job(job).reason.startswith("waits for night, from ")
    live.close()


def test_under_a_policy_without_a_plan_nobody_waits_for_one(tmp_path: Path) -> None:
    live = begun(tmp_path)
    before = live.submit(waiting())
    live.advance(60.0)
    live.policy = choose("fixed", Knobs(width=1)).policy
    live.crash()
    live.advance(1.0)
    after = live.submit(waiting())
    for job in (before, after):
        assert (live.job(job).waits_until, live.job(job).run is None) == (None, False)
    live.close()


def test_nobody_waits_for_a_night_that_the_budget_does_not_see(tmp_path: Path) -> None:
    live = begun(tmp_path)
    job = live.submit(waiting())
    live.advance(60.0)
    live.config = replace(live.config, calendar=replace(CALENDAR, until=live.clock.now()))
    live.crash()
    assert live.job(job).waits_until is None
    assert live.job(job).reason.startswith("waits: the budget ended on ")
    live.close()


def test_what_a_job_waits_for_is_said_anew_when_its_run_comes_to_something_else(
    tmp_path: Path,
) -> None:
    live = begun(tmp_path)
    job = live.submit(waiting())
    live.advance(600.0)
    assert "it takes 2 h 31 min" in live.job(job).reason
    asked(live, live.loop.change(job, {"gpus": {"max": 14}}))
    live.advance(60.0)
    assert live.job(job).waits_until == NIGHT
    assert "it takes 2 h 54 min" in live.job(job).reason
    live.close()
