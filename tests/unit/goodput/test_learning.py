"""What a job's few samples teach: the fit, its optimism, and that C and NumPy learn the same."""

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.goodput import Throughput, accumulation_time, step_time
from boa.goodput.learning import (
    COMPILED,
    StepTime,
    _bounds,
    _compiled_descend,
    _descend,
    _look,
    _rows,
    _start,
    learn,
)

TRUTH = Throughput.of((0.02, 0.0007, 0.12, 0.003, 0.03, 0.006, 2.3))
START = Throughput.of((0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001))
GROWTH = [(1, 1), (1, 2), (1, 4), (2, 2), (2, 8), (4, 16)]
"""(nodes, GPUs) as a growing job on nodes of 4 sees them."""
GRID = [(n, k, b) for n, k in GROWTH for b in (32, 90, 256)]

Configuration = tuple[int, int, int]


def predicted(model: Throughput, configurations: Sequence[Configuration]) -> np.ndarray:
    nodes, gpus, local = np.array(configurations, dtype=float).T
    return step_time(model, nodes, gpus, local)


def measured(
    model: Throughput, configurations: Sequence[Configuration], noise: Sequence[float] = ()
) -> tuple[StepTime, ...]:
    """Samples of a job that follows the model; the noise is relative, for passes then steps."""
    local = np.array(configurations, dtype=float)[:, 2]
    times = np.concatenate([accumulation_time(model, local), predicted(model, configurations)])
    if noise:
        times = times * np.resize(noise, len(times))
    passes, steps = np.split(times, 2)
    return tuple(
        StepTime(nodes, gpus, local_batch, float(step), float(one_pass))
        for (nodes, gpus, local_batch), one_pass, step in zip(
            configurations, passes, steps, strict=True
        )
    )


def objective(model: Throughput, samples: Sequence[StepTime]) -> float:
    """What learning minimises, written out once more from its definition."""
    where = [(s.nodes, s.gpus, s.local_batch) for s in samples]
    local = np.array([s.local_batch for s in samples], dtype=float)
    of_pass = np.log(accumulation_time(model, local) / [s.accumulation_s for s in samples])
    of_step = np.log(predicted(model, where) / [s.step_s for s in samples])
    slopes = (model.beta_n / model.alpha_n) ** 2 + (model.beta_r / model.alpha_r) ** 2
    roots = np.sqrt(np.mean(of_pass**2)) + np.sqrt(np.mean(of_step**2))
    return float(roots + 1e-3 * (model.gamma - 1) ** 2 + 1e-2 * slopes)


def truths() -> st.SearchStrategy[Throughput]:
    """Constants of jobs as profiled: passes of 0.05 to 5 s, networks of 0.01 to 1 s."""
    alpha = st.floats(0.01, 1.0)
    return st.builds(
        lambda a, share, n, n_slope, r, r_slope, gamma: Throughput.of(
            (a, a * share / 100, n, n * n_slope, r, r * r_slope, gamma)
        ),
        *(alpha, st.floats(0.1, 4.0), alpha, st.floats(0.0, 0.3), alpha, st.floats(0.0, 0.3)),
        st.floats(1.0, 5.0),
    )


NOISE = st.lists(st.floats(0.9, 1.1), min_size=7, max_size=7)


def test_exact_samples_teach_the_true_step_times() -> None:
    model = learn(measured(TRUTH, GRID))
    unseen = [(n, k, b) for n, k in [(1, 3), (2, 6), (3, 12), (8, 32)] for b in (16, 128, 700)]
    np.testing.assert_allclose(predicted(model, GRID), predicted(TRUTH, GRID), rtol=1e-4)
    np.testing.assert_allclose(predicted(model, unseen), predicted(TRUTH, unseen), rtol=1e-3)


def test_on_one_gpu_only_perfect_scaling_is_predicted() -> None:
    model = learn(measured(TRUTH, [(1, 1, b) for b in (32, 90, 256)]))
    sizes = [(1, 1, 90), (1, 8, 90), (2, 2, 90), (16, 64, 90)]
    np.testing.assert_allclose(predicted(model, sizes), predicted(TRUTH, sizes)[0], rtol=1e-4)


def test_from_one_batch_size_half_of_a_pass_is_taken_to_be_free_of_the_batch() -> None:
    samples = measured(TRUTH, [(n, k, 90) for n, k in GROWTH], noise=(0.97, 1.02, 1.0))
    mean = np.mean([s.accumulation_s for s in samples])
    assert learn(samples).alpha_c == pytest.approx(mean / 2, rel=1e-12)
    assert learn([*samples, replace(samples[0], local_batch=91)]).alpha_c != mean / 2


def test_two_gpus_teach_that_more_on_the_node_are_no_slower() -> None:
    model = learn(measured(TRUTH, [(1, 1, 32), (1, 1, 90), (1, 2, 90)]))
    two, eight = predicted(model, [(1, 2, 90), (1, 8, 90)])
    assert eight == pytest.approx(two, rel=1e-5)
    assert two == pytest.approx(predicted(TRUTH, [(1, 2, 90)])[0], rel=1e-3)


def test_two_nodes_of_one_gpu_teach_that_more_nodes_are_no_slower() -> None:
    model = learn(measured(TRUTH, [(1, 1, 32), (1, 1, 90), (2, 2, 90)]))
    two, many = predicted(model, [(2, 2, 90), (8, 32, 90)])
    assert many == pytest.approx(two, rel=1e-5)
    assert (model.alpha_r, model.beta_r) == (1e-8, 1e-8)


def test_a_network_never_seen_is_a_tenth_slower_than_that_within_a_node() -> None:
    model = learn(measured(TRUTH, [g for g in GRID if g[0] == 1]))
    assert model.alpha_n == pytest.approx(1.1 * model.alpha_r, rel=1e-12)
    assert model.beta_n == pytest.approx(1.1 * model.beta_r, rel=1e-12)


def test_a_network_within_nodes_never_seen_is_free() -> None:
    model = learn(measured(TRUTH, [g for g in GRID if g[0] > 1]))
    assert (model.alpha_r, model.beta_r) == (1e-8, 1e-8)
    assert model.alpha_n > 0.01


def test_between_pass_and_step_of_one_gpu_the_middle_is_predicted() -> None:
    model = learn([StepTime(nodes=1, gpus=1, local_batch=32, step_s=0.44, accumulation_s=0.4)])
    assert predicted(model, [(1, 1, 32)])[0] == pytest.approx((0.44 * 0.4) ** 0.5, rel=1e-3)


@settings(max_examples=60)
@given(truth=truths(), noise=NOISE, count=st.integers(6, len(GRID)))
def test_the_objective_is_no_worse_than_at_the_start_or_the_truth(
    truth: Throughput, noise: list[float], count: int
) -> None:
    samples = measured(truth, GRID[::-1][:count], noise)
    if not any(s.nodes == 1 and s.gpus > 2 for s in samples):
        truth = replace(truth, beta_r=1e-8)
    if not any(s.nodes == 1 and s.gpus > 1 for s in samples):
        truth = replace(truth, alpha_r=1e-8)
    found = objective(learn(samples), samples)
    assert found <= objective(START, samples)
    assert found <= objective(truth, samples) * 1.01 + 1e-5


@settings(max_examples=30)
@given(truth=truths(), noise=NOISE)
def test_the_gradient_is_that_of_the_loss(truth: Throughput, noise: list[float]) -> None:
    points = np.array(_rows(measured(truth, GRID, noise)), dtype=float).T
    x = np.array(truth.astuple()) * 1.05 + 1e-3
    _, gradient, _ = _look(x, points)
    for i, step in enumerate(np.diag(x * 1e-6)):
        ahead, behind = _look(x + step, points)[0], _look(x - step, points)[0]
        assert (ahead - behind) / (2 * step[i]) == pytest.approx(gradient[i], rel=1e-3, abs=1e-6)


@pytest.mark.skipif(not COMPILED, reason="without a C compiler there is only NumPy")
@settings(max_examples=60)
@given(
    truth=truths(), noise=NOISE, ends=st.tuples(st.integers(0, 17), st.integers(1, 18)).map(sorted)
)
def test_c_and_numpy_learn_the_same(truth: Throughput, noise: list[float], ends: list[int]) -> None:
    rows = _rows(measured(truth, GRID[ends[0] : max(ends[1], ends[0] + 1)], noise))
    box = _bounds(rows)
    start = _start(rows, box)
    fast, plain = (Throughput.of(f(rows, box, start)) for f in (_compiled_descend, _descend))
    np.testing.assert_allclose(predicted(fast, GRID), predicted(plain, GRID), rtol=1e-3)


def test_a_machine_with_a_compiler_has_the_kernel() -> None:
    from boa.solver.kernel import COMPILED as SOLVER_COMPILED

    assert COMPILED == SOLVER_COMPILED or bool(os.environ.get("BOA_PURE_PYTHON"))


@given(
    order=st.permutations(range(len(GRID))),
    count=st.integers(1, len(GRID)),
    noise=NOISE,
)
@settings(max_examples=40)
def test_neither_order_nor_repetition_changes_what_is_learned(
    order: list[int], count: int, noise: list[float]
) -> None:
    samples = measured(TRUTH, GRID, noise)[:count]
    shuffled = [samples[i] for i in order if i < count]
    assert learn(samples) == learn(shuffled) == learn(tuple(samples))


def test_at_every_size_the_job_has_had_its_own_samples_are_explained() -> None:
    samples = measured(TRUTH, GRID)
    for seen in range(1, len(GRID) + 1):
        found = predicted(learn(samples[:seen]), GRID[:seen])
        np.testing.assert_allclose(found, predicted(TRUTH, GRID[:seen]), rtol=0.01)


@pytest.mark.parametrize(
    "wrong",
    [
        {"step_s": 0.0},
        {"accumulation_s": -1.0},
        {"step_s": float("nan")},
        {"step_s": float("inf")},
        {"nodes": 2},
        {"local_batch": 0},
    ],
)
def test_what_cannot_be_measured_is_refused(wrong: dict[str, float]) -> None:
    good = StepTime(nodes=1, gpus=1, local_batch=32, step_s=0.4, accumulation_s=0.3)
    with pytest.raises(ValueError, match="not a measured configuration"):
        learn([good, replace(good, **wrong)])  # type: ignore[arg-type]


def test_no_samples_teach_nothing() -> None:
    with pytest.raises(ValueError, match="no samples"):
        learn(())
