"""Too little money for the jobs that are there: said, with what is needed and what will happen."""

from dataclasses import replace
from pathlib import Path

from boa.model.calendar import Calendar, Period
from boa.model.job import GpuLimits
from boa.scheduler.money import accounts
from boa.scheduler.money.shortfall import Shortfall, least_spend, shortfall
from boa.scheduler.words.of_limits import calendar_scaled, set_at_run_time
from live import A100, BILLINGS, START, T4, Live, asked, config, prior, profile, spec

KNOWN = profile("known")
NAMED = "1970-01-12 13:46 UTC"


def begun(folder: Path, **fields: object) -> Live:
    """Six jobs an hour of an hour on one T4: some $6.00/h at least."""
    settings = config(folder, priors={"known": prior(KNOWN, per_hour=6.0)}, **fields)
    return Live(settings, {"known": KNOWN})


def judged(live: Live) -> Shortfall:
    found = live.loop.snapshot
    return shortfall(found.money, found.plan, found.jobs.values(), found.gpu_types)


def test_enough_is_worth_no_word(tmp_path: Path) -> None:
    live = begun(tmp_path, budget=40.0, billing="gpu")
    live.submit(spec("known"))
    found = judged(live)
    assert found.needed is not None
    assert 6.0 < found.needed < 12.0
    assert found.warnings == ()
    live.close()


@BILLINGS
def test_a_budget_below_the_cheapest_plan_is_overspent_and_that_is_said(
    tmp_path: Path, billing: str
) -> None:
    live = begun(tmp_path, billing=billing)
    live.submit(spec("known"))
    asked(live, live.loop.set_budget(0.5))
    found = judged(live)
    (said,) = found.warnings
    assert said.startswith("the budget of $0.50/h is less than the jobs need")
    assert f"the cheapest plan for them takes ${found.needed:.2f}/h" in said
    assert "They run all the same" in said
    for _ in range(12):
        live.submit(spec("known"))
        live.advance(600.0)
    assert live.loop.snapshot.money.average > 2.0, "four times the budget, as was said"
    live.close()


def test_a_calendar_s_week_is_held_against_what_the_jobs_need_and_the_period_is_named(
    tmp_path: Path,
) -> None:
    live = begun(tmp_path, billing="gpu")
    live.submit(spec("known"))
    found = live.loop.snapshot
    rest = (found.plan, found.jobs.values(), found.gpu_types)
    by_day = Period(name="day", budget=2.0, begins=0, ends=1200)

    def said(night: float) -> tuple[str, ...]:
        calendar = Calendar(periods=(by_day, Period(name="night", budget=night)))
        state = accounts.state(accounts.PeriodAccounts(), calendar, 0.0)
        money = replace(found.money, budget=2.0, calendar=state)
        return shortfall(money, *rest).warnings

    assert said(240.0) == (), "a day of too little, in a week of enough"
    (warning,) = said(8.0)
    assert warning.startswith("the budget of $3.00/h over a week ($2.00/h in day, now) is less")
    live.close()


def test_a_cap_below_the_cheapest_plan_has_jobs_wait_and_that_is_said(tmp_path: Path) -> None:
    live = begun(tmp_path, billing="node")
    live.submit(spec("known"))
    asked(live, live.loop.set_budget(None, 4.0))
    (said,) = judged(live).warnings
    assert "the cap of $4.00/h is less than the jobs need" in said
    assert "jobs wait, longer and longer" in said
    live.close()


def test_jobs_too_large_for_the_cap_are_named(tmp_path: Path) -> None:
    live = begun(tmp_path, billing="gpu")
    live.submit(spec("known", gpus=GpuLimits(min=8, max=16)))
    asked(live, live.loop.set_budget(None, 4.0))
    said = judged(live).warnings[0]
    assert said.startswith("no job that is there can run under the cap of $4.00/h")
    assert "needs nodes for $8.00/h" in said
    live.submit(spec("known"))
    assert judged(live).warnings[0].startswith("job 1 cannot run under the cap of $4.00/h")
    live.close()


def test_the_least_spend_of_a_job_is_that_of_whole_nodes_of_a_type_of_its_own(
    tmp_path: Path,
) -> None:
    live = begun(tmp_path)
    job = live.job(live.submit(spec("known", gpus=GpuLimits(min=3, max=16))))
    kinds = {"T4": T4, "A100": A100}
    assert least_spend(job, kinds) == 4.0
    only = replace(job, spec=replace(job.spec, gpus=GpuLimits(min=3, max=8, types=("A100",))))
    assert least_spend(only, kinds) == 12.0
    live.close()


def test_what_was_set_at_run_time_is_said_after_a_restart_with_the_way_back(tmp_path: Path) -> None:
    live = begun(tmp_path, budget=8.0)
    assert set_at_run_time(live.loop.snapshot.money) == []
    asked(live, live.loop.set_budget(5.0, 4.0))
    live.clock.advance_to(START + 7200)
    live.crash()
    assert set_at_run_time(live.loop.snapshot.money) == [
        f"budget $5.00/h, set at run time on {NAMED}; the configuration says $8.00/h: "
        "`boa budget set 8` goes back",
        f"cap $4.00/h, set at run time on {NAMED}; the configuration says none: "
        "`boa budget set --max-spend none` goes back",
    ]
    asked(live, live.loop.set_budget(8.0, float("inf")))
    assert set_at_run_time(live.loop.snapshot.money) == []
    live.close()


def test_a_cap_taken_away_at_run_time_is_said_too(tmp_path: Path) -> None:
    live = begun(tmp_path, max_spend=20.0)
    asked(live, live.loop.set_budget(None, float("inf")))
    live.crash()
    (said,) = set_at_run_time(live.loop.snapshot.money)
    assert said == (
        f"cap none, set at run time on {NAMED}; the configuration says $20.00/h: "
        "`boa budget set --max-spend 20` goes back"
    )
    live.close()


def test_a_cap_of_a_version_that_noted_no_time_is_said_without_one(tmp_path: Path) -> None:
    live = begun(tmp_path)
    asked(live, live.loop.set_budget(None, 4.0))
    assert live.store is not None
    saved = live.store.load().meta["money"]
    del saved["set_at"]
    live.loop.scheduler.purse.load(saved, live.loop.state, live.clock.now())
    (said,) = set_at_run_time(live.loop.scheduler.purse.state(live.loop.state, START))
    assert said.startswith("cap $4.00/h, set at run time; the configuration says none")
    live.close()


def test_a_calendar_that_was_scaled_is_told_of() -> None:
    assert calendar_scaled(12.0, 1.0) == []
    assert calendar_scaled(24.0, 2.0) == [
        "budget $24.00/h over a week: every period of the calendar has 2 times what it says, "
        "by --budget or budget_per_hour"
    ]
