"""The genetic search on random clusters: what it returns is feasible, and at least as good."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.policy.rivals.genetic import Counts, Search, evolve, fitness, repair
from boa.solver.tables import Ints

both_versions = pytest.mark.parametrize("compiled", [True, False], ids=["C", "NumPy"])
seeds = st.integers(0, 2**64 - 1)


@st.composite
def searches(draw: st.DrawFn, max_jobs: int = 7, max_nodes: int = 6, gpus: int = 4) -> Search:
    """Concave speedups that are slower across nodes, and a current state that may be infeasible."""
    jobs, nodes = draw(st.integers(1, max_jobs)), draw(st.integers(1, max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    capacity = rng.integers(1, gpus + 1, nodes) if draw(st.booleans()) else np.full(nodes, gpus)
    widths = np.arange(1 + int(capacity.sum()))
    one = widths ** rng.uniform(0.1, 1.0, (jobs, 1)) * rng.uniform(0.2, 2.0, (jobs, 1))
    rates = np.stack([one, one * rng.uniform(0.3, 1.0, (jobs, 1))], axis=1)
    most = rng.integers(1, gpus * 3, jobs)
    search = Search(
        rates=rates,
        current=np.zeros((jobs, nodes), dtype=np.intp),
        rescale_factors=rng.choice([0.0, 0.3, 0.9, 1.0], jobs),
        max_gpus=most,
        min_gpus=np.where(rng.random(jobs) < 0.2, rng.integers(1, 4, jobs), 1),
        capacity=capacity,
        max_nodes=draw(st.sampled_from([1, 2, 16])),
    )
    held = rng.integers(0, 1 + gpus, (jobs, nodes)) * (rng.random((jobs, nodes)) < 0.4)
    current = held if draw(st.booleans()) else repair(search, held, rng)
    return with_current(search, current)


def with_current(search: Search, current: Ints) -> Search:
    return Search(
        rates=search.rates,
        current=current,
        rescale_factors=search.rescale_factors,
        max_gpus=search.max_gpus,
        min_gpus=search.min_gpus,
        capacity=search.capacity,
        max_nodes=search.max_nodes,
    )


def random_states(search: Search, seed: int, count: int) -> Ints:
    rng = np.random.default_rng(seed)
    shape = (count, *search.current.shape)
    return rng.integers(0, 1 + search.capacity, shape) * (rng.random(shape) < 0.5)


def feasible(search: Search, states: Counts) -> bool:
    gpus = states.sum(axis=2)
    nodes = np.count_nonzero(states, axis=2)
    distributed = (states > 0) & (nodes > 1)[:, :, None]
    return bool(
        (states >= 0).all()
        and (states.sum(axis=1) <= search.capacity).all()
        and (gpus <= search.max_gpus).all()
        and ((gpus == 0) | (gpus >= search.min_gpus)).all()
        and (nodes <= search.max_nodes).all()
        and (distributed.sum(axis=1) <= 1).all()
    )


@both_versions
@settings(max_examples=60)
@given(search=searches(), seed=seeds, count=st.integers(0, 30))
def test_every_returned_state_is_feasible(
    compiled: bool, search: Search, seed: int, count: int
) -> None:
    warm = random_states(search, seed, count)
    found = evolve(search, warm, seed=seed, size=20, generations=6, compiled=compiled)
    assert 1 <= len(found) <= 20
    assert feasible(search, found)


@given(search=searches(), seed=seeds)
def test_repair_makes_feasible_and_leaves_the_feasible_alone(search: Search, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for state in random_states(search, seed, 4):
        repaired = repair(search, state, rng)
        assert feasible(search, repaired[None])
        assert (repaired <= state).all()
        np.testing.assert_array_equal(repair(search, repaired, rng), repaired)


@both_versions
@settings(max_examples=60)
@given(search=searches(), seed=seeds, count=st.integers(0, 30))
def test_the_answer_is_no_worse_than_the_current_state_and_the_warm_start(
    compiled: bool, search: Search, seed: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    given_states = [repair(search, s, rng) for s in random_states(search, seed, count)]
    warm = np.array(given_states, dtype=np.intp).reshape(count, *search.current.shape)
    found = evolve(search, warm, seed=seed, size=20, generations=3, compiled=compiled)
    values = fitness(search, found)
    known = [*fitness(search, warm), 0.0]
    if feasible(search, search.current[None]):
        known.append(fitness(search, search.current[None])[0])
    assert values[0] >= max(known) * (1 - 1e-8)
    assert (np.diff(values) <= 1e-8 * values[:-1]).all()


@both_versions
@settings(max_examples=20)
@given(search=searches(), seed=seeds)
def test_the_same_seed_gives_the_same_bytes(compiled: bool, search: Search, seed: int) -> None:
    warm = random_states(search, seed, 5)
    runs = [
        evolve(search, warm, seed=seed, size=20, generations=5, compiled=compiled) for _ in "ab"
    ]
    assert runs[0].tobytes() == runs[1].tobytes()


@given(search=searches(), seed=seeds)
def test_fitness_is_the_harmonic_mean_of_the_speedups(search: Search, seed: int) -> None:
    states = random_states(search, seed, 3)
    for state, value in zip(states, fitness(search, states), strict=True):
        inverses = []
        for j, row in enumerate(state):
            across = 1 if (row > 0).sum() > 1 else 0
            speedup = search.rates[j, across, row.sum()]
            if (row != search.current[j]).any():
                speedup *= search.rescale_factors[j]
            inverses.append(1 / (speedup + 0.001))
        assert value == pytest.approx(len(inverses) / sum(inverses), rel=1e-12)


def best_of_all(search: Search) -> float:
    """Every feasible state of a small cluster, one after another."""
    jobs, nodes = search.current.shape
    counts = [range(int(c) + 1) for c in search.capacity]
    rows = list(itertools.product(*counts))
    states = np.array(list(itertools.product(rows, repeat=jobs)), dtype=np.intp)
    states = states.reshape(-1, jobs, nodes)
    states = states[(states.sum(axis=1) <= search.capacity).all(axis=1)]
    allowed = [s for s in states if feasible(search, s[None])]
    return float(fitness(search, np.array(allowed)).max())


@both_versions
@settings(max_examples=25)
@given(search=searches(max_jobs=3, max_nodes=2, gpus=3), seed=seeds)
def test_small_clusters_reach_the_best_of_all_states(
    compiled: bool, search: Search, seed: int
) -> None:
    nothing = np.zeros((0, *search.current.shape), dtype=np.intp)
    found = evolve(search, nothing, seed=seed, size=40, generations=40, compiled=compiled)
    assert fitness(search, found)[0] == pytest.approx(best_of_all(search), rel=1e-8)
