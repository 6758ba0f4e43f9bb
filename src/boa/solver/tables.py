"""The workload as arrays: every state a job may be in, and how long each epoch takes there.

A *state* is a GPU type and a width. A *row* is a set of states among which a job may move: under
class routing one row per class and GPU type, under the other routings one row per class. Rows of
similar length are stacked into *blocks*, so that one array operation advances many rows.
"""

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boa.errors import InputError
from boa.model.speedup import Floats
from boa.model.workload import JobClass, Workload
from boa.solver.objective import Rules, cost_rates, restart_time, run_times
from boa.units import GpuName

Ints = NDArray[np.intp]

_PADDING = 1 << 19
"""Cells that a block may waste on rows shorter than its longest before a new one is begun."""


@dataclass(frozen=True, slots=True)
class Row:
    """One class on one GPU type (or on any, if jobs may change type)."""

    class_index: int
    gpu_types: tuple[GpuName, ...]
    """One per state."""
    widths: tuple[int, ...]
    """One per state."""
    times: Floats
    """E[X_ij]/s_ij(k): epochs × states; infinite where the epoch cannot run there."""
    cost_rates: Floats
    """Dollars per second in each state."""
    restart: float


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of similar length, padded to a common number of epochs and states.

    Padding never changes a result: a row is left alone after its last epoch, and in a state that
    it does not have every epoch takes for ever.
    """

    rows: Ints
    class_of: Ints
    epochs: Ints
    """How many epochs each row really has, longest first."""
    durations: Floats
    """Time of each epoch in each state, rows × epochs × states; infinite if it cannot run there."""
    elapsed: Floats
    """Time from the beginning to the end of epoch j if all is run in one state, rows × (epochs
    + 1) × states; epochs that cannot run there count as nothing."""
    cost_rates: Floats
    """Rows × states."""
    restarts: Floats
    """One per row."""
    barred: NDArray[np.bool_] | None
    """Where an epoch cannot run, or None if all can run in every state of their row."""


@dataclass(frozen=True, slots=True)
class Tables:
    workload: Workload
    rules: Rules
    rows: tuple[Row, ...]
    blocks: tuple[Block, ...]
    time_weights: Floats
    """w_i / Σ w λ: what a second of a class-i job's JCT adds to the objective, per job an hour."""
    arrivals: Floats
    """λ_i per hour."""


_Stacks = tuple[tuple[Row, ...], tuple[Block, ...]]
_built: dict[int, tuple[weakref.ref[Workload], dict[Rules, _Stacks]]] = {}


def build_tables(workload: Workload, rules: Rules) -> Tables:
    """The tables of a workload; built once and kept for as long as the workload itself lives."""
    key = id(workload)
    if key not in _built or _built[key][0]() is not workload:
        _built[key] = (weakref.ref(workload, lambda _: _built.pop(key, None)), {})
    kept = _built[key][1]
    if rules not in kept:
        kept[rules] = _stacks(workload, rules)
    rows, blocks = kept[rules]
    total = workload.weighted_arrivals_per_hour
    return Tables(
        workload=workload,
        rules=rules,
        rows=rows,
        blocks=blocks,
        time_weights=np.array([c.weight / total for c in workload.classes]),
        arrivals=np.array([c.arrivals_per_hour for c in workload.classes]),
    )


def _stacks(workload: Workload, rules: Rules) -> _Stacks:
    rows: list[Row] = []
    for i, job_class in enumerate(workload.classes):
        found = list(_class_rows(workload, i, job_class, rules))
        if not found:
            raise InputError(
                f"classes[{i}].epochs", job_class.name, "a GPU type that can run every epoch"
            )
        rows.extend(found)
    blocks = []
    for block in _blocks(rows):
        blocks.append(block)
        for g, n in enumerate(block.rows.tolist()):  # let go of the copies: memory is the limit
            e, k = rows[n].times.shape
            rows[n] = replace(rows[n], times=block.durations[g, :e, :k])
    return tuple(rows), tuple(blocks)


def _class_rows(workload: Workload, i: int, job_class: JobClass, rules: Rules) -> Iterator[Row]:
    single = [
        row
        for name in workload.gpu_types
        if (row := _type_row(workload, i, job_class, name, rules)) is not None
    ]
    if rules.one_type_per_job:
        yield from (_without_useless(r) for r in single if _can_finish(r))
        return
    if single:
        merged = Row(
            i,
            tuple(name for row in single for name in row.gpu_types),
            tuple(k for row in single for k in row.widths),
            np.concatenate([row.times for row in single], axis=1),
            np.concatenate([row.cost_rates for row in single]),
            single[0].restart,
        )
        if np.isfinite(merged.times).any(axis=1).all():
            yield merged


def _type_row(
    workload: Workload, i: int, job_class: JobClass, name: GpuName, rules: Rules
) -> Row | None:
    curves = [epoch.speedups.get(name) for epoch in job_class.epochs]
    bases = {curve.base for curve in curves if curve is not None}
    if not bases:
        return None
    least = job_class.min_on(name)
    widths = np.arange(max(least, min(bases)), job_class.max_on(name) + 1, dtype=float)
    if all(c is not None for c in curves) and (len(bases) == 1 or max(bases) <= least):
        times = run_times(job_class.epochs, name, widths)
    else:
        times = np.full((len(curves), len(widths)), np.inf)
        for j, curve in enumerate(curves):
            if curve is not None:
                open_ = widths >= curve.base
                times[j, open_] = run_times([job_class.epochs[j]], name, widths[open_])[0]
    rates = cost_rates(widths, workload.gpu_types[name], rules.billing)
    whole = tuple(int(k) for k in widths)
    return Row(i, (name,) * len(whole), whole, times, rates, restart_time(job_class, rules))


def _can_finish(row: Row) -> bool:
    """Every epoch has a width that can run it."""
    return bool(np.isfinite(row.times).any(axis=1).all())


def _without_useless(row: Row) -> Row:
    """Drop widths that another one beats in every epoch at no higher price.

    Exact: replacing the beaten width by the other one everywhere in a sequence makes nothing
    slower or dearer and adds no rescaling. Measured curves have many (5 GPUs on two nodes are
    often slower than 4 on one), and the flat end of every table is nothing else. Each width is
    held against the fastest of the cheaper ones in the first and in the last epoch only: that
    finds nearly all of them.
    """
    useless = np.zeros(len(row.widths), dtype=bool)
    for example in (row.times[0], row.times[-1]):
        order = np.lexsort((example, row.cost_rates))
        fastest = np.minimum.accumulate(example[order])
        leads = np.concatenate([[True], example[order][1:] < fastest[:-1]])
        leader = np.maximum.accumulate(np.where(leads, np.arange(len(order)), 0))
        rivals, widths = order[leader[~leads]], order[~leads]
        beaten = (row.times[:, rivals] <= row.times[:, widths]).all(axis=0)
        useless[widths[beaten]] = True
    at = np.flatnonzero(~useless)
    return Row(
        row.class_index,
        row.gpu_types[: len(at)],
        tuple(row.widths[k] for k in at.tolist()),
        row.times[:, at],
        row.cost_rates[at],
        row.restart,
    )


def _blocks(rows: Sequence[Row]) -> Iterator[Block]:
    """Stack rows, longest first, while padding stays small."""
    order = sorted(range(len(rows)), key=lambda n: (-len(rows[n].times), -len(rows[n].widths)))
    group: list[int] = []
    states = waste = used = 0
    for n in order:
        epochs, width = rows[n].times.shape
        if group:
            longest = len(rows[group[0]].times)
            grown = max(states, width)
            waste_after = waste + longest * grown - epochs * width
            if waste_after > max(_PADDING, (used + epochs * width) // 3):
                yield _stack(rows, group)
                group, states, waste, used = [], 0, 0, 0
            else:
                waste = waste_after
        group.append(n)
        states, used = max(states, width), used + epochs * width
    if group:
        yield _stack(rows, group)


def _stack(rows: Sequence[Row], group: list[int]) -> Block:
    epochs = max(len(rows[n].times) for n in group)
    states = max(len(rows[n].widths) for n in group)
    durations = np.empty((len(group), epochs, states))
    elapsed = np.zeros((len(group), epochs + 1, states))
    rates = np.ones((len(group), states))
    barred: NDArray[np.bool_] | None = None
    for g, n in enumerate(group):
        row = rows[n]
        e, k = row.times.shape
        durations[g, :e, :k] = row.times
        durations[g, e:] = durations[g, :e, k:] = np.inf
        rates[g, :k] = row.cost_rates
        finite = np.isfinite(row.times)
        if finite.all():
            np.cumsum(row.times, axis=0, out=elapsed[g, 1 : e + 1, :k])
            continue
        np.cumsum(np.where(finite, row.times, 0.0), axis=0, out=elapsed[g, 1 : e + 1, :k])
        if barred is None:
            barred = np.zeros(durations.shape, dtype=bool)
        barred[g, :e, :k] = ~finite
    return Block(
        rows=np.array(group),
        class_of=np.array([rows[n].class_index for n in group]),
        epochs=np.array([len(rows[n].times) for n in group]),
        durations=durations,
        elapsed=elapsed,
        cost_rates=rates,
        restarts=np.array([rows[n].restart for n in group]),
        barred=barred,
    )
