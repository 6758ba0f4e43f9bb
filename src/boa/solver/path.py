"""The cheapest way through training at a given price of money: a shortest path per row.

For a multiplier μ on the budget, a second spent in state k is worth f(k) = w + μ · cost_rate(k),
and a job looks for the sequence of states that minimises Σ f(k_j) (time_j(k_j) + r·1[k changes]),
so that, with V_j(k) the least value of epochs 1..j that ends in state k,

    V_j(k) = f(k) time_j(k) + min( V_(j−1)(k), m_(j−1) + f(k) r ),      m_j = min_k V_j(k),

O(epochs × states) per row, with all rows and many multipliers advanced by the same array
operations. Only m_j and the state that attains it are kept. The sequence is recovered stretch by
stretch from the end: the last one begins after the epoch a at which m_a + f(k) (r + the time of all
epochs after a in state k) is least.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boa.model.speedup import Floats
from boa.solver.kernel import COMPILED, compiled_paths
from boa.solver.tables import Block, Ints

_CELLS = 1 << 14
"""Rows × states advanced together: small enough for the working set to stay in cache."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The optimal sequence of each requested (row, multiplier)."""

    values: Floats
    times: Floats
    costs: Floats
    states: NDArray[np.int32]
    """requests × epochs."""


def shortest_paths(
    block: Block, at: Ints, time_weights: Floats, money_weights: Floats, *, compiled: bool = True
) -> Paths:
    """Minimise time_weight · time + money_weight · cost on the rows `at` of the block.

    Through the C kernel if this installation has it, else (or without `compiled`) in NumPy.
    """
    if compiled and COMPILED:
        times, costs, states = compiled_paths(block, at, time_weights, money_weights)
    else:
        step = max(1, _CELLS // block.cost_rates.shape[1])
        parts = [slice(start, start + step) for start in range(0, len(at), step)]
        solved = [_solve_part(block, at[p], time_weights[p], money_weights[p]) for p in parts]
        times, costs = (np.concatenate([s[n] for s in solved]) for n in (0, 1))
        states = np.concatenate([s[2] for s in solved])
    return Paths(time_weights * times + money_weights * costs, times, costs, states)


def _solve_part(
    block: Block, at: Ints, time_weights: Floats, money_weights: Floats
) -> tuple[Floats, Floats, NDArray[np.int32]]:
    rows = _as_slice(at)
    worth = time_weights[:, None] + money_weights[:, None] * block.cost_rates[rows]
    if block.rescale_s[rows].any():
        minima, argmin = _sweep(block, rows, worth)
        return _trace_back(block, at, worth, minima, argmin)
    return _free_moves(block, rows, worth)


def _as_slice(at: Ints) -> slice | Ints:
    """Consecutive rows as a slice: a view instead of a copy at every epoch."""
    first, last = int(at[0]), int(at[-1])
    if last - first + 1 == len(at) and (np.diff(at) == 1).all():
        return slice(first, last + 1)
    return at


def _sweep(block: Block, rows: slice | Ints, worth: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """m_j and the state that attains it, for every epoch j."""
    epochs, n = block.durations.shape[1], len(worth)
    each = np.arange(n)
    starting = worth * block.rescale_s[rows][:, None]
    values = starting.copy()
    scratch = np.empty_like(worth)
    minima = np.zeros((epochs + 1, n))
    argmin = np.zeros((epochs + 1, n), dtype=np.int32)
    for j, active in enumerate(_active(block, rows)):
        if active < n:  # rows are longest first: those that have ended are cut off
            n = active
            rows = slice(rows.start, rows.start + n) if isinstance(rows, slice) else rows[:n]
            worth, starting, values = worth[:n], starting[:n], values[:n]
            scratch, each = scratch[:n], each[:n]
        if j:
            np.add(starting, minima[j, :n, None], out=scratch)
            np.minimum(values, scratch, out=values)
        np.multiply(worth, block.durations[rows, j], out=scratch)
        values += scratch
        best = values.argmin(axis=1)
        argmin[j + 1, :n] = best
        minima[j + 1, :n] = values[each, best]
    return minima, argmin


def _active(block: Block, rows: slice | Ints) -> list[int]:
    """How many of the rows have an epoch j, for each j."""
    ended = np.bincount(block.epochs[rows], minlength=block.durations.shape[1] + 1)
    return (len(block.epochs[rows]) - np.cumsum(ended)[:-1]).tolist()  # type: ignore[no-any-return]


def _trace_back(
    block: Block, at: Ints, worth: Floats, minima: Floats, argmin: NDArray[np.int32]
) -> tuple[Floats, Floats, NDArray[np.int32]]:
    epochs, n = len(minima) - 1, len(at)
    each = np.arange(n)
    before = np.arange(epochs)
    times, costs = np.zeros(n), np.zeros(n)
    states = np.zeros((n, epochs), dtype=np.int32)
    end = block.epochs[at]
    while n:
        state = argmin[end, each]
        ran = np.where(before < end[:, None], block.durations[at[each], :, state], 0.0)
        held = block.rescale_s[at[each]][:, None] + np.cumsum(ran[:, ::-1], axis=1)[:, ::-1]
        value = minima[:-1, each].T + worth[each, state][:, None] * held
        begin = np.where(before < end[:, None], value, np.inf).argmin(axis=1)
        held = held[np.arange(len(each)), begin]
        times[each] += held
        costs[each] += held * block.cost_rates[at[each], state]
        inside = (before >= begin[:, None]) & (before < end[:, None])
        states[each] = np.where(inside, state[:, None], states[each])
        each, end = each[begin > 0], begin[begin > 0]
        n = len(each)
    return times, costs, states


def _free_moves(
    block: Block, rows: slice | Ints, worth: Floats
) -> tuple[Floats, Floats, NDArray[np.int32]]:
    """Without rescaling times every epoch chooses alone."""
    durations = block.durations[rows]
    states = (worth[:, None, :] * durations).argmin(axis=2)
    held = np.take_along_axis(durations, states[:, :, None], axis=2)[:, :, 0]
    held[np.arange(held.shape[1]) >= block.epochs[rows][:, None]] = 0.0
    rates = np.take_along_axis(block.cost_rates[rows], states, axis=1)
    return held.sum(axis=1), (held * rates).sum(axis=1), states.astype(np.int32)
