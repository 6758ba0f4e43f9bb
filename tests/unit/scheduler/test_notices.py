"""Notices that follow from what happens, on the real loop in virtual time."""

from typing import Any

import pytest

from boa.model.access import Caller
from boa.model.job import After
from boa.model.notices import MonthSpent, Notice, NotifyTarget
from boa.model.runs import RunKey
from boa.scheduler.notices import QUIET_S, Notices
from boa.scheduler.state import Draft, State
from live import Live, kinds, profile, spec

NET = profile("net", work=(600.0,))
LONG = profile("net", work=(36_000.0,))
ALL = NotifyTarget(name="all", kind="webhook", url="http://127.0.0.1:1/")
FAILURES = NotifyTarget(name="failures", kind="slack", url="http://127.0.0.1:1/", tell=("failed",))


def notices(live: Live, **asked: Any) -> list[Notice]:
    assert live.store is not None
    return list(live.store.notices(**asked))


def told(live: Live, target: str = "all") -> list[str]:
    return [notice.kind for notice in notices(live, target=target)]


def test_an_end_is_told_to_who_wants_ends_and_a_failure_to_who_wants_failures_too(
    lives: Any,
) -> None:
    live = lives(NET, notify=(ALL, FAILURES))
    live.submit(spec("net"))
    live.finish()
    assert told(live) == ["ended"]
    assert told(live, "failures") == []
    job = live.submit(spec("net", retries=0))
    live.engine.kill(RunKey(job, 1), exit_code=3)
    live.settle()
    assert told(live) == ["ended", "failed"]
    (notice,) = notices(live, target="failures")
    assert (notice.job, notice.data["exit_code"], notice.data["class"]) == (job, 3, "net")
    assert notice.text.startswith(f"job {job} (net) failed: ")


def test_the_end_of_a_job_that_never_ran_is_told_too(lives: Any) -> None:
    live = lives(NET, notify=(ALL,))
    first = live.submit(spec("net", retries=0))
    later = live.submit(spec("net", after=(After(first),)))
    live.engine.kill(RunKey(first, 1), exit_code=3)
    live.settle()
    assert kinds(live, later) == ["submitted", "stop", "stopped"]
    (notice,) = [notice for notice in notices(live) if notice.job == later]
    assert (notice.kind, notice.data["state"]) == ("ended", "stopped")
    assert notice.text.endswith(f"job {first} failed; this one was to start once it succeeds")


def test_notices_are_stored_with_what_they_tell_of_and_numbers_go_on_after_a_crash(
    lives: Any,
) -> None:
    live = lives(NET, notify=(ALL,))
    live.submit(spec("net"))
    live.finish()
    live.crash()
    (first,) = notices(live, waiting=True)
    live.submit(spec("net"))
    live.finish()
    assert [notice.number for notice in notices(live)] == [first.number, first.number + 1]


def test_only_jobs_of_its_teams_and_owners_are_told_to_a_target(lives: Any) -> None:
    vision = NotifyTarget(name="vision", kind="slack", url="http://x/", teams=("vision",))
    mia = NotifyTarget(name="mia", kind="slack", url="http://x/", owners=("mia",))
    live = lives(NET, notify=(vision, mia))
    by = Caller(name="otto", role="member", team="vision")
    live.loop.submit(spec("net"), owner="otto", team="vision", by=by)
    live.loop.submit(spec("net"), owner="mia", team="speech")
    live.loop.submit(spec("net"), owner="eve", team="speech")
    live.settle()
    live.finish()
    assert [n.data["owner"] for n in notices(live, target="vision")] == ["otto"]
    assert [n.data["owner"] for n in notices(live, target="mia")] == ["mia"]


def test_a_line_of_a_log_is_in_no_notice(lives: Any) -> None:
    line = "KeyError: a customer"
    live = lives(NET, notify=(ALL,))
    live.engine.breaks = lambda launch: line
    live.submit(spec("net", retries=0))
    live.finish()
    (notice,) = notices(live)
    assert notice.kind == "failed"
    assert line not in repr(notice)


def test_a_budget_that_is_too_small_is_told_when_it_begins_to_be(lives: Any) -> None:
    live = lives(LONG, per_hour=10.0, notify=(ALL,), budget=0.5)
    live.submit(spec("net"))
    live.advance(1800.0)
    found = [notice for notice in notices(live) if notice.kind == "budget"]
    assert len(found) == 1
    assert "cannot keep up: the cheapest plan needs $" in found[0].text
    assert found[0].data["budget_per_hour"] == 0.5
    live.advance(QUIET_S + 1800.0, tick=600.0)
    assert told(live).count("budget") == 1, "it never was large enough in between"


def test_a_cap_that_jobs_wait_for_is_told_once_in_a_while(lives: Any) -> None:
    live = lives(LONG, notify=(ALL,), max_spend=4.0)
    for _ in range(8):
        live.submit(spec("net"))
    live.advance(1800.0)
    (notice,) = [notice for notice in notices(live) if notice.kind == "cap"]
    assert notice.text.startswith("the cap of $4.00/h is reached ($4.00/h now): ")


def test_jobs_that_are_paused_or_wait_for_others_do_not_wait_for_the_cap(lives: Any) -> None:
    live = lives(LONG, notify=(ALL,), max_spend=4.0)
    first = live.submit(spec("net"))
    paused = live.submit(spec("net", after=(After(first, "end"),)))
    live.submit(spec("net", after=(After(paused, "end"),)))
    live.loop.pause(paused)
    live.advance(1800.0)
    assert live.job(first).state == "running"
    assert "cap" not in told(live)


def test_a_month_that_costs_more_than_meant_is_told_once_a_month(lives: Any) -> None:
    mine = NotifyTarget(name="mine", kind="slack", url="http://x/", month_usd=100.0)
    live = lives(NET, notify=(ALL, mine), budget=8.0)

    def foretell(usd: float) -> None:
        live.loop.foretell_month(usd)
        live.settle()

    foretell(99.0)
    assert notices(live) == []
    foretell(101.0)
    foretell(101.0)
    assert told(live, "mine") == ["forecast"]
    assert told(live) == [], "the budget allows as much"
    foretell(8.0 * 24 * 31 * 1.06)
    assert told(live) == ["forecast"]
    live.crash()
    foretell(8.0 * 24 * 31 * 1.06)
    assert len(notices(live)) == 2, "what was told is stored"
    live.advance(32 * 86_400.0, tick=86_400.0)
    foretell(101.0)
    assert told(live, "mine") == ["forecast", "forecast"]


def test_each_percentage_of_the_months_budget_is_told_once_a_month_and_outlives_a_crash(
    lives: Any,
) -> None:
    early = NotifyTarget(name="early", kind="slack", url="http://x/", alerts=(10.0,))
    own = NotifyTarget(name="own", kind="slack", url="http://x/", month_usd=2000.0)
    live = lives(NET, notify=(ALL, early, own))

    def spend(usd: float, month: float = 0.0) -> None:
        live.loop.tell_spent([MonthSpent(month=month, part="", spent=usd, allowed=1000.0)])
        live.settle()

    def percents(target: str = "all") -> list[float]:
        return [notice.data["percent"] for notice in notices(live, target=target)]

    spend(499.99)
    assert percents() == []
    spend(500.0)
    spend(600.0)
    assert percents() == [50.0]
    live.crash()
    spend(700.0)
    assert percents() == [50.0], "what was told is stored"
    spend(1200.0)
    assert percents() == [50.0, 100.0], "only the highest that was passed"
    assert percents("early") == [10.0]
    assert percents("own") == [50.0], "of what a month may cost"
    spend(510.0, month=31 * 86_400.0)
    assert percents() == [50.0, 100.0, 50.0]
    assert notices(live)[0].kind == "spent"
    told_of = [notice.text for notice in notices(live, target="all")]
    assert told_of[0] == "50 % of this month's budget is spent: $500.00 of $1,000.00"


def test_parts_of_the_budget_are_told_of_by_themselves_and_to_their_teams(lives: Any) -> None:
    vision = NotifyTarget(name="vision", kind="slack", url="http://x/", teams=("vision",))
    live = lives(NET, notify=(ALL, vision))
    live.loop.tell_spent(
        [
            MonthSpent(month=0.0, part="", spent=500.0, allowed=1000.0),
            MonthSpent(month=0.0, part="vision", spent=450.0, allowed=500.0),
            MonthSpent(month=0.0, part="speech", spent=50.0, allowed=500.0),
        ]
    )
    live.settle()
    assert [notice.data["part"] for notice in notices(live, target="all")] == ["", "vision"]
    (notice,) = notices(live, target="vision")
    assert notice.text == "80 % of this month's budget of vision is spent: $450.00 of $500.00"


def test_what_is_not_stored_has_not_been_told() -> None:
    deciding = Notices((ALL,), None)
    for _ in range(2):  # the first one's transaction fails
        draft = Draft(State(), 0.0)
        deciding.foretell(draft, 1e6, 8.0)
        assert list(draft.changes.notices) == [1]
    deciding.adopt(draft)
    again = Draft(State(), 0.0)
    deciding.foretell(again, 1e6, 8.0)
    assert again.changes.notices == {}


@pytest.mark.parametrize("targets", [(), (FAILURES,)])
def test_who_wants_nothing_costs_nothing(lives: Any, targets: tuple[NotifyTarget, ...]) -> None:
    live = lives(NET, notify=targets)
    live.submit(spec("net"))
    live.finish()
    assert notices(live) == []
