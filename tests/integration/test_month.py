"""A week of `bench/month.py`: by a calendar, at prices that change, shared by teams."""

import pytest

from _month_world import Study
from month import measured

WITHIN, SUNDAY, WHOLE = 0.08, 0.15, 0.02
"""Of a week's budgets. On its one Sunday fifty jobs come, whose money comes a job at a time."""


@pytest.mark.slow
def test_in_a_week_every_budget_is_kept_and_no_cap_is_crossed() -> None:
    study = Study(days=7, rate=4, swing=-0.25, night=1.6, factor=1.7, pacing_h=24.0, seed=1)
    found = measured(study)
    assert [of for of in found.judged(WITHIN) if not (of.kept or of.budget == "sunday")] == []
    off = {of.budget: abs(of.off) for of in found.judged(WITHIN)}
    assert off["sunday"] < SUNDAY
    assert off["whole"] < WHOLE
    assert [cap for cap in found.caps() if not cap.kept] == []
    assert found.books.peak == pytest.approx(found.report.rental.peak), "as the ledger has it"
