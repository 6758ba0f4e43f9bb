"""The real loop with teams that share its budget: their plans, their loans, and a crash."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from boa.model.budgets import Budget
from boa.model.terms import Terms
from boa.scheduler.money.stretches import LAST_S
from boa.server.render import documents
from boa.units import SECONDS_PER_HOUR
from live import BILLINGS, Live, config, kinds, prior, profile, spec

ONE = profile("one", work=(7200.0,), alpha=0.8)
OTHER = profile("other", work=(7200.0,), alpha=0.8)
RICH, POOR = (
    Budget(name="rich", per_hour=6.0, classes=("one",)),
    Budget(name="poor", per_hour=2.0, max_per_hour=2.6, classes=("other",)),
)
LAB = Budget(name="all", per_hour=8.0, parts=(RICH, POOR))


def served(folder: Path, billing: str = "gpu") -> Live:
    settings = config(
        folder,
        billing=billing,
        sharing=LAB,
        priors={"one": prior(ONE, 1.0), "other": prior(OTHER, 1.0)},
    )
    return Live(settings, {"one": ONE, "other": OTHER})


def budgets(live: Live) -> dict[str, Any]:
    plan = live.loop.snapshot.plan
    assert plan is not None
    return {budget.name: budget for budget in plan.solution.budgets}


@BILLINGS
def test_a_team_that_has_more_by_right_gets_more_gpus(tmp_path: Path, billing: str) -> None:
    live = served(tmp_path, billing)
    jobs = [live.job(live.submit(spec(name))) for name in ("one", "other")]
    widths = [job.run.allocation.width for job in jobs if job.run is not None]
    assert widths[0] > widths[1]
    found = budgets(live)
    assert found["rich"].spend > found["poor"].spend
    assert found["poor"].multiplier > found["rich"].multiplier, "its ceiling holds it"
    live.close()


def test_loans_are_kept_over_a_crash_and_change_what_a_team_has_by_right(tmp_path: Path) -> None:
    live = served(tmp_path)
    live.submit(spec("other"))
    live.advance(3600.0)
    purse = live.loop.scheduler.purse
    assert purse.rights_now is not None
    rich, poor = purse.rights_now.parts
    assert rich.per_hour > RICH.per_hour, "it has lent"
    assert poor.max_per_hour is not None
    live.crash()
    after = live.loop.scheduler.purse.rights_now
    assert after is not None
    assert after.parts[0].per_hour == pytest.approx(rich.per_hour, rel=1e-3)
    live.close()


def test_another_budget_is_shared_by_the_same_parts(tmp_path: Path) -> None:
    live = served(tmp_path)
    live.loop.set_budget(16.0)
    live.settle()
    sharing = live.loop.scheduler.purse.rights_now
    assert sharing is not None
    assert [part.per_hour for part in sharing.parts] == pytest.approx([12.0, 4.0])
    assert sharing.parts[1].max_per_hour == pytest.approx(5.2)
    live.close()


def test_everybody_who_shares_is_told_what_they_have_and_spend(tmp_path: Path) -> None:
    live = served(tmp_path)
    live.submit(spec("other"))
    live.advance(3600.0)
    money = live.loop.snapshot.money
    told = {part["name"]: part for part in documents.budget(money)["parts"]}
    assert told["rich"]["lent_usd"] > 0
    assert told["rich"]["right_now_per_hour"] > told["rich"]["budget_per_hour"] == 6.0
    assert told["poor"]["max_per_hour"] == 2.6
    assert told["poor"]["classes"] == ["other"], "whose jobs it pays for"
    assert told["poor"]["lends"]
    spends = sum(part["spend_now_per_hour"] for part in told.values())
    assert spends == pytest.approx(money.now_per_hour)
    live.close()


@BILLINGS
def test_once_a_month_is_spent_nothing_is_rented_until_the_next(
    tmp_path: Path, billing: str
) -> None:
    terms = Terms(usd=8.0, each="month")
    priors = {"one": prior(ONE, 0.01)}
    settings = config(tmp_path, billing=billing, budget=terms.per_hour, terms=terms, priors=priors)
    live = Live(settings, {"one": ONE})
    for _ in range(5):
        live.submit(spec("one"))
    live.advance(8 * 3600.0, tick=60.0)
    money = live.loop.snapshot.money
    told = documents.budget(money)["stretch"]
    assert told["used_up"]
    assert (told["name"], told["each"]) == ("1970-01", "month")
    kept_back = 16.0 * (LAST_S + 60.0) / SECONDS_PER_HOUR
    assert told["allowed_usd"] - kept_back <= told["spent_usd"] <= told["allowed_usd"]
    assert money.now_per_hour == 0.0
    assert live.loop.state.jobs
    waits = [job.reason for job in live.loop.state.jobs.values()]
    assert all("the budget of $8 a month, which is used up" in why for why in waits), waits
    assert kinds(live).count("used_up") == 1
    live.crash()
    live.advance(3600.0)
    assert live.loop.snapshot.money.now_per_hour == 0.0
    live.advance(31 * 86_400.0 - live.clock.now() + 600.0, tick=3600.0)
    assert live.loop.snapshot.money.now_per_hour > 0.0
    live.close()


def test_a_part_that_does_not_borrow_waits_once_its_money_is_used_up(tmp_path: Path) -> None:
    terms = Terms(usd=1.0, each="once", until=date(1970, 3, 1))
    thesis = Budget(name="thesis", terms=terms, borrows=False, classes=("other",))
    settings = config(
        tmp_path,
        billing="gpu",
        sharing=Budget(name="all", per_hour=8.0, parts=(RICH, thesis)),
        priors={"one": prior(ONE, 1.0), "other": prior(OTHER, 1.0)},
    )
    live = Live(settings, {"one": ONE, "other": OTHER})
    mine = [live.submit(spec("other")) for _ in range(2)]
    live.advance(6 * 3600.0, tick=60.0)
    told = {part["name"]: part for part in documents.budget(live.loop.snapshot.money)["parts"]}
    assert told["thesis"]["stretch"]["used_up"]
    assert 0.5 <= told["thesis"]["stretch"]["spent_usd"] <= 1.0
    assert told["thesis"]["spend_now_per_hour"] == 0.0
    left = [job for job in live.loop.state.jobs.values() if job.id in mine]
    assert left
    assert all("is used up" in job.reason for job in left), [job.reason for job in left]
    other = live.submit(spec("one"))
    live.settle()
    assert live.job(other).run is not None, "others go on"
    live.close()


def test_a_budget_that_nobody_shares_has_no_parts(lives: Any) -> None:
    assert "parts" not in documents.budget(lives().loop.snapshot.money)
