"""Step times between and beyond what was measured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.goodput.measured import FittedTimes, MeasuredTimes, smallest_rotation
from boa.goodput.throughput import Throughput, accumulation_time, step_time, times_on
from boa.goodput.timing import Curve

ONE = Curve.of([(8, 1.0, 0.8), (16, 1.5, 1.3), (32, 3.0, 2.8)])


def flat(seconds: float) -> Curve:
    return Curve.of([(8, seconds, seconds / 2), (32, seconds, seconds / 2)])


TIMES = MeasuredTimes(
    placements={(4,): flat(7.0), (1, 3): flat(9.0)},
    counts={
        1: {1: flat(1.0), 2: flat(2.0), 4: flat(4.0)},
        2: {2: flat(3.0), 8: flat(6.0)},
        4: {16: flat(10.0)},
    },
)


def test_a_measured_placement_is_interpolated_in_the_batch_size() -> None:
    times = MeasuredTimes(placements={(1,): ONE}, counts={1: {1: flat(99.0)}})
    assert times.times((1,), 8) == (1.0, 0.8)
    assert times.times((1,), 12) == pytest.approx((1.25, 1.05))
    assert times.times((1,), 24) == pytest.approx((2.25, 2.05))


def test_a_batch_smaller_than_any_measured_takes_as_long_as_the_smallest() -> None:
    assert ONE.at(1) == ONE.at(8)


def test_a_larger_batch_than_measured_only_computes_longer() -> None:
    step, accumulation = ONE.at(48)
    assert accumulation == pytest.approx(2.8 * 48 / 32)
    assert step - accumulation == pytest.approx(3.0 - 2.8), "synchronising takes no longer"


def test_several_measurements_of_a_batch_size_are_averaged() -> None:
    curve = Curve.of([(16, 3.0, 2.0), (8, 1.0, 0.5), (16, 5.0, 4.0)])
    assert curve.at(16) == (4.0, 3.0)
    assert curve.at(8) == (1.0, 0.5)


@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=5), by=st.integers(0, 4))
def test_rotations_are_the_same_placement(shape: list[int], by: int) -> None:
    turned = (*shape[by:], *shape[:by])
    rotations = [(*shape[n:], *shape[:n]) for n in range(len(shape))]
    assert smallest_rotation(turned) == smallest_rotation(tuple(shape)) == min(rotations)
    assert TIMES.times(turned, 8) == TIMES.times(tuple(shape), 8)


def test_a_measured_placement_goes_before_its_counts() -> None:
    assert TIMES.times((4,), 8)[0] == 7.0
    assert TIMES.times((3, 1), 8)[0] == 9.0
    assert TIMES.times((2, 2), 8)[0] == pytest.approx(3.0 + (6.0 - 3.0) * 2 / 6), "not measured"


@pytest.mark.parametrize(
    ("shape", "step"),
    [
        ((2,), 2.0),  # measured
        ((3,), 3.0),  # half way between 2 and 4 GPUs
        ((8,), 4.0),  # more GPUs on a node than measured: the nearest
        ((4, 4), 6.0),
        ((2, 3), 4.5),  # half way between 2 and 8 GPUs on two nodes
        ((4, 4, 4), 8.0),  # 12 GPUs: 6 on two nodes, 10 on four; three lie between
        ((4,) * 8, 10.0),  # more nodes than measured: the nearest
    ],
)
def test_other_placements_go_by_their_nodes_and_gpus(shape: tuple[int, ...], step: float) -> None:
    assert TIMES.times(shape, 8) == pytest.approx((step, step / 2))


def test_where_nothing_was_measured_the_fit_is_the_truth() -> None:
    times = FittedTimes(Throughput.of([0.1, 0.01, 0.5, 0.1, 0.2, 0.05, 1.0]))
    assert times.times((1,), 10) == pytest.approx((0.2, 0.2))
    assert times.times((4,), 10) == pytest.approx((0.2 + 0.2 + 2 * 0.05, 0.2))
    assert times.times((2, 2), 10) == pytest.approx((0.2 + 0.5 + 2 * 0.1, 0.2))
    assert np.isscalar(times.times((1,), 10)[0])


@pytest.mark.parametrize("gamma", [1.0, 1.7, 9.5])
@pytest.mark.parametrize(("nodes", "gpus"), [(1, 1), (1, 2), (2, 2), (1, 4), (3, 9), (16, 64)])
def test_number_by_number_a_fit_is_what_it_is_as_arrays(
    nodes: int, gpus: int, gamma: float
) -> None:
    model = Throughput.of([0.05, 0.004, 0.06, 0.006, 0.02, 0.002, gamma])
    batches = np.array([1.0, 7.0, 40.0, 512.0])
    where = np.full(4, float(nodes)), np.full(4, float(gpus))
    found = np.array([times_on(model, nodes, gpus, batch) for batch in batches.tolist()])
    assert found[:, 0] == pytest.approx(step_time(model, *where, batches), rel=1e-14)
    assert found[:, 1] == pytest.approx(accumulation_time(model, batches), rel=1e-14)
