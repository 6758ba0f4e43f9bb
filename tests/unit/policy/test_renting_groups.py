"""Groups in which nodes are rented: single nodes for few jobs, by the dozen for thousands."""

import pytest

from boa.policy.market.renting import COARSEST, FINE_JOBS, FINE_NODES, MOST, TOGETHER, coarse


@pytest.mark.parametrize("jobs", [0, 1, 100, FINE_JOBS - 1])
def test_few_jobs_have_nodes_weighed_one_by_one(jobs: int) -> None:
    assert {coarse(jobs, nodes) for nodes in range(FINE_NODES)} == {1}


def test_groups_grow_with_jobs_and_nodes_and_no_further_than_a_limit() -> None:
    by_nodes = [coarse(10, nodes) for nodes in (127, 128, 256, 512, 999)]
    by_jobs = [coarse(jobs, 0) for jobs in (511, 512, 1024, 2048, 4096, 10**6)]
    assert by_nodes == sorted(by_nodes)
    assert by_jobs == sorted(by_jobs)
    assert (by_nodes[0], by_jobs[0], by_jobs[-1]) == (1, 1, COARSEST)


def test_a_thousand_nodes_take_a_few_dozen_groups_and_not_hundreds() -> None:
    count, groups = 0, 0
    while count < MOST:
        count, groups = count + coarse(5000, count) * TOGETHER[-1], groups + 1
    assert groups < 10
    count, groups = 0, 0
    while count < MOST:
        count, groups = count + coarse(100, count) * TOGETHER[-1], groups + 1
    assert groups < 60
