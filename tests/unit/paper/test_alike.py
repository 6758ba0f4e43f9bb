"""Jobs whose epochs are all alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from boa.goodput.efficiency import Convergence, gain
from boa.model.speedup import Floats
from boa.paper.alike import averaged

SIZES = (32, 64, 128, 256)
NOISE = arrays(float, (3, 4), elements=st.floats(0.01, 1e4))


def convergence(noise: Floats, *ends: float) -> Convergence:
    return Convergence(
        batch_sizes=SIZES,
        progress=np.array(ends),
        grad_sqr=np.ones_like(noise),
        grad_var=noise,
    )


@given(NOISE)
def test_a_run_at_any_measured_batch_size_takes_as_many_iterations_as_before(noise: Floats) -> None:
    real = convergence(noise, 10.0, 40.0, 100.0)
    sizes = np.array(SIZES, dtype=float)
    before, after = (
        (each.epoch_progress[:, None] / gain(each, sizes)).sum(axis=0)
        for each in (real, averaged(real))
    )
    assert after == pytest.approx(before, rel=1e-6)


@given(NOISE)
def test_all_epochs_are_the_same(noise: Floats) -> None:
    flat = averaged(convergence(noise, 10.0, 40.0, 100.0))
    gains = gain(flat, np.linspace(32.0, 256.0, 20))
    assert np.ptp(gains, axis=0) == pytest.approx(0.0)
    assert flat.epoch_progress.tolist() == [10.0, 30.0, 60.0]


def test_a_batch_that_is_worth_all_of_its_samples_stays_so() -> None:
    real = convergence(np.full((3, 4), 1e12), 1.0, 2.0, 3.0)
    assert gain(averaged(real), np.array([256.0]))[:, 0] == pytest.approx([8.0] * 3)
