"""A week of `bench/month.py`: by a calendar, at prices that change, shared by teams."""

import pytest

from _month_world import Study
from month import measured

WITHIN = 0.05
"""Of a week's budgets: half a day of money is carried over at its end, and few jobs come."""


@pytest.mark.slow
def test_in_a_week_every_budget_is_kept_and_no_cap_is_crossed() -> None:
    study = Study(days=7, rate=4, swing=-0.25, night=1.6, factor=1.7, pacing_h=24.0, seed=1)
    found = measured(study)
    assert [of for of in (*found.judged(WITHIN), *found.caps()) if not of.kept] == []
    assert found.books.peak == pytest.approx(found.report.rental.peak)
