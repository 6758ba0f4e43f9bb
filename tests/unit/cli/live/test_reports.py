"""A month's statement and what was saved in it, from the command line."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.amounts import dollars
from boa.cli.live import statement
from boa.model.budgets import Budget
from boa.model.calendar import Calendar, Period
from boa.model.notices import MonthSpent
from boa.scheduler.money import accounts, rights
from boa.scheduler.money.costs import month_of
from boa.scheduler.money.money_state import PartState, StretchState
from boa.scheduler.money.months import Allowed
from boa.scheduler.money.rights import Month
from boa.server.render.statements import month_spent
from fakes import NOW, FakeService
from integration.runner import Boa
from unit.server.routes.test_reports import SEPTEMBER, TREE

STRETCH = StretchState(
    name="2026-09",
    each="month",
    usd=4000.0,
    allowed=3600.0,
    rolled=0.0,
    spent=4.0,
    since=SEPTEMBER,
    ends=month_of(NOW)[1],
    rolls_over=False,
    used_up=False,
)
PART = PartState(
    budget=Budget(name="vision"),
    above=None,
    per_hour=1.0,
    right_now=1.0,
    lent=0.0,
    now_per_hour=0.0,
)


def test_a_statement_is_told_in_words_and_says_its_rule(run: Boa, service: FakeService) -> None:
    service.submit()
    service.control.run("1", gpus=3)
    said = run("statement")
    assert "September 2026 (30 days): in progress, up to" in said
    assert "bill      $4.00" in said
    assert "resnet18" in said
    assert "shared out in proportion" in said.replace("\n", " ")
    assert "below ten cents may be shown with more digits" in said.replace("\n", " ")


@pytest.mark.parametrize(("times", "words"), [(1, "once"), (2, "2 times"), (1200, "1,200 times")])
def test_how_often_jobs_were_preempted_is_counted_in_words(times: int, words: str) -> None:
    found: Any = {"preempted": {"times": times, "lost_s": 0.0, "lost_usd": 0.0}}
    assert statement._preempted(found) == [("preempted", f"{words}; no work lost")]


def test_the_budget_of_a_month_in_which_the_service_began_is_for_its_days(
    run: Boa, service: FakeService
) -> None:
    control = service.control
    began = NOW - 3600
    control.money = replace(control.money, months={"2026-09": Allowed(began, 14.0)})
    assert "for Sep 21–30; 0 % is spent" in run("statement")
    found = run.json("statement")
    assert (found["budget_since"], found["budget_until"]) == (began, month_of(NOW)[1])


def test_less_than_ten_cents_is_shown_by_what_was_rounded_to_cents(
    run: Boa, service: FakeService
) -> None:
    service.submit()
    service.control.run("1", gpus=3)
    control = service.control
    young = replace(control.nodes[1], billed_from=NOW - 2, ready_at=NOW - 2)
    control.nodes[1] = control.store.kept_nodes[1] = young
    found = run.json("statement")
    exact = found["lines"][0]["exact_usd"]
    assert 0 < exact["held"] < 0.005
    assert found["lines"][0]["held_usd"] == 0.0
    assert dollars(exact["held"]) in run("statement")


def test_a_statement_goes_to_a_file_whose_ending_says_what_is_in_it(
    run: Boa, service: FakeService, tmp_path: Path
) -> None:
    service.submit()
    service.control.run("1", gpus=3)
    run("statement", "-o", str(tmp_path / "a.csv"))
    (row,) = csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text()))
    assert (row["class"], row["total_usd"]) == ("resnet18", "4.00")
    run("statement", "-o", str(tmp_path / "a.html"), "--month", "2026-09")
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    run("statement", "-o", str(tmp_path / "a.json"))
    assert json.loads((tmp_path / "a.json").read_text())["total_usd"] == 4.0
    assert run("statement", "--csv").startswith("month,state,payer")
    run("statement", "-o", str(tmp_path / "a.pdf"), code=2)
    run("statement", "--csv", "--json", code=2)


@pytest.mark.parametrize("command", ["statement", "saved"])
@pytest.mark.parametrize("month", ["2026-10", "2026-13", "October"])
def test_a_month_that_has_not_begun_is_named_as_it_was_given(
    run: Boa, service: FakeService, command: str, month: str
) -> None:
    run(command, "--month", month, code=2)
    assert f"--month: got '{month}'; expected a month that has begun, such as" in run.err


def test_a_month_before_the_service_has_a_statement_without_a_budget(
    run: Boa, service: FakeService
) -> None:
    said = run("statement", "--month", "2020-01")
    assert "January 2020 (31 days): complete" in said
    assert "budget    none: there was no service in that month" in said


def test_what_was_saved_is_not_said_of_too_few_jobs(run: Boa, service: FakeService) -> None:
    assert "it takes 10 to say anything" in run("saved").replace("\n", " ")
    assert run.json("saved")["state"] == "none"
    run("saved", "--width", "0", code=2)


def test_cost_is_listed_by_tag(run: Boa, service: FakeService) -> None:
    service.submit(tags={"project": "zoo"})
    service.control.run("1", gpus=3)
    said = run("cost", "--by", "tag:project")
    assert "project" in said
    assert "zoo" in said
    run("cost", "--by", "tag:", code=2)


def test_a_part_has_spent_what_its_parts_have_with_their_share_of_idle_gpus(
    service: FakeService,
) -> None:
    control = service.control
    service.submit()
    control.run("1", gpus=3)
    control.money = replace(control.money, sharing=TREE)
    whole, vision, cats, language = month_spent(control.store, control.money, NOW)
    assert whole.part == ""
    assert whole.allowed == control.money.budget * 720
    assert vision == MonthSpent(month=SEPTEMBER, part="vision", spent=4.0, allowed=6.0 * 720)
    assert (cats.part, cats.spent) == ("cats", 4.0)
    assert (language.part, language.spent) == ("language", 0.0)


def test_a_months_budget_is_what_its_calendar_still_allows(service: FakeService) -> None:
    control = service.control
    by_day = Period(name="day", budget=30.0, begins=480, ends=1200)
    calendar = Calendar(periods=(by_day, Period(name="night", budget=10.0)))
    state = accounts.state(accounts.PeriodAccounts(), calendar, NOW)
    tree = replace(TREE, per_hour=10.0)
    control.money = replace(control.money, budget=10.0, sharing=tree, calendar=state)
    whole, vision, *_ = month_spent(control.store, control.money, NOW)
    to_come = calendar.allowed(NOW, month_of(NOW)[1])
    assert whole.allowed == pytest.approx(10.0 * (NOW - SEPTEMBER) / 3600 + to_come)
    assert vision.allowed == pytest.approx(6.0 / 10.0 * whole.allowed)


def test_money_for_a_month_is_the_months_budget(service: FakeService) -> None:
    control, stretch = service.control, STRETCH
    parts = (replace(PART, stretch=replace(stretch, allowed=123.0)),)
    control.money = replace(control.money, sharing=TREE, stretch=stretch, parts=parts)
    whole, vision, *_ = month_spent(control.store, control.money, NOW)
    assert (whole.allowed, vision.allowed) == (stretch.allowed, 123.0)


def test_money_for_longer_than_a_month_is_a_months_by_its_even_pace_and_does_not_vanish(
    service: FakeService,
) -> None:
    control, day = service.control, 86_400.0
    begun = SEPTEMBER - 62 * day
    quarter = replace(
        STRETCH, name="2026-Q3", each="quarter", allowed=9200.0, since=begun, used_up=True
    )
    mid = SEPTEMBER + 15 * day
    project = replace(STRETCH, name="until 2026-09-30", each="once", allowed=300.0, since=mid)
    parts = (
        replace(PART, stretch=quarter),
        replace(PART, budget=Budget(name="cats"), stretch=project),
    )
    control.money = replace(control.money, sharing=TREE, parts=parts)
    _, vision, cats, _ = month_spent(control.store, control.money, NOW)
    assert vision.allowed == pytest.approx(9200.0 * 30 / 92)
    assert cats.allowed == pytest.approx(300.0)


def test_before_there_was_a_service_there_was_no_budget(service: FakeService) -> None:
    money = service.control.money
    august = Month(SEPTEMBER - 31 * 86_400.0, SEPTEMBER, NOW)
    assert rights.of_whole(money, august) == 0.0
    half = august._replace(allowed=Allowed(SEPTEMBER - 5 * 86_400.0, 1234.0))
    assert rights.of_whole(money, half) == 1234.0
    on_terms = replace(money, stretch=replace(STRETCH, usd=3100.0))
    assert rights.of_whole(on_terms, half) == pytest.approx(500.0), "five days of 31"
    october = SEPTEMBER + 30 * 86_400.0
    by_quarter = replace(STRETCH, name="2026-Q4", each="quarter", usd=9200.0, since=october)
    whole_august = half._replace(allowed=Allowed(0.0, 1.0))
    last_quarter = rights.of_whole(replace(money, stretch=by_quarter), whole_august)
    assert last_quarter == pytest.approx(9200.0 * 31 / 92)
