"""The batch size that follows from what a job has measured, and the learning rate from that."""

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.goodput.fit import Measurements, fit_throughput
from boa.goodput.throughput import Throughput, iteration_time
from boa.goodput.tuning import Limits, Setting, best_setting, first_setting, gains_of, grid
from boa.train.torch import rates
from boa.train.torch.noise import Statistics
from boa.train.torch.tuner import BETTER, Tuner

TRUTH = Throughput.of((0.02, 0.0007, 0.12, 0.003, 0.03, 0.006, 2.3))
NOISY = Statistics(1.0, 9.0, 64)
CALM = Statistics(9.0, 0.01, 64)
LIMITS = Limits(base_batch=64, max_batch=4096, min_local=8, max_local=256)


def tuner(**other: int) -> Tuner:
    return Tuner(base_batch=64, max_batch=other.get("max_batch", 4096), local_batch=(8, 256))


def seconds(nodes: int, gpus: int, setting: Setting) -> float:
    values = map(np.float64, (nodes, gpus, setting.local_batch, setting.passes))
    return float(iteration_time(TRUTH, *values))  # type: ignore[arg-type]


def goodput(nodes: int, gpus: int, setting: Setting, statistics: Statistics) -> float:
    gains = gains_of(64, statistics.grad_sqr, statistics.grad_var)
    return float(gains(np.array([float(setting.total(gpus))]))[0]) / seconds(nodes, gpus, setting)


def train(
    job: Tuner, nodes: int, gpus: int, statistics: Statistics, windows: int = 12, noise: float = 0.0
) -> list[Setting]:
    """Run as chosen, window by window."""
    random, chosen = np.random.default_rng(0), []
    for _ in range(windows):
        setting = job.choose(nodes=nodes, gpus=gpus, statistics=statistics)
        job.observe(
            nodes=nodes,
            gpus=gpus,
            local_batch=setting.local_batch,
            passes=setting.passes,
            iteration_s=seconds(nodes, gpus, setting) * random.lognormal(0.0, noise),
        )
        chosen.append(setting)
    return chosen


def best(nodes: int, gpus: int, statistics: Statistics) -> float:
    gains = gains_of(64, statistics.grad_sqr, statistics.grad_var)
    setting = best_setting(TRUTH, gains, LIMITS, nodes=nodes, gpus=gpus)
    return goodput(nodes, gpus, setting, statistics)


def test_before_anything_is_known_a_job_runs_at_its_base_batch() -> None:
    job = tuner()
    assert job.choose(nodes=1, gpus=1, statistics=None) == Setting(64, 0)
    assert job.choose(nodes=1, gpus=4, statistics=NOISY) == Setting(16, 0)
    assert job.choose(nodes=4, gpus=16, statistics=None) == Setting(8, 0)
    assert job.throughput is None
    assert job.goodput(nodes=1, gpus=1, setting=Setting(64, 0), statistics=NOISY) is None


@pytest.mark.parametrize(("nodes", "gpus"), [(1, 1), (1, 2), (1, 4), (2, 8)])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_a_job_that_chooses_by_what_it_measures_gets_near_the_best_goodput(
    nodes: int, gpus: int, noise: float
) -> None:
    last = train(tuner(), nodes, gpus, NOISY, noise=noise)[-1]
    assert goodput(nodes, gpus, last, NOISY) > 0.9 * best(nodes, gpus, NOISY)


def test_it_settles_and_stays() -> None:
    chosen = train(tuner(), 1, 4, NOISY, windows=20, noise=0.02)
    assert len(set(chosen[10:])) == 1
    assert len(set(chosen)) <= 8


def test_the_total_batch_at_most_doubles_from_one_choice_to_the_next() -> None:
    totals = [setting.total(4) for setting in train(tuner(), 1, 4, Statistics(1.0, 90.0, 64))]
    assert totals[0] == 64
    tried = 64
    for total in totals:
        assert total <= 2 * tried
        tried = max(tried, total)
    assert tried > 256, "it has grown all the same"


def test_a_gradient_without_noise_keeps_the_base_batch() -> None:
    totals = {setting.total(4) for setting in train(tuner(), 1, 4, CALM)}
    assert totals == {64}


def test_a_little_more_goodput_is_no_reason_to_change() -> None:
    job = tuner()
    current = train(job, 1, 4, NOISY)[-1]
    here = job.goodput(nodes=1, gpus=4, setting=current, statistics=NOISY)
    for shift in (0.9, 1.1):
        moved = Statistics(NOISY.grad_sqr, NOISY.grad_var * shift, 64)
        assert job.choose(nodes=1, gpus=4, statistics=moved) == current
    much = Statistics(NOISY.grad_sqr, NOISY.grad_var * 40, 64)
    wanted = job.choose(nodes=1, gpus=4, statistics=much)
    promised = job.goodput(nodes=1, gpus=4, setting=wanted, statistics=much)
    kept = job.goodput(nodes=1, gpus=4, setting=current, statistics=much)
    assert here is not None
    assert promised is not None
    assert kept is not None
    assert promised > BETTER * kept


def test_what_was_measured_at_one_width_serves_at_another_and_after_a_restart() -> None:
    job = tuner()
    for nodes, gpus in ((1, 1), (1, 2), (1, 4)):
        train(job, nodes, gpus, NOISY, windows=6)
    again = tuner()
    again.load_state_dict(json.loads(json.dumps(job.state_dict())))
    assert again.state_dict() == job.state_dict()
    for gpus in (1, 2, 3, 4):
        chosen = again.choose(nodes=1, gpus=gpus, statistics=NOISY)
        assert chosen == job.choose(nodes=1, gpus=gpus, statistics=NOISY)
        assert goodput(1, gpus, chosen, NOISY) > 0.93 * best(1, gpus, NOISY)


def test_times_of_another_gpu_type_are_kept_and_not_used() -> None:
    slow = Tuner(base_batch=64, max_batch=4096, local_batch=(8, 256), gpu_type="T4")
    train(slow, 1, 4, NOISY)
    fast = Tuner(base_batch=64, max_batch=4096, local_batch=(8, 256), gpu_type="H200")
    fast.load_state_dict(slow.state_dict())
    assert fast.throughput is None
    assert fast.choose(nodes=1, gpus=4, statistics=NOISY) == Setting(16, 0)
    back = Tuner(base_batch=64, max_batch=4096, local_batch=(8, 256), gpu_type="T4")
    back.load_state_dict(fast.state_dict())
    assert back.throughput == slow.throughput


def test_the_most_that_a_gpu_takes_can_be_changed_from_one_start_to_the_next() -> None:
    small = Tuner(base_batch=64, max_batch=4096, local_batch=(8, 64))
    train(small, 1, 2, NOISY)
    large = tuner()
    large.load_state_dict(small.state_dict())
    last = train(large, 1, 2, NOISY)[-1]
    assert last.local_batch > 64
    assert goodput(1, 2, last, NOISY) > 0.9 * best(1, 2, NOISY)
    again = Tuner(base_batch=64, max_batch=4096, local_batch=(8, 64))
    again.load_state_dict(large.state_dict())
    assert all(at.local_batch <= 64 for at in train(again, 1, 2, NOISY))


# A GPU that takes a larger batch in hardly more time


def flat_seconds(setting: Setting, gpus: int) -> float:
    """ResNet-18 on an H200, and a millisecond of network."""
    sizes, passes_ms = (32, 64, 128, 256, 512, 1024, 2048), (8.3, 8.4, 9.7, 10.7, 10.4, 16.0, 30.1)
    pass_ms = float(np.interp(setting.local_batch, sizes, passes_ms))
    return ((setting.passes + 1) * pass_ms + (gpus > 1)) / 1000


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_where_larger_batches_take_no_longer_a_job_grows_at_every_width(gpus: int) -> None:
    job = Tuner(base_batch=32, max_batch=8192, local_batch=(8, 2048))
    noisy = Statistics(1.0, 100_000 / 32, 32)
    gains = gains_of(32, noisy.grad_sqr, noisy.grad_var)

    def rate(at: Setting) -> float:
        return float(gains(np.array([float(at.total(gpus))]))[0]) / flat_seconds(at, gpus)

    tried = 0
    for _ in range(14):
        at = job.choose(nodes=1, gpus=gpus, statistics=noisy)
        assert at.local_batch <= 2 * (tried or 32)
        tried = max(tried, at.local_batch)
        seconds = flat_seconds(at, gpus)
        sizes = {"local_batch": at.local_batch, "passes": at.passes}
        job.observe(nodes=1, gpus=gpus, iteration_s=seconds, **sizes)
    every = (Setting(2**n, passes) for n in range(3, 12) for passes in (0, 1, 3))
    assert rate(at) > 0.9 * max(rate(one) for one in every if one.total(gpus) <= 8192)


def test_growth_goes_by_what_one_gpu_took_at_any_width() -> None:
    """So a job that becomes wider need not begin from below again."""
    job, noisy = tuner(), Statistics(1.0, 900.0, 64)
    for local in (64, 128):
        job.observe(nodes=1, gpus=1, local_batch=local, passes=0, iteration_s=0.01)
    chosen = job.choose(nodes=1, gpus=8, statistics=noisy)
    assert 8 * 128 < chosen.total(8) <= 8 * 256


def test_many_passes_are_no_evidence_that_as_many_samples_fit_into_one() -> None:
    job, noisy = tuner(), Statistics(1.0, 900.0, 64)
    job.observe(nodes=1, gpus=4, local_batch=16, passes=7, iteration_s=0.01)
    chosen = job.choose(nodes=1, gpus=4, statistics=noisy)
    assert 16 < chosen.local_batch <= 32
    assert chosen.total(4) <= 2 * 4 * 16 * 8


def test_one_gpu_takes_passes_for_an_exact_reading_where_they_cost_next_to_nothing() -> None:
    def arriving(fixed_s: float, sample_s: float) -> Setting:
        job = Tuner(base_batch=64, max_batch=1024, local_batch=(8, 1024))
        for local in (16, 64, 256, 512, 1024):
            seconds = fixed_s + sample_s * local
            job.observe(nodes=1, gpus=2, local_batch=local, passes=0, iteration_s=seconds)
        return job.choose(nodes=1, gpus=1, statistics=Statistics(1.0, 900.0, 64))

    assert arriving(0.02, 0.001).passes >= 1  # another pass: under 5 % of an iteration
    assert arriving(0.5, 0.0001).passes == 0  # nearly twice as long


def test_one_pass_on_one_gpu_is_for_those_who_ask_for_it() -> None:
    """The simulator's grid, Pollux's, is as it was, and both are kept apart in the cache."""
    for _ in range(2):
        split = grid(LIMITS, 2)
        free = grid(replace(LIMITS, split_alone=False), 2)
        assert (split.passes[0, 1:] >= 1).all()
        assert (free.passes[0] == np.ceil(free.total[0] / 256) - 1).all()
        np.testing.assert_array_equal(split.local_batch[1], free.local_batch[1])
    assert first_setting(LIMITS, 1, 128) == Setting(64, 1)
    assert first_setting(replace(LIMITS, split_alone=False), 1, 128) == Setting(128, 0)


# Where the model is wrong, and limits


def test_where_the_model_errs_the_measured_time_counts() -> None:
    """One size is twice as slow as all others let expect: the fit passes over it as a stray."""
    job, noisy = tuner(max_batch=256), Statistics(1.0, 900.0, 64)
    for local in (16, 24, 32, 40, 48, 56, 64):
        time_s = seconds(1, 4, Setting(local, 0)) * (2.0 if local == 64 else 1.0)
        job.observe(nodes=1, gpus=4, local_batch=local, passes=0, iteration_s=time_s)
    chosen = job.choose(nodes=1, gpus=4, statistics=noisy)
    assert 192 <= chosen.total(4) < 256


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_a_time_that_is_none_is_passed_over(bad: float) -> None:
    job = tuner()
    job.observe(nodes=1, gpus=1, local_batch=64, passes=0, iteration_s=bad)
    assert job.throughput is None


def test_a_job_remembers_a_bounded_number_of_settings() -> None:
    job = tuner()
    for n in range(200):
        job.observe(nodes=1, gpus=1, local_batch=8 + n, passes=0, iteration_s=0.1)
    assert len(job.state_dict()["types"][""]["observed"]) == 64


@given(
    gpus=st.integers(1, 16),
    max_batch=st.integers(64, 2000),
    least=st.integers(1, 40),
    more=st.integers(0, 300),
    ratio=st.floats(0.0, 100.0),
)
@settings(max_examples=15, deadline=None)
def test_every_choice_is_within_the_limits(
    gpus: int, max_batch: int, least: int, more: int, ratio: float
) -> None:
    job = Tuner(base_batch=64, max_batch=max_batch, local_batch=(least, least + more))
    first = first_setting(job.limits, gpus).total(gpus)
    for _ in range(2):
        statistics = Statistics(1.0, ratio, 64)
        chosen = job.choose(nodes=-(-gpus // 4), gpus=gpus, statistics=statistics)
        assert 1 <= chosen.local_batch <= least + more
        assert chosen.total(gpus) <= max(max_batch, first)
        job.observe(
            nodes=-(-gpus // 4),
            gpus=gpus,
            local_batch=chosen.local_batch,
            passes=chosen.passes,
            iteration_s=0.1,
        )


# The fit


def configurations() -> Iterator[tuple[int, int, int, int]]:
    for gpus in (1, 2, 4, 8, 16):
        for local in (32, 90, 256):
            for passes in (0, 1, 3):
                yield -(-gpus // 4), gpus, local, passes


def test_the_fit_recovers_the_constants_from_iterations_alone() -> None:
    nodes, gpus, local, passes = np.array(list(configurations()), dtype=float).T
    times = iteration_time(TRUTH, nodes, gpus, local, passes)
    unknown = np.full_like(times, np.nan)
    fitted = fit_throughput(Measurements(nodes, gpus, local, times, unknown, passes))
    assert fitted.astuple()[:2] == pytest.approx(TRUTH.astuple()[:2], rel=1e-3)
    predicted = iteration_time(fitted, nodes, gpus, local, passes)
    np.testing.assert_allclose(predicted, times, rtol=1e-3)


def test_an_unknown_accumulation_time_is_no_evidence() -> None:
    """Beside full measurements, iterations that agree with them change nothing."""
    nodes, gpus, local, passes = np.array(list(configurations()), dtype=float).T
    times = iteration_time(TRUTH, nodes, gpus, local, passes)
    known = np.where(passes == 0, TRUTH.alpha_c + TRUTH.beta_c * local, np.nan)
    fitted = fit_throughput(Measurements(nodes, gpus, local, times, known, passes))
    assert fitted.astuple() == pytest.approx(TRUTH.astuple(), rel=1e-3)


# Learning rates


def test_rules_for_the_learning_rate() -> None:
    assert rates.factor("none", 256, 64, NOISY) == 1.0
    assert rates.factor("linear", 256, 64, None) == 4.0
    assert rates.factor("sqrt", 256, 64, None) == 2.0
    assert rates.factor("adascale", 256, 64, None) == 1.0
    assert rates.factor("adascale", 256, 64, NOISY) == pytest.approx(10 / (9 / 4 + 1))
    assert rates.gain(64, 64, NOISY) == 1.0
    with pytest.raises(ValueError, match="cubic"):
        rates.factor("cubic", 256, 64, None)  # type: ignore[arg-type]


@given(batch=st.integers(64, 10_000), ratio=st.floats(0.0, 1e6))
def test_adascale_lies_between_no_scaling_and_linear(batch: int, ratio: float) -> None:
    found = rates.factor("adascale", batch, 64, Statistics(1.0, ratio, 64))
    assert 1.0 - 1e-9 <= found <= batch / 64 * (1 + 1e-9)


@pytest.mark.parametrize("rate", [0.5, torch.tensor(0.5)])
def test_a_scaled_step_goes_further_and_schedulers_see_their_own_rates(
    rate: float | torch.Tensor,
) -> None:
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=rate)
    own = optimizer.param_groups[0]["lr"]
    weight.grad = torch.ones(1)
    with rates.scaled(optimizer, 3.0):
        optimizer.step()
    assert float(weight.detach()) == pytest.approx(-1.5)
    assert optimizer.param_groups[0]["lr"] is own
    assert float(own) == 0.5


def test_rates_are_restored_even_if_the_step_fails() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    with pytest.raises(RuntimeError, match="broke"), rates.scaled(optimizer, 3.0):
        raise RuntimeError("broke")
    assert optimizer.param_groups[0]["lr"] == 0.5
