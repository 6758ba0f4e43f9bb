"""The two-rate Poisson process has the long-run rate and the C² that were asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.catalogue.arrivals import (
    MAX_CV2,
    Bursts,
    spec_of_mix,
    synthetic_jobs,
    unit_arrivals,
)
from boa.model.speedup import Floats

BURSTY = st.floats(1.001, MAX_CV2)


def drawn(cv2: float, jobs: int, seed: int) -> Floats:
    """Arrival times at rate 1."""
    times, phases = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    chunks, have = [], 0
    for chunk in unit_arrivals(cv2, times, phases):
        chunks.append(chunk)
        have += len(chunk)
        if have >= jobs:
            break
    return np.concatenate(chunks)[:jobs]


def moments(process: Bursts) -> tuple[float, float]:
    """E[T] and E[T²] of a time between arrivals, from the matrices of the process alone."""
    rates = np.diag([process.high, process.low])
    out, back = 1 / process.burst, 1 / process.lull
    generator = np.array([[-out, out], [back, -back]])
    stationary = np.array([back, out]) / (out + back)
    at_arrival = stationary @ rates / (stationary @ rates).sum()
    inverse = np.linalg.inv(rates - generator)
    return at_arrival @ inverse @ [1, 1], 2 * at_arrival @ inverse @ inverse @ [1, 1]


@given(BURSTY)
def test_the_process_has_rate_1_and_exactly_the_c2_asked_for(cv2: float) -> None:
    process = Bursts.of(cv2)
    assert 0 < process.low < 1 < process.high
    assert min(process.burst, process.lull) > 0
    first, second = moments(process)
    assert first == pytest.approx(1, rel=1e-6)
    assert second / first**2 - 1 == pytest.approx(cv2, rel=1e-6)
    assert process.rate == pytest.approx(1)
    assert process.cv2 == pytest.approx(cv2)


@given(st.floats(1.1, 100), st.floats(0.001, 0.9), st.floats(0.01, 100), st.floats(0.01, 100))
def test_the_formula_for_c2_holds_for_any_two_rate_process(
    high: float, low: float, burst: float, lull: float
) -> None:
    process = Bursts(high=high, low=low, burst=burst, lull=lull)
    first, second = moments(process)
    assert process.rate == pytest.approx(1 / first)
    assert process.cv2 == pytest.approx(second / first**2 - 1)


@given(BURSTY, st.floats(1.001, 10))
def test_bursts_become_shorter_and_more_intense_as_c2_grows(cv2: float, factor: float) -> None:
    less, more = Bursts.of(cv2), Bursts.of(cv2 * factor)
    assert more.high > less.high
    assert more.low < less.low
    assert more.burst < less.burst


@settings(max_examples=12)
@given(st.sampled_from([1.0, 1.2, 2.0, 2.65, 5.0, 10.0, 20.0]), st.integers(0, 10**6))
def test_a_long_draw_has_the_c2_and_the_rate_asked_for(cv2: float, seed: int) -> None:
    gaps = np.diff(drawn(cv2, 400_000, seed), prepend=0.0)
    assert (gaps >= 0).all()
    assert gaps.mean() == pytest.approx(1, rel=0.06)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(cv2, rel=0.08)


def test_a_draw_begins_in_the_long_run() -> None:
    """As many arrivals in the first stretch as in any other, over many seeds."""
    counts = [int(np.searchsorted(drawn(10.0, 500, seed), 5.0)) for seed in range(600)]
    spread = float(np.std(counts)) / len(counts) ** 0.5
    assert float(np.mean(counts)) == pytest.approx(5.0, abs=4 * spread)


def test_c2_of_1_is_poisson() -> None:
    gaps = np.diff(drawn(1.0, 200_000, seed=3), prepend=0.0)
    longer_than = [float((gaps > t).mean()) for t in (0.1, 0.5, 1.0, 2.0, 4.0)]
    assert longer_than == pytest.approx(np.exp([-0.1, -0.5, -1, -2, -4]), abs=0.005)


@settings(max_examples=10)
@given(
    st.floats(1, 50),
    st.floats(0.1, 1000),
    st.dictionaries(st.sampled_from("abcd"), st.floats(0.05, 1), min_size=1),
)
def test_rates_and_shares_are_those_asked_for(
    cv2: float, rate: float, mix: dict[str, float]
) -> None:
    spec = spec_of_mix(mix, jobs=20_000, arrivals_per_hour=rate, cv2=cv2)
    jobs = list(synthetic_jobs(spec, seed=0))
    assert len(jobs) * 3600 / jobs[-1].arrival_s == pytest.approx(rate, rel=0.2)
    for name, weight in mix.items():
        share = sum(job.application == name for job in jobs) / len(jobs)
        assert share == pytest.approx(weight / sum(mix.values()), abs=0.02)
