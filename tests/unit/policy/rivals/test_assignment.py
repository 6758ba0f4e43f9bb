"""Sia's integer program on problems whose answer can be read off, and against HiGHS's own."""

from dataclasses import replace

import highspy
import numpy as np
import pytest

from boa.errors import BoaError
from boa.model.speedup import Floats
from boa.policy.rivals import assignment
from boa.policy.rivals.assignment import Assignment, assign
from boa.solver.tables import Ints

COUNTS = np.array([1, 2, 4, 8, 12, 16, 24, 32, 48, 64])


def problem(
    costs: list[list[float]], gpus: list[int], capacity: list[int], kinds: list[int] | None = None
) -> Assignment:
    return Assignment(
        costs=np.array(costs, dtype=np.float64),
        gpus=np.array(gpus, dtype=np.intp),
        kinds=np.array([0] * len(gpus) if kinds is None else kinds, dtype=np.intp),
        capacity=np.array(capacity),
        unallocated=1.1,
    )


def random_problem(seed: int, jobs: int, types: int, decimals: int, classes: int) -> Assignment:
    """Concave goodput, less of it after a rescaling: costs as Sia makes them, and rounds them."""
    rng = np.random.default_rng(seed)
    gpus, kinds = np.tile(COUNTS, types), np.repeat(np.arange(types), len(COUNTS))
    speed = rng.choice([1.0, 1.5, 2.5], (classes, types))[:, kinds]
    goodput = np.minimum(speed * gpus ** rng.uniform(0.3, 1.0, (classes, 1)), 20.0)
    goodput = goodput[rng.integers(0, classes, jobs)]
    here = rng.integers(0, len(gpus), jobs)
    rescaled = np.repeat(rng.uniform(0.6, 1.0, (jobs, 1)), len(gpus), axis=1)
    rescaled[np.arange(jobs), here] = 1.0
    costs = np.round((goodput * rescaled) ** -0.5, decimals)
    costs[gpus > rng.choice([8, 16, 64], (jobs, 1))] = np.inf
    capacity = rng.integers(10, 120, types)
    return Assignment(costs=costs, gpus=gpus, kinds=kinds, capacity=capacity, unallocated=1.1)


def total(given: Assignment, chosen: Ints) -> float:
    some = np.nonzero(chosen >= 0)[0]
    return float(given.costs[some, chosen[some]].sum() + given.unallocated * (chosen < 0).sum())


def fits(given: Assignment, chosen: Ints) -> bool:
    some = chosen[chosen >= 0]
    used = np.bincount(given.kinds[some], given.gpus[some], len(given.capacity))
    return bool((used <= given.capacity).all())


def plain_optimum(given: Assignment, gap: float) -> float:
    """The whole program, nothing dropped, through HiGHS."""
    jobs = len(given.costs)
    job, column = np.nonzero(np.isfinite(given.costs))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(job), jobs + len(given.capacity)
    saved: Floats = given.costs[job, column] - given.unallocated
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = saved, np.zeros(len(job)), np.ones(len(job))
    lp.row_lower_ = np.full(lp.num_row_, -np.inf)
    lp.row_upper_ = np.concatenate([np.ones(jobs), given.capacity])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.arange(0, 2 * len(job) + 1, 2).astype(np.int32)
    rows = np.column_stack([job, jobs + given.kinds[column]])
    lp.a_matrix_.index_ = rows.ravel().astype(np.int32)
    lp.a_matrix_.value_ = np.column_stack([np.ones(len(job)), given.gpus[column]]).ravel()
    lp.integrality_ = [highspy.HighsVarType.kInteger] * len(job)
    lp.offset_ = given.unallocated * jobs
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", gap)
    solver.passModel(lp)
    solver.run()
    return float(solver.getInfo().objective_function_value)


def test_everyone_gets_the_best_if_everything_fits() -> None:
    given = problem([[0.9, 0.5, 0.3], [0.8, 0.7, 0.9]], [1, 2, 4], [6])
    assert assign(given).tolist() == [2, 1]


def test_scarce_gpus_go_where_they_save_most() -> None:
    given = problem([[0.9, 0.5], [0.9, 0.2], [0.9, 0.85]], [1, 2], [4])
    assert assign(given).tolist() == [1, 1, -1]


def test_types_have_each_their_own_gpus() -> None:
    given = problem([[0.5, 0.6], [0.5, 0.9]], [2, 2], [2, 2], kinds=[0, 1])
    assert assign(given).tolist() == [1, 0]


def test_a_job_without_any_allowed_configuration_gets_none() -> None:
    inf = float("inf")
    assert assign(problem([[inf, inf], [0.9, 0.5]], [1, 2], [1])).tolist() == [-1, 0]


def test_a_configuration_dearer_than_none_is_not_chosen() -> None:
    assert assign(problem([[1.2, 1.1]], [1, 2], [4])).tolist() == [-1]


def test_equal_costs_take_fewer_gpus_then_the_lower_index() -> None:
    given = problem([[0.5, 0.5, 0.5]], [4, 2, 2], [8])
    assert assign(given).tolist() == [1]


def test_no_jobs_no_configurations_and_no_gpus_are_answered() -> None:
    assert assign(problem([], [1], [4])).tolist() == []
    assert assign(problem([[], []], [], [4])).tolist() == [-1, -1]
    assert assign(problem([[0.5], [0.4]], [1], [0])).tolist() == [-1, -1]


def test_a_required_job_gets_something_though_others_would_save_more() -> None:
    given = problem([[1.3, 1.2], [0.3, 0.2]], [1, 2], [2])
    assert assign(given).tolist() == [-1, 1]
    assert assign(given, required=np.array([True, False])).tolist() == [0, 0]


def test_required_jobs_that_do_not_fit_are_an_error() -> None:
    given = problem([[0.9], [0.9]], [2], [3])
    with pytest.raises(BoaError, match="required jobs do not fit"):
        assign(given, required=np.array([True, True]))


@pytest.mark.parametrize("seed", range(12))
def test_the_objective_agrees_with_the_plain_program(seed: int) -> None:
    """Rounded as Sia rounds, full of ties; and to nine decimals, without any."""
    decimals = (1, 2, 9)[seed % 3]
    given = random_problem(seed, 24, 1 + seed % 3, decimals, classes=(3, 24)[seed % 2])
    chosen = assign(given)
    assert fits(given, chosen)
    assert total(given, chosen) == pytest.approx(plain_optimum(given, 1e-6), rel=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_jobs_and_types_all_alike_agree_with_the_plain_program(seed: int) -> None:
    given = random_problem(seed, 12, 2, 2, classes=1)
    given.costs[:, :] = np.tile(given.costs[0, : len(COUNTS)], (12, 2))
    chosen = assign(given)
    assert fits(given, chosen)
    assert total(given, chosen) == pytest.approx(plain_optimum(given, 1e-6), rel=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_highs_answers_where_the_search_gives_up(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = random_problem(seed, 16, 3, 2, classes=16)
    expected = total(given, assign(given))
    monkeypatch.setattr(assignment, "_WIDTHS", ())
    chosen = assign(given)
    assert fits(given, chosen)
    assert total(given, chosen) == pytest.approx(expected, rel=2e-4)


def test_a_narrow_search_widens_until_it_has_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment, "_WIDTHS", (1, 2, 4, 2000))
    for seed in range(6):
        given = random_problem(seed, 20, 2, 2, classes=4)
        chosen = assign(given)
        assert total(given, chosen) == pytest.approx(plain_optimum(given, 1e-6), rel=1e-4)


def test_equal_problems_get_equal_answers() -> None:
    for seed in range(5):
        first = assign(random_problem(seed, 40, 3, 2, classes=5))
        assert np.array_equal(first, assign(random_problem(seed, 40, 3, 2, classes=5)))


def test_costs_far_below_one_are_told_apart() -> None:
    given = problem([[9e-8], [2e-8], [5e-8]], [2], [4])
    assert assign(replace(given, unallocated=1e-7)).tolist() == [-1, 0, 0]
