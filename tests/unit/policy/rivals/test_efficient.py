"""Every job on its widest width of at least this efficiency."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import Share
from boa.policy.rivals.autoscale import band
from boa.policy.rivals.efficient import Efficiency
from lone_jobs import Curves, job, share


def efficiency(curves: Curves, width: int) -> float:
    rates = curves.rates("T4", 0)
    assert rates is not None
    return float(rates[0, width] / rates[0, 1] / width)


def is_as_fast(curves: Curves, width: int, other: int) -> bool:
    rates = curves.rates("T4", 0)
    assert rates is not None
    return bool(rates[0, width] >= rates[0, other] * (1 - 1e-12))


@given(parallel=st.floats(0.0, 1.0), target=st.floats(0.05, 0.99))
def test_it_is_the_widest_width_of_this_efficiency(parallel: float, target: float) -> None:
    curves = Curves(parallel)
    width = share(Efficiency(target), job(curves)).width
    assert efficiency(curves, width) >= target - 1e-6
    faster = [k for k in range(width + 1, 17) if not is_as_fast(curves, width, k)]
    assert all(efficiency(curves, wider) < target for wider in faster)


@given(parallel=st.floats(0.3, 1.0), target=st.floats(0.1, 0.9), held=st.integers(1, 16))
def test_a_running_job_is_left_alone_within_the_band(
    parallel: float, target: float, held: int
) -> None:
    curves = Curves(parallel)
    found = share(Efficiency(target), job(curves, held=("T4", held)))
    off = abs(efficiency(curves, held) - target)
    if off < band(target) - 1e-6:
        assert found.width == held
    elif off > band(target) + 1e-6:
        assert found.width == share(Efficiency(target), job(curves)).width


def test_it_is_asked_again_when_an_epoch_leaves_the_band() -> None:
    curves = Curves(0.5, 0.5, 0.5, 0.99)
    one = job(curves, (1.0,) * 6)
    found = share(Efficiency(0.6), one)
    assert found.until == 3
    there = replace(one, epoch=3, allocation=job(curves, held=("T4", found.width)).allocation)
    assert share(Efficiency(0.6), there).width > found.width


def test_of_several_types_the_fastest_that_is_worth_its_price_is_taken() -> None:
    """An A100 at four times the price and five times the speed is the measure; a T4 does 0.8."""
    curves = Curves(0.5, T4=1.0, A100=5.0)
    assert share(Efficiency(0.99), job(curves), "T4", "A100") == Share("A100", 1)
    dear = Curves(0.5, T4=1.0, A100=3.0)
    assert share(Efficiency(0.99), job(dear), "T4", "A100") == Share("T4", 1)
    assert share(Efficiency(0.7), job(dear), "T4", "A100") == Share("A100", 1)


@pytest.mark.parametrize("target", [0.2, 0.5, 0.9])
def test_who_scales_without_loss_gets_all_that_it_can_use(target: float) -> None:
    assert share(Efficiency(target), job(Curves(1.0))).width == 16
