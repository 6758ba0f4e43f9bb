"""The genetic search of the Pollux policy (OSDI'21): which job gets which GPUs of which node.

A state is a matrix jobs × nodes of GPU counts. Its fitness is Pollux's: the harmonic mean of the
jobs' speedups (+0.001), where a job whose row differs from its current one would be rescaled and
counts for less. The population, the one-point crossover over jobs, the mutations (back to the
current row, elements to zero, more where GPUs are free) and the repair are Pollux's too.

Liberties, none of which changes what is optimised:

- There is one objective. Pollux keeps utility as a second one but chooses by the first.
- Parents are chosen by binary tournament; of parents and children the best survive. Of states with
  equal fitness one survives: they differ in the names of nodes.
- Mutation also tries sizes at the expense of others, whole nodes, swaps of two jobs, and other
  names for nodes of equal capacity. A job that loses GPUs, and every job when some are free, takes
  the best of what is left.
- The search ends early when the best has not improved for `patience` generations.
- Where fitness differs by less than about a billionth, the state that leaves fewer jobs without
  GPUs goes first, then the one that rescales fewer.

`_genetic.c` does this where there is a C compiler. The NumPy version here works on a whole
generation at once with fewer kinds of mutation: a hundred times slower, and on a large cluster up
to a tenth less fit when it starts from nothing.
"""

import ctypes
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boa import compiled as kernels
from boa.model.speedup import Floats
from boa.solver.tables import Ints

Counts: TypeAlias = NDArray[np.integer[Any]]
"""States, of any type of integer: GPUs on a node fit into a byte, and populations are large."""

FLOOR = 0.001
"""Added to every speedup, so that a job without GPUs costs much but not everything."""

TIE = 1e-9
"""Cost of a rescaling where nothing else counts; a job left without GPUs costs twice that."""

IMPROVED = 1.0 - 1e-7
"""The best counts as improved if its total cost falls below this share of what it was."""

LANES = 16
"""The kernel's loops over nodes are fastest for multiples of this."""

_library = kernels.load(__file__, "_genetic")
COMPILED = _library is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One round's problem; job rows are in order of priority."""

    rates: Floats
    """jobs × 2 × (K+1): speedup with k GPUs on one node [j, 0, k] or across nodes [j, 1, k],
    over that at the fair share; nothing with none"""
    current: Ints
    """jobs × nodes: GPUs now held"""
    rescale_factors: Floats
    """jobs: what a changed row multiplies the speedup by"""
    max_gpus: Ints
    """jobs"""
    min_gpus: Ints
    """jobs: a job with fewer gets none"""
    capacity: Ints
    """nodes: GPUs on each, at most 255"""
    max_nodes: int = 16
    """nodes that one job may be spread over"""


@dataclass(frozen=True, slots=True)
class _Limits:
    size: int
    generations: int
    patience: int


def fitness(search: Search, states: Counts) -> Floats:
    """The harmonic mean of the speedups (+0.001) in each state: population × jobs × nodes."""
    jobs = states.shape[1]
    if jobs == 0:
        return np.zeros(len(states))
    factors = np.where((states != search.current).any(axis=2), search.rescale_factors, 1.0)
    across = (np.count_nonzero(states, axis=2) > 1).astype(np.intp)
    gpus = np.minimum(states.sum(axis=2), search.rates.shape[2] - 1)
    speedups = search.rates[np.arange(jobs), across, gpus] * factors
    means: Floats = jobs / (1.0 / (speedups + FLOOR)).sum(axis=1)
    return means


def repair(search: Search, state: Ints, rng: np.random.Generator) -> Ints:
    """A feasible state near this one; this one if it is feasible."""
    repaired: Ints = _repaired(search, state[None], rng)[0]
    return repaired


def evolve(
    search: Search,
    population: Counts,
    *,
    seed: int,
    size: int = 100,
    generations: int = 100,
    patience: int = 25,
    compiled: bool = True,
) -> NDArray[np.uint8]:
    """The last population, at most `size` states by falling fitness: the first is the answer.

    `population` is the last round's, with its rows and columns mapped to today's jobs and nodes;
    infeasible states in it are repaired. The current state and mutations are added to it.
    A pure function: the same arguments give the same states, though not with and without the
    compiled kernel.
    """
    if size < 1 or search.max_nodes < 1:
        raise ValueError("a population has a state at least, and a job may be on a node at least")
    if search.capacity.max(initial=0) > 255 or search.capacity.sum() >= 2**16:
        raise ValueError("nodes have at most 255 GPUs, and all together fewer than 65,536")
    if search.current.size == 0:
        return np.zeros((1, *search.current.shape), dtype=np.uint8)
    limits = _Limits(size, generations, patience)
    if compiled and COMPILED:
        return _evolve_compiled(search, population, seed, limits)
    rng = np.random.default_rng(seed % 2**64)
    return _evolve_plain(search, population, rng, limits).astype(np.uint8)


class _Search(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("jobs", "nodes", "width", "max_nodes", "largest")),
        *((name, ctypes.c_void_p) for name in ("costs", "at_home", "best", "most", "least")),
        *((name, ctypes.c_void_p) for name in ("current", "capacity")),
    )


def _evolve_compiled(
    search: Search, population: Counts, seed: int, limits: _Limits
) -> NDArray[np.uint8]:
    assert _library is not None
    jobs, nodes = search.current.shape
    width = -(-nodes // LANES) * LANES
    costs = _costs(search)
    arrays: tuple[NDArray[Any], ...] = (
        costs,
        _costs_at_home(search, costs),
        _best_counts(search),
        _most(search).astype(np.int32),
        search.min_gpus.astype(np.int32),
        _padded(search.current, width),
        _padded(search.capacity, width),
    )
    sizes = (jobs, width, search.rates.shape[2], search.max_nodes, int(search.capacity.max()))
    described = _Search(*sizes, *(a.ctypes.data for a in arrays))
    warm = _padded(population, width)
    found = np.empty((limits.size, jobs, width), dtype=np.uint8)
    numbers = (len(warm), limits.size, limits.generations, limits.patience)
    count = _library.boa_evolve(
        ctypes.byref(described),
        ctypes.c_void_p(warm.ctypes.data),
        *(ctypes.c_int64(n) for n in numbers),
        ctypes.c_uint64(seed % 2**64),
        ctypes.c_void_p(found.ctypes.data),
    )
    if count < 0:
        raise MemoryError("no memory for the search's populations")
    return found[:count, :, :nodes].copy()


def _padded(counts: Counts, width: int) -> NDArray[np.uint8]:
    """With nodes without GPUs added, so that the kernel's loops over nodes have no remainder."""
    wide = np.zeros((*counts.shape[:-1], width), dtype=np.uint8)
    wide[..., : counts.shape[-1]] = counts
    return wide


def _most(search: Search) -> Ints:
    """GPUs that each job may have at most, as far as its speedups are known."""
    most: Ints = np.minimum(search.max_gpus, search.rates.shape[2] - 1)
    return most


def _costs(search: Search) -> Floats:
    """jobs × across × changed × (K+1): a job's part of the sum that the search makes small."""
    factors = np.stack([np.ones_like(search.rescale_factors), search.rescale_factors], axis=1)
    costs: Floats = 1.0 / (search.rates[:, :, None, :] * factors[:, None, :, None] + FLOOR)
    costs[:, :, 1, :] += TIE
    costs[:, :, :, 0] += 2 * TIE
    return costs


def _costs_at_home(search: Search, costs: Floats) -> Floats:
    """Cost of each job's current row; infinite if it has none or may not keep it."""
    gpus = search.current.sum(axis=1)
    nodes = np.count_nonzero(search.current, axis=1)
    allowed = (gpus >= search.min_gpus) & (gpus <= _most(search)) & (gpus > 0)
    allowed &= (search.current <= search.capacity).all(axis=1) & (nodes <= search.max_nodes)
    at = np.where(allowed, gpus, 0)
    across = (nodes > 1).astype(np.intp)
    return np.where(allowed, costs[np.arange(len(at)), across, 0, at], np.inf)


def _best_counts(search: Search) -> NDArray[np.int32]:
    """jobs × across × (K+1): the fewest GPUs that are fastest of all counts up to this one."""
    counts = np.arange(search.rates.shape[2])
    least = np.maximum(search.min_gpus[:, None], [1, 2])
    rates = np.where(counts >= least[:, :, None], search.rates, -1.0)
    record = np.maximum.accumulate(rates, axis=2)
    fresh = np.diff(record, axis=2, prepend=-1.0) > 0
    best = np.maximum.accumulate(np.where(fresh, counts, 0), axis=2)
    return np.ascontiguousarray(best, dtype=np.int32)


def _evolve_plain(
    search: Search, population: Counts, rng: np.random.Generator, limits: _Limits
) -> Ints:
    costs = _costs(search)
    given = np.concatenate([search.current[None], population.astype(np.intp)])
    states = _repaired(search, given, rng)
    more = states[rng.integers(len(states), size=max(limits.size - len(states), 0))]
    states = np.concatenate([states, _mutated(search, costs, more, rng)])
    states, totals = _survivors(states, _totals(search, costs, states), limits.size)
    waited = 0
    for _ in range(limits.generations):
        if waited >= limits.patience:
            break
        record = totals[0]
        parents = rng.integers(len(states), size=(2, 2, limits.size)).min(axis=0)
        heads = np.arange(states.shape[1]) < rng.integers(states.shape[1], size=(limits.size, 1))
        crossed = np.where(heads[:, :, None], states[parents[0]], states[parents[1]])
        children = _mutated(search, costs, crossed, rng)
        both = np.concatenate([children, states])
        scores = np.concatenate([_totals(search, costs, children), totals])
        states, totals = _survivors(both, scores, limits.size)
        waited = 0 if totals[0] < record * IMPROVED else waited + 1
    return states


def _totals(search: Search, costs: Floats, states: Ints) -> Floats:
    totals: Floats = _job_costs(search, costs, np.arange(states.shape[1]), states).sum(axis=1)
    return totals


def _job_costs(search: Search, costs: Floats, jobs: Ints, rows: Ints) -> Floats:
    """The costs of these jobs in these rows; the last axis of rows is the nodes."""
    across = (np.count_nonzero(rows, axis=-1) > 1).astype(np.intp)
    changed = (rows != search.current[jobs]).any(axis=-1).astype(np.intp)
    found: Floats = costs[jobs, across, changed, rows.sum(axis=-1)]
    return found


def _survivors(states: Ints, totals: Floats, size: int) -> tuple[Ints, Floats]:
    """The best; of equals the first, a child, so that the search drifts along plateaus."""
    kept, at = np.unique(totals, return_index=True)
    return states[at[:size]], kept[:size]


def _repaired(search: Search, states: Ints, rng: np.random.Generator) -> Ints:
    """Pollux's repair: each limit in turn takes away what is too much."""
    distributed = np.count_nonzero(states, axis=2, keepdims=True) > 1
    shares = (states > 0) & distributed
    states = np.where(shares & (shares.cumsum(axis=1) > 1), 0, states)
    order = rng.permutation(states.shape[2])
    walked = _cut(states[:, :, order], _most(search)[:, None], axis=2)
    states = np.empty_like(states)
    states[:, :, order] = np.where((walked > 0).cumsum(axis=2) > search.max_nodes, 0, walked)
    states = _cut(states, search.capacity, axis=1)
    states[states.sum(axis=2) < search.min_gpus] = 0
    return states


def _cut(states: Ints, room: Ints, axis: int) -> Ints:
    """First come, first served along an axis."""
    before = states.cumsum(axis=axis) - states
    cut: Ints = np.clip(room - before, 0, states)
    return cut


def _mutated(search: Search, costs: Floats, states: Ints, rng: np.random.Generator) -> Ints:
    """Pollux's mutations at its own rates in some states, single changes in the others."""
    count, jobs, _ = states.shape
    rates = np.where(rng.random((count, 1)) < 0.25, 0.1, 0.5 / jobs)
    resets = rng.random((count, jobs)) < rates
    zeroed = (rng.random((count, jobs)) < rates)[:, :, None] & (rng.random(states.shape) < 0.1)
    states = np.where(resets[:, :, None], search.current, np.where(zeroed, 0, states))
    states = _repaired(search, _resized(search, _renamed(search, states, rng), rng), rng)
    for _ in range(8):
        _raise_some(search, costs, states, rng)
    return states


def _renamed(search: Search, states: Ints, rng: np.random.Generator) -> Ints:
    """In some states a job's first node and its current first node change names, if equal."""
    at = np.flatnonzero(rng.random(len(states)) < 0.25)
    jobs = rng.integers(states.shape[1], size=len(at))
    here = (states[at, jobs] > 0).argmax(axis=1)
    there = (search.current[jobs] > 0).argmax(axis=1)
    equal = search.capacity[here] == search.capacity[there]
    at, here, there = at[equal], here[equal], there[equal]
    states[at, :, here], states[at, :, there] = states[at, :, there], states[at, :, here]
    return states


def _resized(search: Search, states: Ints, rng: np.random.Generator) -> Ints:
    """In most states one job gets another size, on the fewest nodes, before all others."""
    at = np.flatnonzero(rng.random(len(states)) < 0.75)
    jobs = rng.integers(states.shape[1], size=len(at))
    held = states[at, jobs].sum(axis=1)
    steps = np.stack([held + 1, held - 1, held * 2, rng.integers(1, _most(search)[jobs] + 2)])
    sizes = steps[rng.integers(len(steps), size=len(at)), np.arange(len(at))]
    sizes = np.clip(sizes, search.min_gpus[jobs], _most(search)[jobs])
    order = np.argsort(rng.random((len(at), states.shape[2])) - (states[at, jobs] > 0), axis=1)
    full = np.broadcast_to(search.capacity, order.shape)
    rows = np.empty_like(order)
    np.put_along_axis(rows, order, _cut(np.take_along_axis(full, order, 1), sizes[:, None], 1), 1)
    others = states[at]
    others[np.arange(len(at)), jobs] = 0
    spread = np.count_nonzero(others, axis=2, keepdims=True) > 1
    clash = spread & ((rows > 0) & (np.count_nonzero(rows, axis=1) > 1)[:, None])[:, None, :]
    others = _cut(np.where(clash, 0, others), (search.capacity - rows)[:, None, :], axis=1)
    others[np.arange(len(at)), jobs] = rows
    states[at] = others
    return states


def _raise_some(search: Search, costs: Floats, states: Ints, rng: np.random.Generator) -> None:
    """In each state a random job takes free GPUs of a random node, if that is feasible and good."""
    every = np.arange(len(states))
    held = states.sum(axis=2)
    jobs = np.argmin(rng.random(held.shape) + (held > 0) * rng.integers(2, size=(len(held), 1)), 1)
    free = search.capacity - states.sum(axis=1)
    nodes = np.argmax(rng.random(free.shape) + (free > 0), axis=1)
    rows = states[every, jobs]
    most = np.minimum(free[every, nodes], _most(search)[jobs] - held[every, jobs])
    rows[every, nodes] += np.where(rng.random(len(most)) < 0.5, most, np.minimum(most, 1))
    others = states > 0
    others &= np.count_nonzero(states, axis=2, keepdims=True) > 1
    others[every, jobs] = False
    spread = np.count_nonzero(rows, axis=1)
    clash = (others.any(axis=1) & (rows > 0)).any(axis=1)
    allowed = (spread == 1) | ((spread <= search.max_nodes) & ~clash)
    allowed &= rows.sum(axis=1) >= search.min_gpus[jobs]
    before = _job_costs(search, costs, jobs, states[every, jobs])
    better = allowed & (_job_costs(search, costs, jobs, rows) < before)
    states[every[better], jobs[better]] = rows[better]
