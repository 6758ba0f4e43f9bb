"""How s(k) is learned: the throughput model, its fit, the gain, the best batch size."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.catalogue import known_figures
from boa.catalogue.figures import AdaptiveFigures
from boa.catalogue.formats import read_measurements
from boa.goodput import (
    Convergence,
    DeviceProfile,
    Measurements,
    Throughput,
    accumulation_time,
    efficiency,
    fit_throughput,
    gain,
    iteration_time,
    progress_rates,
    relative_errors,
    step_time,
)
from boa.goodput.fit import _LOW, _residuals

TRUTH = Throughput.of((0.02, 0.0007, 0.12, 0.003, 0.03, 0.006, 2.3))


def measured(model: Throughput, noise: np.ndarray | float = 1.0) -> Measurements:
    """What a profiler would see of this model on nodes of 4."""
    grid = [(-(-k // 4), k, b) for k in (1, 2, 3, 4, 6, 8, 12, 16, 32) for b in (32, 90, 256, 700)]
    nodes, gpus, local = np.array(grid, dtype=float).T
    steps = step_time(model, nodes, gpus, local) * noise
    return Measurements(nodes, gpus, local, steps, accumulation_time(model, local))


def test_without_overlap_compute_and_network_add_up_and_with_much_the_longer_one_counts() -> None:
    nodes, gpus, local = np.array([2.0]), np.array([8.0]), np.array([100.0])
    compute, network = 0.02 + 0.0007 * 100, 0.12 + 0.003 * 6
    alone = Throughput.of((*TRUTH.astuple()[:6], 1.0))
    hidden = Throughput.of((*TRUTH.astuple()[:6], 200.0))
    assert step_time(alone, nodes, gpus, local) == pytest.approx(compute + network)
    assert step_time(hidden, nodes, gpus, local) == pytest.approx(max(compute, network), rel=1e-3)


def test_one_gpu_has_no_network_and_each_pass_costs_one_accumulation() -> None:
    one, local = np.array([1.0]), np.array([64.0])
    compute = accumulation_time(TRUTH, local)
    assert iteration_time(TRUTH, one, one, local, np.array([3.0])) == pytest.approx(4 * compute)


@pytest.mark.parametrize("gamma", [1.0, 1.6, 2.3, 7.0])
def test_the_fit_recovers_the_constants_that_made_the_measurements(gamma: float) -> None:
    truth = Throughput.of((*TRUTH.astuple()[:6], gamma))
    assert fit_throughput(measured(truth)).astuple() == pytest.approx(truth.astuple(), rel=1e-5)


def test_stray_measurements_hardly_move_the_fit() -> None:
    noise = np.ones(36)
    noise[::9] = 5.0
    fitted = fit_throughput(measured(TRUTH, noise))
    assert np.median(relative_errors(fitted, measured(TRUTH))) < 0.02


def test_the_fit_does_not_depend_on_the_order_of_the_measurements() -> None:
    noise = 1 + 0.2 * np.sin(np.arange(36) * 1.7)
    there = measured(TRUTH, noise)
    order = np.argsort(np.sin(np.arange(36)))
    back = Measurements(
        there.nodes[order],
        there.gpus[order],
        there.local_batch[order],
        there.step_s[order],
        there.accumulation_s[order],
    )
    assert fit_throughput(back).astuple() == pytest.approx(
        fit_throughput(there).astuple(), rel=1e-9
    )


def test_a_network_that_was_never_measured_borrows_from_the_one_that_was() -> None:
    points = measured(TRUTH)
    inside = points.nodes == 1
    fitted = fit_throughput(
        Measurements(
            points.nodes[inside],
            points.gpus[inside],
            points.local_batch[inside],
            points.step_s[inside],
            points.accumulation_s[inside],
        )
    )
    assert (fitted.alpha_n, fitted.beta_n) == (fitted.alpha_r, fitted.beta_r)
    assert fitted.alpha_r == pytest.approx(TRUTH.alpha_r, rel=1e-4)


def test_a_single_measurement_is_enough_for_an_answer() -> None:
    one = np.array([1.0])
    fitted = fit_throughput(Measurements(one, one, np.array([32.0]), np.array([0.3]), one * 0.29))
    assert step_time(fitted, one, one, np.array([32.0])) == pytest.approx(0.295, rel=0.05)


@given(x=st.lists(st.floats(-6, 0), min_size=6, max_size=6), gamma=st.floats(0.05, 2))
@settings(max_examples=50, deadline=None)
def test_the_derivatives_of_the_fit_are_the_slopes_of_its_errors(
    x: list[float], gamma: float
) -> None:
    at, points = np.array([*x, gamma]), measured(TRUTH)
    _, jacobian = _residuals(at, points)
    for i in range(len(_LOW)):
        shift = np.zeros(7)
        shift[i] = 1e-6
        slope = (_residuals(at + shift, points)[0] - _residuals(at - shift, points)[0]) / 2e-6
        np.testing.assert_allclose(jacobian[:, i], slope, atol=2e-5)


def converging(sqr: float = 1.0, var: float = 3.0) -> Convergence:
    sizes = (16, 64, 128)
    grad_sqr = np.array([[sqr, sqr, sqr], [sqr / 4, sqr / 2, sqr / 3]])
    return Convergence(sizes, np.array([100.0, 220.0]), grad_sqr, np.full((2, 3), var))


def test_gain_is_one_at_the_smallest_batch_and_never_more_than_proportional() -> None:
    sizes = np.arange(16.0, 129.0)
    gains = gain(converging(), sizes)
    np.testing.assert_allclose(gains[:, 0], 1.0)
    assert np.all(gains <= sizes / 16 + 1e-12)
    assert np.all(efficiency(converging(), sizes) <= 1 + 1e-12)


def test_gain_follows_its_formula_with_statistics_linear_between_the_runs() -> None:
    sqr, var = (0.25 + 0.5) / 2, 3.0
    expected = (var + sqr) / (var * 16 / 40 + sqr)
    assert gain(converging(), np.array([40.0]))[1, 0] == pytest.approx(expected)


def test_without_any_gradient_statistics_a_larger_batch_gains_nothing() -> None:
    assert np.all(gain(converging(0.0, 0.0), np.array([16.0, 128.0])) == 1.0)


def brute_force(convergence: Convergence, device: DeviceProfile, width: int) -> np.ndarray:
    """Every local size and every number of passes, one by one, on nodes of 4."""
    best = np.zeros(len(convergence.progress))
    nodes, gpus = np.array([-(-width // 4)]), np.array([width])
    for local in range(device.min_local_batch, device.max_local_batch + 1):
        for passes in range(convergence.max_batch):
            total = width * local * (passes + 1)
            if not convergence.base_batch <= total <= convergence.max_batch:
                continue
            if width == 1 and total > convergence.base_batch and passes == 0:
                continue
            seconds = iteration_time(
                device.throughput, nodes, gpus, np.array([local]), np.array([passes])
            )
            best = np.maximum(best, gain(convergence, np.array([float(total)]))[:, 0] / seconds)
    return best


@given(
    constants=st.lists(st.floats(1e-4, 2.0), min_size=6, max_size=6),
    gamma=st.floats(1.0, 9.0),
    limits=st.tuples(st.integers(1, 20), st.integers(0, 60)),
    var=st.floats(0.0, 50.0),
)
@settings(max_examples=30, deadline=None)
def test_the_best_batch_is_the_best_of_all_local_sizes_and_passes(
    constants: list[float], gamma: float, limits: tuple[int, int], var: float
) -> None:
    convergence = converging(var=var)
    device = DeviceProfile(
        throughput=Throughput.of((*constants, gamma)),
        min_local_batch=limits[0],
        max_local_batch=sum(limits),
        max_gpus=9,
    )
    rates = progress_rates(convergence, device, gpus_per_node=4, max_gpus=9)
    for width in (1, 2, 3, 5, 8, 9):
        expected = brute_force(convergence, device, width)
        np.testing.assert_allclose(rates[:, width - 1], expected, rtol=1e-12)


def test_a_width_that_no_batch_fits_has_rate_zero() -> None:
    device = DeviceProfile(throughput=TRUTH, min_local_batch=40, max_local_batch=64, max_gpus=4)
    rates = progress_rates(converging(), device, gpus_per_node=4, max_gpus=4)
    assert np.all(rates[:, 1:3] > 0)
    assert np.all(rates[:, 3] == 0)


def test_the_largest_model_has_a_rate_in_every_epoch_at_every_width() -> None:
    model = known_figures("sia").applications["imagenet"]
    assert isinstance(model, AdaptiveFigures)
    rates = progress_rates(model.convergence, model.devices["T4"], gpus_per_node=4, max_gpus=64)
    assert rates.shape == (90, 64)
    assert np.all(np.isfinite(rates) & (rates > 0))


SUFFIXES = ("aws", "azure", "dgx-ext", "rtx")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_fit_is_no_worse_than_the_reference_fit_of_the_same_step_times(
    shared_data: Path, suffix: str
) -> None:
    reference = json.loads((shared_data / "sia" / "fitted.json").read_text())["apps"]
    for folder in sorted((shared_data / "sia" / "traces").iterdir()):
        points = read_measurements(folder, suffix).merged()
        theirs = Throughput(**reference[folder.name]["perf"][suffix]["params"])
        ours = fit_throughput(points)
        median = np.median(relative_errors(ours, points))
        assert median <= 1.05 * np.median(relative_errors(theirs, points)), folder.name


def test_the_fits_of_every_model_on_every_gpu_type_are_close_on_average(
    shared_data: Path,
) -> None:
    errors = [
        np.median(relative_errors(fit_throughput(points), points))
        for folder in sorted((shared_data / "sia" / "traces").iterdir())
        for suffix in (*SUFFIXES, "quad")
        for points in [read_measurements(folder, suffix).merged()]
    ]
    assert len(errors) == 25
    assert float(np.mean(errors)) < 0.08
