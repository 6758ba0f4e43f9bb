"""A few damaged stores, as `bench/damage.py` makes and judges them by the hundred."""

from pathlib import Path

import pytest

from damage import trials

SEED, COUNT = 7, 10


@pytest.mark.slow
def test_damaged_stores_come_up_whole_or_are_refused_with_nothing_missing_unsaid(
    tmp_path: Path,
) -> None:
    done = trials(SEED, COUNT, tmp_path)
    assert len(done) == COUNT
    assert {trial.outcome for trial in done} == {"whole", "refused"}
    assert [trial for trial in done if trial.violations] == []
