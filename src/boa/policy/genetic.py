"""The genetic search of the Pollux policy (OSDI'21): which job gets which GPUs of which node.

A state is a matrix jobs × nodes of GPU counts. Its fitness is Pollux's: the harmonic mean of the
jobs' speedups (+0.001), where a job whose row differs from its current one would be restarted and
counts for less. So are the population, the one-point crossover over jobs, the mutations (back to
the current row, elements to zero, more where GPUs are free) and the repair.

Liberties, none of which changes what is optimised:

- There is one objective. Pollux keeps utility as a second one but chooses by the first.
- Parents are chosen by binary tournament; of parents and children the best survive. Of states with
  equal fitness one survives: they differ in the names of nodes.
- Mutation also tries sizes at the expense of others, whole nodes, swaps of two jobs, and other
  names for nodes of equal capacity. A job that loses GPUs, and jobs when some are free, take the
  best of what is left.
- The search ends early when the best has not improved for `patience` generations.
- Between states whose fitness differs by less than a billionth, the one that leaves fewer jobs
  without GPUs and then the one that restarts fewer is preferred.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boa import compiled as kernels
from boa.model.speedup import Floats
from boa.solver.tables import Ints

_library = kernels.load(__file__, "_genetic")
COMPILED = _library is not None

FLOOR = 0.001
"""Added to every speedup, so that a job without GPUs costs much but not everything."""

TIE = 1e-9
"""The worth of a job not restarted, and half of that of a job not left without GPUs."""

LANES = 16

@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One round's problem; job rows are in order of priority."""

    rates: Floats
    """jobs × 2 × (K+1): speedup with k GPUs on one node [j, 0, k], across nodes [j, 1, k]."""
    current: Ints
    """jobs × nodes: GPUs now held"""
    restart_factors: Floats
    """jobs: what a changed row multiplies the speedup by"""
    max_gpus: Ints
    """jobs"""
    min_gpus: Ints
    """jobs: a job with fewer gets none"""
    capacity: Ints
    """nodes: GPUs on each"""
    max_nodes: int = 16

def fitness(search: Search, states: Ints) -> Floats:
    """The harmonic mean of the speedups (+0.001) in each state: population × jobs × nodes."""
    if not states.shape[1]:
        return np.zeros(len(states))
    jobs = np.arange(states.shape[1])
    gpus = np.minimum(states.sum(axis=2), search.rates.shape[2] - 1)
    across = (np.count_nonzero(states, axis=2) > 1).astype(np.intp)
    changed = (states != search.current).any(axis=2)
    speedups = search.rates[jobs, across, gpus] * np.where(changed, search.restart_factors, 1.0)
    means: Floats = len(jobs) / (1.0 / (speedups + FLOOR)).sum(axis=1)
    return means


def evolve(
    search: Search,
    population: Ints,
    *,
    seed: int,
    size: int = 100,
    generations: int = 100,
    patience: int = 25,
    compiled: bool = True,
) -> Ints:
    limits = (size, generations, patience)
    return _evolve_compiled(search, population, seed, limits)

class _Search(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("jobs", "nodes", "width", "max_nodes")),
        *((name, ctypes.c_void_p) for name in ("costs", "best", "most", "least")),
        *((name, ctypes.c_void_p) for name in ("current", "capacity")),
    )


def _evolve_compiled(
    search: Search, population: Ints, seed: int, limits: tuple[int, int, int]
) -> Ints:
    assert _library is not None
    jobs, nodes = search.current.shape
    width = -(-nodes // LANES) * LANES
    arrays: tuple[NDArray[Any], ...] = (
        _costs(search),
        _best_counts(search),
        np.ascontiguousarray(_most(search), dtype=np.int32),
        np.ascontiguousarray(search.min_gpus, dtype=np.int32),
        _padded(search.current, width),
        _padded(search.capacity, width),
    )
    warm = _padded(population, width)
    found = np.empty((limits[0], jobs, width), dtype=np.uint8)
    described = _Search(
        jobs, width, search.rates.shape[2], search.max_nodes, *(a.ctypes.data for a in arrays)
    )
    count = _library.boa_evolve(
        ctypes.byref(described),
        ctypes.c_void_p(warm.ctypes.data),
        *(ctypes.c_int64(n) for n in (len(warm), *limits)),
        ctypes.c_uint64(seed % 2**64),
        ctypes.c_void_p(found.ctypes.data),
    )
    if count < 0:
        raise MemoryError("no memory for the search's populations")
    return found[:count, :, :nodes].astype(np.intp)


def _padded(counts: Ints, width: int) -> NDArray[np.uint8]:
    """With nodes without GPUs added, so that the kernel's loops over nodes have no remainder."""
    wide = np.zeros((*counts.shape[:-1], width), dtype=np.uint8)
    wide[..., : counts.shape[-1]] = counts
    return wide


def _most(search: Search) -> Ints:
    return np.minimum(search.max_gpus, search.rates.shape[2] - 1)


def _costs(search: Search) -> Floats:
    """jobs × across × changed × (K+1): a job's part of the sum that the search makes small."""
    factors = np.stack([np.ones_like(search.restart_factors), search.restart_factors], axis=1)
    costs = 1.0 / (search.rates[:, :, None, :] * factors[:, None, :, None] + FLOOR)
    costs[:, :, 1, :] += TIE
    costs[:, :, :, 1:] -= 2 * TIE
    return np.ascontiguousarray(costs)


def _best_counts(search: Search) -> NDArray[np.int32]:
    """jobs × across × (K+1): the fewest GPUs that are fastest of all counts up to this one."""
    counts = np.arange(search.rates.shape[2])
    least = np.maximum(search.min_gpus[:, None], [1, 2])
    rates = np.where(counts >= least[:, :, None], search.rates, -1.0)
    record = np.maximum.accumulate(rates, axis=2)
    fresh = np.diff(record, axis=2, prepend=-1.0) > 0
    best = np.maximum.accumulate(np.where(fresh, counts, 0), axis=2)
    return np.ascontiguousarray(best, dtype=np.int32)
