"""The genetic search where the answer is known."""

import os
import shutil
import sysconfig

import numpy as np
import pytest

from boa.policy.rivals.genetic import COMPILED, Counts, Search, evolve, fitness

both_versions = pytest.mark.parametrize("compiled", [True, False], ids=["C", "NumPy"])


def cluster(
    current: list[list[int]], *, rescale: float = 1.0, exponent: float = 0.8, gpus: int = 4
) -> Search:
    """Equal jobs that are slower across nodes."""
    held = np.array(current, dtype=np.intp)
    jobs, nodes = held.shape
    one = np.arange(nodes * gpus + 1) ** exponent
    return Search(
        rates=np.tile(np.stack([one, 0.7 * one]), (jobs, 1, 1)),
        current=held,
        rescale_factors=np.full(jobs, rescale),
        max_gpus=np.full(jobs, nodes * gpus),
        min_gpus=np.ones(jobs, dtype=np.intp),
        capacity=np.full(nodes, gpus),
    )


def answer(search: Search, *, compiled: bool, seed: int = 1) -> Counts:
    nothing = np.zeros((0, *search.current.shape), dtype=np.intp)
    found: Counts = evolve(search, nothing, seed=seed, compiled=compiled)[0]
    return found


def test_a_machine_with_a_compiler_has_the_kernel() -> None:
    if os.environ.get("BOA_PURE_PYTHON"):
        pytest.skip("BOA_PURE_PYTHON asks for NumPy")
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    assert (shutil.which(compiler) is not None) == COMPILED


@both_versions
def test_equal_jobs_get_a_whole_node_each(compiled: bool) -> None:
    found = answer(cluster([[0] * 3] * 3), compiled=compiled)
    assert sorted(map(sorted, found.tolist())) == [[0, 0, 4]] * 3


@both_versions
def test_a_job_alone_takes_the_cluster_if_that_is_faster(compiled: bool) -> None:
    assert answer(cluster([[0, 0]]), compiled=compiled).tolist() == [[4, 4]]
    slow = cluster([[0, 0]], exponent=0.3)  # 0.7 · 2 ** 0.3 < 1
    assert sorted(answer(slow, compiled=compiled).tolist()[0]) == [0, 4]


@both_versions
def test_jobs_stay_where_they_are_if_moving_gains_less_than_it_costs(compiled: bool) -> None:
    uneven = [[4, 0, 0], [0, 3, 0], [0, 0, 3]]
    search = cluster(uneven, rescale=0.7)  # (3 / 4) ** 0.8 = 0.79
    assert answer(search, compiled=compiled).tolist() == uneven
    free = answer(cluster(uneven, rescale=0.95), compiled=compiled)
    assert free.tolist() == [[4, 0, 0], [0, 4, 0], [0, 0, 4]]


@both_versions
def test_a_free_rescaling_is_not_made_for_nothing(compiled: bool) -> None:
    settled = [[0, 4, 0], [0, 0, 4], [4, 0, 0]]
    assert answer(cluster(settled), compiled=compiled).tolist() == settled


@both_versions
def test_a_new_job_gets_gpus_though_the_others_rescale_for_it(compiled: bool) -> None:
    search = cluster([[4, 0], [0, 4], [0, 0]], rescale=0.5)
    found = answer(search, compiled=compiled)
    assert (found.sum(axis=1) > 0).all()
    assert (found != search.current).any(axis=1).sum() == 2  # one of the others is left alone


@both_versions
def test_with_fewer_gpus_than_jobs_all_gpus_are_used(compiled: bool) -> None:
    found = answer(cluster([[0, 0]] * 6, gpus=2), compiled=compiled)
    assert sorted(found.sum(axis=1)) == [0, 0, 1, 1, 1, 1]


@both_versions
def test_a_job_that_a_rescaling_leaves_nothing_still_gets_free_gpus(compiled: bool) -> None:
    """A job of age zero: its factor is zero, and so is its fitness wherever it goes."""
    found = answer(cluster([[4, 0], [0, 0]], rescale=0.0), compiled=compiled)
    assert found[0].tolist() == [4, 0]
    assert found[1].sum() > 0


@both_versions
def test_no_jobs_or_no_nodes_is_an_empty_state(compiled: bool) -> None:
    for jobs, nodes in ((0, 3), (2, 0), (0, 0)):
        search = Search(
            rates=np.zeros((jobs, 2, 1)),
            current=np.zeros((jobs, nodes), dtype=np.intp),
            rescale_factors=np.ones(jobs),
            max_gpus=np.ones(jobs, dtype=np.intp),
            min_gpus=np.ones(jobs, dtype=np.intp),
            capacity=np.full(nodes, 4),
        )
        nothing = np.zeros((0, jobs, nodes), dtype=np.intp)
        found = evolve(search, nothing, seed=0, compiled=compiled)
        assert found.shape == (1, jobs, nodes)
        assert len(fitness(search, found)) == 1


def test_what_the_kernel_cannot_count_is_refused() -> None:
    with pytest.raises(ValueError, match="255"):
        answer(cluster([[0]], gpus=256), compiled=True)
