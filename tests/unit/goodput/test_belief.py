"""What is believed of widths that were never run, and how sure that is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.goodput import belief
from strategies import numbers

PER_NODE = 4


def believed(rates: dict[int, float], at: list[int], error: float = 0.0) -> belief.Belief:
    widths = np.array(sorted(rates), dtype=float)
    logs = np.log([rates[int(k)] for k in widths])
    wanted = np.array(at, dtype=float)
    return belief.believed(
        belief.places(wanted, PER_NODE),
        belief.amdahl(wanted),
        logs - belief.amdahl(widths),
        belief.places(widths, PER_NODE),
        np.full(len(widths), error),
    )


curves = st.dictionaries(st.integers(1, 64), numbers(0.5, 50.0), min_size=1, max_size=6)


@given(rates=curves)
def test_what_was_measured_is_believed_for_sure(rates: dict[int, float]) -> None:
    found = believed(rates, sorted(rates))
    assert np.exp(found.mean) == pytest.approx([rates[k] for k in sorted(rates)], rel=1e-3)
    assert (found.sd == 0).all()
    assert found.expected == pytest.approx(found.hoped)


@given(rates=curves)
def test_what_was_never_run_is_expected_slower_than_thought_and_hoped_faster(
    rates: dict[int, float],
) -> None:
    others = [k for k in range(1, 65) if k not in rates]
    found = believed(rates, others)
    assert (found.sd > 0).all()
    assert (found.expected < found.mean).all()
    assert (found.mean < found.hoped).all()


@given(rates=curves, scale=numbers(0.01, 100.0))
def test_in_which_units_rates_are_told_does_not_matter(
    rates: dict[int, float], scale: float
) -> None:
    at = list(range(1, 65))
    one = believed(rates, at)
    other = believed({k: rate * scale for k, rate in rates.items()}, at)
    assert other.mean - one.mean == pytest.approx(np.full(64, np.log(scale)))
    assert other.sd == pytest.approx(one.sd)


def test_one_measured_width_is_followed_by_what_classes_usually_do() -> None:
    found = believed({1: 10.0}, [1, 2, 4, 8])
    rates = np.exp(found.mean)
    assert rates == pytest.approx(10.0 * np.exp(belief.amdahl(np.array([1.0, 2.0, 4.0, 8.0]))))
    assert (np.diff(found.sd) > 0).all(), "the further, the less is known"


@pytest.mark.parametrize("size", [0.2, 0.3])
def test_predictions_that_are_off_are_better_for_their_neighbours(size: float) -> None:
    """A class that scales otherwise than the prior has it: half of the error goes, or more."""
    widths = np.arange(1.0, 65.0)
    truth = np.log(widths) - np.log1p(0.02 * (widths - 1.0)) - 0.3 * (widths > PER_NODE)
    raw, smooth = [], []
    for seed in range(50):
        noise = size * np.random.default_rng(seed).standard_normal(64)
        rates = {int(k): float(r) for k, r in zip(widths, np.exp(truth + noise), strict=True)}
        found = believed(rates, list(range(1, 65)), size)
        raw.append(np.sqrt((noise**2).mean()))
        smooth.append(np.sqrt(((found.mean - truth) ** 2).mean()))
    assert np.mean(smooth) < 0.5 * np.mean(raw)


def test_who_plans_with_expectations_is_not_cursed_by_choosing_the_best_of_many() -> None:
    """The curve is drawn from the prior; of 64 noisy predictions the most efficient is chosen."""
    widths, size = np.arange(1.0, 65.0), 0.3
    raw: list[float] = []
    smooth: list[float] = []
    places = belief.places(widths, PER_NODE)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        steps = belief.STEP * np.sqrt(np.diff(places, prepend=0.0)) * rng.standard_normal(64)
        truth = belief.amdahl(widths) + belief.SLOPE * rng.standard_normal() * places
        truth = truth + np.cumsum(steps)
        seen = truth + size * rng.standard_normal(64)
        rates = {int(k): float(r) for k, r in zip(widths, np.exp(seen), strict=True)}
        found = believed(rates, list(range(1, 65)), size)
        of_use = np.log(widths) * 0.7
        for which, errors in ((seen, raw), (found.mean, smooth)):
            best = int(np.argmax(which - of_use))
            errors.append(which[best] - truth[best])
    assert np.mean(raw) > 0.2
    assert abs(np.mean(smooth)) < 0.03


def test_between_two_widths_the_bridge_is_widest_in_the_middle() -> None:
    known = np.array([0.0, 2.0])
    found = belief.bridged(known, np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0]))
    assert found == pytest.approx([0.0, 0.375, 0.5, 0.375, 0.0, 1.0])
