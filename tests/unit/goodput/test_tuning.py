"""The batch size that a job runs at."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.goodput.throughput import Throughput, iteration_time
from boa.goodput.tuning import (
    GRID,
    Limits,
    Setting,
    best_setting,
    best_settings,
    first_setting,
    gains_of,
    grid,
    rate_table,
)
from boa.model.speedup import Floats

LIMITS = Limits(base_batch=128, max_batch=1024, min_local=32, max_local=256)
MODEL = Throughput.of([0.05, 0.002, 0.4, 0.01, 0.2, 0.01, 1.3])
NOISY = gains_of(128, 1.0, 9.0)
"""A large variance: larger batches are worth almost as much more."""


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    least = draw(st.integers(1, 64))
    base = draw(st.integers(least, 512))
    return Limits(
        base_batch=base,
        max_batch=draw(st.integers(base, 4096)),
        min_local=least,
        max_local=draw(st.integers(least, 512)),
    )


@given(limit=limits(), widest=st.integers(1, 16))
def test_candidates_are_within_the_limits(limit: Limits, widest: int) -> None:
    options = grid(limit, widest)
    assert options.total.shape == (widest, GRID)
    allowed = options.allowed > 0
    local, passes, total = options.local_batch, options.passes, options.total
    assert (total == np.arange(1, widest + 1)[:, None] * local * (passes + 1)).all()
    assert ((limit.min_local <= local) & (local <= limit.max_local))[allowed].all()
    assert (total <= limit.max_batch)[allowed].all()
    assert (passes >= 0).all()
    # On one GPU more than B0 needs several passes, or its variance could not be told.
    assert (passes[0] >= 1)[total[0] > limit.base_batch].all()


@given(limit=limits())
def test_no_width_beyond_the_most_has_candidates(limit: Limits) -> None:
    options = grid(limit, limit.max_gpus + 1)
    assert not options.allowed[limit.max_gpus].any()


def test_the_first_setting_is_the_base_batch_or_the_least_on_every_gpu() -> None:
    assert first_setting(LIMITS, 1) == Setting(128, 0)
    assert first_setting(LIMITS, 4) == Setting(32, 0)
    assert first_setting(LIMITS, 8) == Setting(32, 0)
    assert first_setting(LIMITS, 8).total(8) == 256
    assert first_setting(LIMITS, 1, 1024) == Setting(256, 3)
    assert first_setting(LIMITS, 1, 200) == Setting(100, 1), "more than B0 on one GPU"
    assert first_setting(LIMITS, 2, 1024) == Setting(256, 1)


def rate(setting: Setting, *, gpus: int, nodes: int) -> float:
    values = map(np.float64, (nodes, gpus, setting.local_batch, setting.passes))
    seconds = iteration_time(MODEL, *values)  # type: ignore[arg-type]
    worth = NOISY(np.array([float(setting.total(gpus))]))
    return float(worth[0] / seconds)


@pytest.mark.parametrize(("gpus", "nodes"), [(1, 1), (2, 1), (4, 1), (4, 2), (8, 2), (16, 4)])
def test_the_best_setting_is_the_best_of_all_candidates(gpus: int, nodes: int) -> None:
    found = best_setting(MODEL, NOISY, LIMITS, nodes=nodes, gpus=gpus)
    options = grid(LIMITS, gpus)
    row = zip(options.local_batch[-1], options.passes[-1], options.allowed[-1], strict=True)
    candidates = [Setting(int(local), int(passes)) for local, passes, allowed in row if allowed]
    assert found in candidates
    assert rate(found, gpus=gpus, nodes=nodes) == pytest.approx(
        max(rate(setting, gpus=gpus, nodes=nodes) for setting in candidates)
    )


def test_the_table_has_the_best_rate_of_every_width() -> None:
    table = rate_table(MODEL, NOISY, LIMITS, 16)
    assert table.shape == (2, 17)
    assert (table[:, 0] == 0).all()
    assert table[0, 1] == table[1, 1], "one GPU is never across nodes"
    for gpus in (1, 3, 8, 16):
        for nodes in (1, 2):
            best = best_setting(MODEL, NOISY, LIMITS, nodes=nodes, gpus=gpus)
            assert table[nodes - 1, gpus] == pytest.approx(rate(best, gpus=gpus, nodes=nodes))


def test_every_epoch_has_its_own_setting() -> None:
    def gains(total: Floats) -> Floats:
        """An epoch in which a larger batch is worth nothing, and one in which it is."""
        return np.stack([np.ones_like(total), NOISY(total)])

    calm, noisy = best_settings(MODEL, gains, LIMITS, nodes=1, gpus=4)
    assert calm.total(4) == 128
    assert noisy == best_setting(MODEL, NOISY, LIMITS, nodes=1, gpus=4)
    assert noisy.total(4) > 128


def test_gain_is_one_at_the_base_batch_and_at_most_the_batch_size() -> None:
    sizes = np.array([128.0, 256.0, 512.0, 1024.0])
    found = NOISY(sizes)
    assert found[0] == 1.0
    assert (np.diff(found) > 0).all()
    assert (found <= sizes / 128).all()
    assert found[1] == pytest.approx(10 / (9 / 2 + 1))
    assert gains_of(128, 0.0, 0.0)(sizes).tolist() == [1.0] * 4, "statistics that say nothing"
