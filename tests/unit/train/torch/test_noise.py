"""The gradient's noise as it is measured, against what it is known to be."""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import noise_ranks
from boa.train.torch.noise import LEAST, MEMORY, NoiseMeter, Statistics, _of_parts
from boa.train.torch.ranks import Ranks

CPU = torch.device("cpu")
ALONE = Ranks(0, 1, 0, 1, CPU)
CASES = {case.name: case for case in noise_ranks.cases()}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What four real processes have measured, by rank."""
    folder: Path = tmp_path_factory.mktemp("ranks")
    return noise_ranks.launch(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_estimate_is_within_a_fifth_of_a_direct_one(
    measured: list[dict[str, Any]], name: str
) -> None:
    found = measured[0][name]
    assert found["scale"] == pytest.approx(1.0, abs=0.2)
    assert found["noise"] == pytest.approx(1.0, abs=0.1)
    assert found["sqr"] == pytest.approx(1.0, abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_all_ranks_have_the_same_estimate(measured: list[dict[str, Any]], name: str) -> None:
    ranks = len(CASES[name].shares)
    assert all(measured[rank][name] == measured[0][name] for rank in range(ranks))


@pytest.mark.slow
@pytest.mark.parametrize(("world", "way"), [(2, "aside"), (2, "hooked"), (3, "hooked")])
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("views", [False, True])
def test_gradients_and_buffers_are_those_of_plain_ddp_to_the_last_digit(
    measured: list[dict[str, Any]], world: int, way: str, uneven: bool, views: bool
) -> None:
    for rank in range(world):
        found = [measured[rank][f"{world} {uneven} {views} {each}"] for each in ("plain", way)]
        assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("views", [False, True])
def test_gradients_averaged_beside_ddp_are_its_own_to_rounding_on_three_ranks(
    measured: list[dict[str, Any]], uneven: bool, views: bool
) -> None:
    for rank in range(3):
        plain, aside = (measured[rank][f"3 {uneven} {views} {way}"] for way in ("plain", "aside"))
        assert [each is None for each in aside] == [each is None for each in plain]
        assert any(each is None for each in plain) == uneven
        pairs = zip(aside, plain, strict=True)
        assert all(a == pytest.approx(b, rel=1e-4, abs=1e-5) for a, b in pairs if a is not None)


@pytest.mark.parametrize("shares", [(2, 2), (3, 1), (1, 1, 2), (3, 1, 0), (1, 1, 1, 1)])
def test_readings_between_parts_are_unbiased_whatever_the_shares(shares: tuple[int, ...]) -> None:
    """The mean over all batches that can be drawn is exact."""
    population, total = (-1.0, 0.5, 4.0), sum(shares)
    mean = sum(population) / 3
    variance = sum((x - mean) ** 2 for x in population) / 3
    readings = []
    for batch in product(population, repeat=total):
        rest, parts = list(batch), 0.0
        for share in shares:
            part, rest = rest[:share], rest[share:]
            parts += sum(part) ** 2 / share if share else 0.0
        taking = sum(share > 0 for share in shares)
        readings.append(_of_parts(parts, sum(batch) ** 2 / total, taking, total))
    sqr, noise = (sum(values) / len(readings) for values in zip(*readings, strict=True))
    assert sqr == pytest.approx(mean**2)
    assert noise == pytest.approx(variance)


class Gradients:
    """A parameter whose gradient is told, step by step."""

    def __init__(self, ranks: Ranks = ALONE, every: int = 1) -> None:
        self.parameter = torch.zeros(2, requires_grad=True)
        self.meter = NoiseMeter(ranks, [self.parameter], base_batch=10, every=every)
        self.steps = 0

    def step(self, *values: float, total: int = 10, scale: Any = None) -> None:
        self.parameter.grad = torch.tensor(values) * (1.0 if scale is None else scale)
        self.meter.measure(total, total, self.steps, scale=scale)
        self.steps += 1

    def alone(self, *values: float, **options: Any) -> list[float]:
        self.step(*values, **options)
        popped = self.meter.pop()
        self.meter.push(popped)
        return popped


def said(meter: NoiseMeter) -> Any:
    """(|G|², variance at the base batch), to rounding."""
    found = meter.statistics
    return found and pytest.approx((found.grad_sqr, found.grad_var), rel=1e-5)


def pairs(gradients: Gradients, number: int = LEAST, **options: Any) -> None:
    for _ in range(number):
        gradients.alone(3.0, 0.0, **options)
        gradients.alone(3.0, 4.0, **options)


def test_two_consecutive_gradients_tell_noise_from_signal() -> None:
    gradients = Gradients()
    pairs(gradients)
    found = gradients.meter.statistics
    assert found is not None
    assert said(gradients.meter) == (9.0, 16.0 / 2)
    assert found.noise_scale == pytest.approx(80 / 9)


def test_batches_of_different_sizes_are_told_apart() -> None:
    gradients = Gradients()
    for _ in range(LEAST):
        gradients.alone(3.0, 0.0, total=10)
        gradients.alone(3.0, 4.0, total=30)
    found = gradients.meter.statistics
    assert found is not None
    assert found.grad_var * 10 == pytest.approx(16 / (1 / 10 + 1 / 30))


def test_passes_of_one_rank_are_compared_with_each_other() -> None:
    gradients = Gradients()
    for step in range(LEAST):
        gradients.parameter.grad = torch.tensor([0.4, 0.0])  # 4 of 10 samples, their mean is 1
        gradients.meter.accumulated(4)
        gradients.parameter.grad += torch.tensor([1.2, 0.0])  # the other 6, their mean is 2
        gradients.meter.measure(10, 10, step)
        gradients.meter.push(gradients.meter.pop())
    found = gradients.meter.statistics
    assert found is not None
    noise = 4 * 1 + 6 * 4 - 10 * 1.6**2
    assert found.grad_var * 10 == pytest.approx(noise, rel=1e-5)
    assert found.grad_sqr == pytest.approx(1.6**2 - noise / 10, rel=1e-5)


def test_exact_readings_replace_rough_ones_until_they_are_long_ago() -> None:
    gradients = Gradients()
    pairs(gradients)
    rough = gradients.meter.statistics
    for _ in range(LEAST):
        gradients.parameter.grad = torch.tensor([0.5, 0.0])
        gradients.meter.accumulated(5)
        gradients.alone(1.0, 0.1)
    exact = gradients.meter.statistics
    assert exact is not None
    assert rough is not None
    assert exact.grad_sqr < 1.1 < rough.grad_sqr
    pairs(gradients)
    assert gradients.meter.statistics == exact
    gradients.steps += MEMORY
    pairs(gradients)
    later = gradients.meter.statistics
    assert later is not None
    assert later.grad_sqr == pytest.approx(9.0)


@pytest.mark.parametrize("scale", [4.0, torch.tensor(4.0)])
def test_the_scale_of_the_loss_is_undone_even_if_it_changes(scale: Any) -> None:
    gradients = Gradients()
    for _ in range(LEAST):
        gradients.alone(3.0, 0.0, scale=scale)
        gradients.alone(3.0, 4.0, scale=scale * 2)
    assert said(gradients.meter) == (9.0, 8.0)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_what_is_not_finite_is_passed_over(bad: float) -> None:
    gradients = Gradients()
    pairs(gradients)
    gradients.alone(bad, 0.0)
    gradients.alone(1.0, 1.0)
    assert said(gradients.meter) == (9.0, 8.0)
    pairs(gradients, 1)
    assert gradients.meter.state_dict()["rough"]["count"] == LEAST + 1


def test_nothing_is_known_before_the_third_reading() -> None:
    gradients = Gradients()
    pairs(gradients, LEAST - 1)
    assert gradients.meter.statistics is None
    pairs(gradients, 1)
    assert gradients.meter.statistics is not None


def test_only_one_pair_of_steps_in_so_many_is_read() -> None:
    gradients = Gradients(every=10)
    read = [gradients.steps - 1 for _ in range(40) if gradients.alone(1.0, 0.0)[0]]
    assert read == [1, 11, 21, 31]


def test_a_reading_waits_for_the_share_of_every_rank() -> None:
    ranks = [Gradients(Ranks(rank, 2, rank, 1, CPU)) for rank in range(2)]
    for _ in range(LEAST):
        for rank in ranks:
            rank.step(3.0, 0.0)
            rank.step(3.0, 4.0)
        early = ranks[0].meter.pop()
        for rank in ranks:  # the other's numbers have not arrived yet
            rank.meter.push(early)
            rank.step(7.0, 7.0)
        late = ranks[1].meter.pop()
        for rank in ranks:
            rank.meter.push(late)
    assert [said(rank.meter) for rank in ranks] == [(9.0, 8.0)] * 2


def test_parameters_that_come_and_go_end_a_reading_and_not_the_measuring() -> None:
    gradients = Gradients()
    gradients.alone(3.0, 0.0)
    gradients.parameter.grad = None
    gradients.meter.measure(10, 10, 1)
    gradients.meter.push(gradients.meter.pop())
    pairs(gradients)
    assert said(gradients.meter) == (9.0, 8.0)


def test_what_was_learned_survives_a_checkpoint_and_another_base_batch() -> None:
    gradients = Gradients()
    pairs(gradients)
    state = json.loads(json.dumps(gradients.meter.state_dict()))
    other = NoiseMeter(Ranks(1, 4, 1, 2, CPU), [], base_batch=20)
    other.load_state_dict(state)
    assert said(other) == (9.0, 4.0)


def test_old_readings_fade_and_the_first_counts_in_full() -> None:
    gradients = Gradients()
    pairs(gradients)
    gradients.steps += 20 * MEMORY
    gradients.alone(0.0, 1.0)
    gradients.alone(0.0, 1.0)
    found = gradients.meter.statistics
    assert found is not None
    assert found.grad_sqr == pytest.approx(1.0)


@given(
    values=st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=12),
    every=st.integers(1, 4),
)
@settings(deadline=None)
def test_statistics_are_never_negative(values: list[tuple[float, float]], every: int) -> None:
    gradients = Gradients(every=every)
    for value in values:
        gradients.alone(*value)
    found = gradients.meter.statistics
    assert found is None or (found.grad_sqr >= 0 and found.grad_var >= 0)
    assert found is None or found.noise_scale >= 0


def test_a_gradient_without_signal_or_without_noise() -> None:
    assert Statistics(0.0, 2.0, 10).noise_scale == math.inf
    assert Statistics(0.0, 0.0, 10).noise_scale == 0.0
    assert Statistics(2.0, 0.0, 10).noise_scale == 0.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_low_precision_gradients_are_summed_in_single_precision(dtype: torch.dtype) -> None:
    parameter = torch.zeros(10_000, dtype=dtype, requires_grad=True)
    meter = NoiseMeter(ALONE, [parameter], base_batch=1, every=1)
    for step in range(2 * LEAST):
        parameter.grad = torch.full_like(parameter, 1.0 if step % 2 else 3.0)
        meter.measure(1, 1, step)
        meter.push(meter.pop())
    found = meter.statistics
    assert found is not None
    assert (found.grad_sqr, found.grad_var) == pytest.approx((30_000, 20_000), rel=1e-5)
