"""Gavel's programs against what can be worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.speedup import Floats
from boa.policy.rivals.time_shares import Contest, fair_finish, max_min, max_sum, symmetric

RATE = st.floats(0.1, 100.0)
JOBS = st.lists(st.tuples(RATE, st.integers(1, 8)), min_size=1, max_size=6)


def contest(
    rates: list[list[float]],
    widths: list[int],
    gpus: list[float],
    left: list[float] | None = None,
    age: list[float] | None = None,
) -> Contest:
    work = np.array(left or [1000.0] * len(widths))
    return Contest(
        rates=np.array(rates),
        widths=np.array(widths),
        gpus=np.array(gpus),
        left=work,
        whole=work,
        age=np.array(age or [0.0] * len(widths)),
        start_s=np.zeros(len(widths)),
    )


def check_feasible(of: Contest, shares: Floats) -> None:
    assert (shares >= 0).all()
    assert (shares.sum(axis=1) <= 1 + 1e-6).all()
    assert ((shares * of.widths[:, None]).sum(axis=0) <= of.gpus * (1 + 1e-6) + 1e-6).all()
    assert not shares[of.rates == 0].any()


@given(jobs=JOBS, gpus=st.integers(1, 16))
def test_on_one_type_most_progress_is_a_knapsack(jobs: list[tuple[float, int]], gpus: int) -> None:
    of = contest([[rate] for rate, _ in jobs], [width for _, width in jobs], [float(gpus)])
    shares = max_sum(of)
    check_feasible(of, shares)
    left, best = float(gpus), 0.0
    for rate, width in sorted(jobs, key=lambda job: -job[0] / job[1]):
        part = min(1.0, left / width)
        left, best = left - part * width, best + part * rate
    assert (shares * of.rates).sum() == pytest.approx(best, rel=1e-6)


def test_jobs_go_where_they_are_relatively_fastest() -> None:
    of = contest([[1.0, 10.0], [1.0, 2.0]], [1, 1], [1.0, 1.0])
    assert max_sum(of).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@given(jobs=JOBS, gpus=st.integers(1, 16))
def test_on_one_type_the_worst_off_have_what_can_be_had(
    jobs: list[tuple[float, int]], gpus: int
) -> None:
    """By hand: everybody has z times his part, as far as GPUs and time allow."""
    widths = np.array([width for _, width in jobs])
    of = contest([[rate] for rate, _ in jobs], widths.tolist(), [float(gpus)])
    shares = max_min(of)
    check_feasible(of, shares)
    part = min(gpus / len(jobs), 1.0)
    worst = ((shares[:, 0] * widths) / part).min()
    assert worst == pytest.approx(min(gpus / (part * len(jobs)), widths.min() / part), rel=1e-6)


@given(
    jobs=st.lists(st.tuples(RATE, st.integers(1, 4), st.floats(0, 1e4)), min_size=1, max_size=5),
    seed=st.integers(0, 2**32 - 1),
)
def test_nothing_else_is_fairer(jobs: list[tuple[float, int, float]], seed: int) -> None:
    of = contest(
        [[rate, rate / 2] for rate, _, _ in jobs],
        [width for _, width, _ in jobs],
        [4.0, 4.0],
        age=[age for *_, age in jobs],
    )
    alone = of.whole / of.split(of.widths)

    def worst(shares: Floats) -> float:
        speeds = (shares * of.rates).sum(axis=1)
        return float(((of.age + of.left / np.maximum(speeds, 1e-12)) / alone).max())

    shares = fair_finish(of)
    check_feasible(of, shares)
    other = np.random.default_rng(seed).random(shares.shape)
    other /= max(
        1.0, other.sum(axis=1).max(), float((other * of.widths[:, None]).sum(axis=0).max() / 4)
    )
    assert worst(shares) <= 1.011 * worst(other)


def test_a_job_that_fits_nowhere_keeps_nobody_from_running() -> None:
    of = contest([[0.0], [1.0]], [8, 1], [4.0])
    for objective in (max_sum, max_min, fair_finish):
        assert objective(of)[1, 0] == pytest.approx(1.0)


def test_equal_jobs_are_treated_equally_if_asked() -> None:
    of = contest([[1.0], [1.0], [2.0]], [4, 4, 1], [5.0])
    shares = max_sum(of)
    assert sorted(shares[:, 0].tolist()) == pytest.approx([0.0, 1.0, 1.0])
    fair = symmetric(of, shares)
    assert fair[:, 0].tolist() == pytest.approx([0.5, 0.5, 1.0])
    check_feasible(of, fair)
