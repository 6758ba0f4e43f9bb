"""Accounts of those who share a budget: whatever happens between two looks is on one of them."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from boa.model.budgets import Budget
from boa.model.calendar import Calendar, Period
from boa.model.job import GpuLimits
from boa.model.terms import Terms
from boa.scheduler.money.grouping import Grouped
from boa.scheduler.money.ledger import held_between
from boa.scheduler.money.money_state import MoneyState, StretchState
from boa.scheduler.money.purse import AS_CONFIGURED
from boa.scheduler.words.of_limits import budget_words
from boa.server.render.charges import charged
from boa.sim.engine import Checkpointing
from live import START, Live, asked, config, prior, profile, spec

SHORT = profile("short", work=(3600.0,), rescale_s=0.0)
LONG = profile("long", work=(360_000.0,), rescale_s=0.0)
MONTH = Terms(usd=3000.0, each="month")
VISION = Budget(name="vision", terms=MONTH, per_hour=MONTH.per_hour, classes=("short",))
SPEECH = Budget(name="speech", terms=MONTH, per_hour=MONTH.per_hour, classes=("long",))
LAB = Budget(name="all", per_hour=10.0, parts=(VISION, SPEECH))


def served(folder: Path, lab: Budget = LAB, **fields: object) -> Live:
    priors = {"short": prior(SHORT, 0.5), "long": prior(LONG, 0.01)}
    settings = config(folder, sharing=lab, priors=priors, **{"budget": lab.per_hour, **fields})
    return Live(settings, {"short": SHORT, "long": LONG})


def spent(money: MoneyState) -> dict[str, float]:
    return {part.name: part.stretch.spent for part in money.parts if part.stretch is not None}


def held(live: Live) -> dict[str, float]:
    money, now = live.loop.snapshot.money, live.clock.now()
    assert live.store is not None
    rows = charged(live.store, 0.0, now, now, Grouped("payer"), money.sharing).rows
    return {row["payer"]: row["jobs_usd"] for row in rows if row["payer"]}


@pytest.mark.parametrize("edited", [False, True])
def test_what_ran_while_the_service_was_away_is_charged_to_whoever_ran_it(
    tmp_path: Path, edited: bool
) -> None:
    live = served(tmp_path)
    for name in ("short", "long"):
        live.submit(spec(name, gpus=GpuLimits(max=1)))
    live.advance(120.0)
    live.clock.advance_to(live.clock.now() + 20 * 3600.0)  # the short one ends, the long one stays
    if edited:
        live.config = replace(live.config, budget=12.0, sharing=replace(LAB, per_hour=12.0))
    live.crash()
    live.advance(120.0)
    money = live.loop.snapshot.money
    by, of_holds = spent(money), held(live)
    assert of_holds["vision"] > 0.9
    share = of_holds["vision"] / of_holds["speech"]
    assert by["vision"] / by["speech"] == pytest.approx(share, rel=0.05)
    assert sum(by.values()) == pytest.approx(money.total, rel=0.02)
    live.close()


def test_a_job_between_two_looks_is_charged_though_it_is_gone_at_both(tmp_path: Path) -> None:
    live = served(tmp_path)
    live.submit(spec("long"))
    live.advance(600.0)
    job = live.submit(spec("short"))
    live.clock.advance_to(live.clock.now() + 20.0)
    live.settle()
    asked(live, live.loop.stop(job))
    live.clock.advance_to(live.clock.now() + 20.0)
    live.settle()
    assert not any(hold.job == job for hold in live.loop.state.holds.values())
    assert held(live)["vision"] > 0
    live.advance(300.0)
    after = live.loop.snapshot.money
    assert spent(after)["vision"] >= held(live)["vision"]
    live.close()


@pytest.mark.parametrize(("was", "becomes"), [("normal", "background"), ("background", "normal")])
def test_a_change_of_priority_between_two_looks_takes_nothing_from_what_is_charged(
    tmp_path: Path, was: str, becomes: str
) -> None:
    live = served(tmp_path, max_nodes={"T4": 1})
    live.saving = dict.fromkeys(
        live.profiles, Checkpointing(reports=False)
    )  # nothing to plan anew for
    live.submit(spec("long", gpus=GpuLimits(max=1)))
    live.advance(60.0, tick=10.0)
    job = live.submit(spec("short", gpus=GpuLimits(min=3, max=3), priority=was))
    live.advance(600.0, tick=10.0)
    assert live.job(job).run is not None
    live.clock.advance_to(live.clock.now() + 30.0)
    asked(live, live.loop.change(job, {"priority": becomes}, force=True))
    (hold,) = [hold for hold in live.loop.state.holds.values() if hold.job == job]
    usd = held_between(hold, live.loop.state.tally.since, live.clock.now())
    assert usd > 0, "no look has cut it"
    signed = usd if becomes == "background" else -usd
    assert live.loop.state.tally.closed["short"] == pytest.approx(signed)
    live.close()


def total_of(live: Live) -> StretchState:
    stretch = live.loop.snapshot.money.stretch
    assert stretch is not None
    return stretch


def on_terms(terms: Terms) -> Budget:
    return replace(LAB, terms=terms, per_hour=terms.per_hour)


def test_setting_a_budget_leaves_nothing_uncharged(tmp_path: Path) -> None:
    live = served(tmp_path, on_terms(MONTH), budget=MONTH.per_hour)
    live.submit(spec("long"))
    live.advance(1800.0)
    for _ in range(20):  # each in the minute between two looks
        live.clock.advance_to(live.clock.now() + 50.0)
        asked(live, live.loop.set_budget(MONTH.per_hour))
    live.advance(60.0)
    money = live.loop.snapshot.money
    assert total_of(live).spent == pytest.approx(money.total, rel=1e-3)
    assert sum(spent(money).values()) == pytest.approx(money.total, rel=0.02)
    live.close()


def test_a_budget_that_was_edited_while_the_service_was_away_forgives_nothing(
    tmp_path: Path,
) -> None:
    live = served(tmp_path)
    live.submit(spec("long"))
    live.advance(120.0)
    live.clock.advance_to(live.clock.now() + 10 * 3600.0)
    live.config = replace(live.config, budget=12.0, sharing=replace(LAB, per_hour=12.0))
    live.crash()
    assert live.loop.snapshot.money.budget == 12.0
    live.advance(120.0)
    money = live.loop.snapshot.money
    assert money.total > 1.0
    assert sum(spent(money).values()) == pytest.approx(money.total, rel=0.02)
    live.close()


def test_whoever_has_set_the_budget_of_a_project_by_the_hour_can_go_back(tmp_path: Path) -> None:
    terms = Terms(usd=400.0, each="once", until=date(1970, 1, 20))
    live = served(tmp_path, replace(LAB, terms=terms, per_hour=0.0), budget=0.0)
    even = live.loop.snapshot.money.budget
    assert even == pytest.approx(400.0 / ((19 * 86400 + 86400 - START) / 3600))
    asked(live, live.loop.set_budget(1.0))
    live.advance(600.0)
    assert (live.loop.snapshot.money.budget, live.loop.snapshot.money.stretch) == (1.0, None)
    live.crash()
    assert live.loop.snapshot.money.budget == 1.0, "what is set outlives a restart"
    said = budget_words(live.loop.snapshot.money)
    assert said.startswith("budget $1.00/h, set at run time on 1970-01-12")
    assert said.endswith(
        "says $400 in total until 1970-01-20: `boa budget set configured` goes back"
    )
    asked(live, live.loop.set_budget(AS_CONFIGURED))
    assert total_of(live).usd == 400.0
    live.advance(600.0)
    assert live.loop.snapshot.money.budget == pytest.approx(even, rel=0.01)
    live.close()


def test_terms_that_are_edited_count_whatever_was_set_before(tmp_path: Path) -> None:
    terms = Terms(usd=400.0, each="once", until=date(1970, 1, 20))
    live = served(tmp_path, replace(LAB, terms=terms, per_hour=0.0), budget=0.0)
    asked(live, live.loop.set_budget(1.0))
    edited = replace(terms, usd=800.0)
    live.config = replace(live.config, sharing=replace(LAB, terms=edited, per_hour=0.0))
    live.crash()
    assert total_of(live).allowed == pytest.approx(800.0)
    live.close()


def test_what_nodes_cost_before_anybody_holds_them_is_theirs_who_do_next(tmp_path: Path) -> None:
    live = served(tmp_path, provision_s=900.0)
    live.submit(spec("short", gpus=GpuLimits(max=1)))
    live.advance(7200.0)
    money = live.loop.snapshot.money
    assert money.total > 2.0, "a quarter of an hour of booting, and an hour of work"
    assert spent(money)["vision"] == pytest.approx(money.total, rel=0.1)
    live.close()


def test_who_pays_for_what_runs_is_as_configured_from_the_next_start_on(tmp_path: Path) -> None:
    ana = replace(SPEECH, classes=(), users=("ana",))
    live = served(tmp_path, replace(LAB, parts=(VISION, ana)))
    asked(live, live.loop.submit(spec("long"), owner="ana"))
    live.advance(600.0)
    assert spent(live.loop.snapshot.money)["speech"] > 0
    hers = replace(VISION, users=("ana",), classes=())
    live.config = replace(live.config, sharing=replace(LAB, parts=(hers,)))
    live.crash()
    live.advance(3600.0)
    money = live.loop.snapshot.money
    assert spent(money)["vision"] > 0.5 * money.total
    live.close()


def test_a_calendar_that_has_ended_takes_a_budget_and_a_later_end(tmp_path: Path) -> None:
    ended = Calendar(periods=(Period(name="always", budget=8.0),), until=START - 3600.0)
    live = Live(config(tmp_path, calendar=ended, budget=8.0), {"long": LONG})
    job = live.submit(spec("long"))
    asked(live, live.loop.set_budget(5.0))
    live.advance(600.0)
    assert live.job(job).run is None
    assert live.loop.snapshot.money.now_per_hour == 0.0
    live.crash()
    assert live.loop.snapshot.money.budget == 0.0
    later = replace(ended, until=START + 86_400.0)
    live.config = replace(live.config, calendar=later)
    live.crash()
    live.advance(600.0)
    assert live.job(job).run is not None
    live.close()


def test_the_budget_of_a_month_is_kept_whatever_comes_later(tmp_path: Path) -> None:
    live = served(tmp_path)
    live.advance(31 * 86_400.0, tick=21_600.0)
    asked(live, live.loop.set_budget(2.0))
    live.advance(86_400.0, tick=21_600.0)
    months = live.loop.snapshot.money.months
    january = (31 * 86_400.0 - START) / 3600.0
    assert months["1970-01"] == pytest.approx((START, 10.0 * january))
    live.close()


def test_terms_count_where_the_hour_they_come_to_was_set_before(tmp_path: Path) -> None:
    live = served(tmp_path, replace(LAB, per_hour=10.0), budget=10.0)
    asked(live, live.loop.set_budget(12.0))
    monthly = Terms(usd=7305.0, each="month")
    live.config = replace(live.config, sharing=replace(LAB, terms=monthly))
    live.crash()
    assert total_of(live).usd == 7305.0
    live.close()
