"""A few of the episodes of `bench/campaign.py --virtual`: no work lost, no false reason."""

from collections.abc import Sequence

import pytest

from _campaign.short_of_gpus import table
from _campaign.virtual import Found, run

SEED, EPISODES = 20261119, 18


@pytest.fixture(scope="module")
def found() -> Sequence[Found]:
    return [run(SEED, number) for number in range(EPISODES)]


def violations(found: Sequence[Found]) -> list[tuple[str, str, str]]:
    return [(one.again, kind, text) for one in found for kind, text in one.violations]


@pytest.mark.slow
def test_short_clusters_lose_no_work_silently_starve_no_job_and_give_no_false_reason(
    found: Sequence[Found],
) -> None:
    assert not violations(found), table(found)
    assert sum(one.jobs for one in found) > 5 * EPISODES
    assert sum(one.stops["ours"] for one in found) > 0, "or it shows nothing"
    assert {one.cluster for one in found} == {"1×2", "2×2", "1×4"}


def test_an_episode_repeats_from_its_seed_and_number() -> None:
    assert run(SEED, 3) == run(SEED, 3)
