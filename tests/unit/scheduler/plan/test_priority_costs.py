"""Costs of each priority, before one is chosen."""

from pathlib import Path

import pytest

from boa.model.job import GpuLimits
from boa.scheduler.plan.preview import for_budget
from boa.scheduler.plan.priority_costs import asked_in_words
from live import Live, config, prior, profile, spec

KNOWN = profile("known", work=(36_000.0,), alpha=0.5, rescale_s=0.0, widest=64)
OTHER = profile("other", work=(7200.0,), alpha=0.8, rescale_s=0.0, widest=64)
LIMITS = GpuLimits(max=64)


def begun(folder: Path, budget: float = 60.0) -> Live:
    priors = {"known": prior(KNOWN, per_hour=2.0), "other": prior(OTHER, per_hour=2.0)}
    settings = config(folder, budget=budget, priors=priors, billing="gpu")
    live = Live(settings, {"known": KNOWN, "other": OTHER})
    live.settle()
    return live


def test_an_urgent_job_takes_half_the_time_for_twice_the_money_where_speed_is_a_root(
    tmp_path: Path,
) -> None:
    live = begun(tmp_path)
    found = live.loop.estimate(spec("known", gpus=LIMITS)).priorities
    urgent, normal, background = found
    assert [one.priority for one in found] == ["urgent", "normal", "background"]
    assert urgent.jct_s is not None
    assert normal.jct_s is not None
    assert urgent.jct_s / normal.jct_s == pytest.approx(0.5, rel=0.2)
    assert urgent.usd / normal.usd == pytest.approx(2.0, rel=0.2)
    assert urgent.others_s / normal.others_s == pytest.approx(urgent.usd / normal.usd)
    assert (background.jct_s, background.usd, background.others_s) == (None, 0.0, 0.0)
    live.close()


def test_why_urgent_is_no_faster_is_said_where_it_is_not(tmp_path: Path) -> None:
    live = begun(tmp_path)
    faster, *_ = live.loop.estimate(spec("known", gpus=LIMITS)).priorities
    held, *others = live.loop.estimate(spec("known", gpus=GpuLimits(max=1))).priorities
    assert faster.note == ""
    assert "no other GPUs that it may have make it faster" in held.note
    assert {one.note for one in others} == {""}
    live.close()


def test_words_are_of_the_priority_that_was_asked_for(tmp_path: Path) -> None:
    live = begun(tmp_path)
    found = live.loop.estimate(spec("known", gpus=LIMITS)).priorities
    assert asked_in_words("normal", found) == ""
    assert asked_in_words("urgent", ()) == "", "where nothing is known"
    assert asked_in_words("urgent", found).startswith("urgent, it takes ")
    assert "nothing is paid for it" in asked_in_words("background", found)
    live.close()


def test_others_are_later_by_what_the_plan_says_of_so_many_dollars_less(tmp_path: Path) -> None:
    live = begun(tmp_path)
    cost = live.loop.estimate(spec("known", gpus=LIMITS)).priorities[1]
    plan = live.loop.snapshot.plan
    assert plan is not None
    less = 0.01 * plan.solution.spend
    slower = for_budget(plan.workload, plan.solution.spend - less).solution.average_jct
    per_usd = (slower - plan.solution.average_jct) / less
    expected = per_usd * cost.class_usd_per_hour
    assert cost.class_others_s == pytest.approx(expected, rel=0.1)
    live.close()


def test_of_a_class_that_nobody_knows_no_costs_are_told(tmp_path: Path) -> None:
    live = begun(tmp_path)
    assert live.loop.estimate(spec("strange")).priorities == ()
    live.close()
