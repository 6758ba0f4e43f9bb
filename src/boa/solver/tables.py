"""The workload as arrays: every state a job may be in, and how long each epoch takes there.

A *state* is a GPU type and a width. A *row* is a set of states among which a job may move: under
class routing one row per class and GPU type, under the other routings one row per class. Rows of
similar length are stacked into *blocks*, so that one array operation advances many rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boa.errors import InputError
from boa.model.speedup import Floats
from boa.model.workload import JobClass, Workload
from boa.solver.objective import Rules, cost_rates, rescale_time, run_times
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
    rescale_s: float
    """r: what every start takes; 0 where rescaling takes no time."""


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
    cost_rates: Floats
    """Rows × states."""
    rescale_s: Floats
    """One per row."""


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


def build_tables(workload: Workload, rules: Rules) -> Tables:
    rows: list[Row] = []
    for i, job_class in enumerate(workload.classes):
        found = list(_class_rows(workload, i, job_class, rules))
        if not found:
            raise InputError(
                f"classes[{i}].epochs",
                job_class.name,
                "a GPU type with a speedup in every epoch, or --routing migrate",
                f"no GPU type runs all of {job_class.name}",
            )
        rows.extend(found)
    total = workload.weighted_arrivals_per_hour
    return Tables(
        workload=workload,
        rules=rules,
        blocks=tuple(_blocks(rows)),
        rows=tuple(rows),
        time_weights=np.array([c.weight / total for c in workload.classes]),
        arrivals=np.array([c.arrivals_per_hour for c in workload.classes], dtype=float),
    )


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
            single[0].rescale_s,
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
    return Row(i, (name,) * len(whole), whole, times, rates, rescale_time(job_class, rules))


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
        row.rescale_s,
    )


def _blocks(rows: list[Row]) -> Iterator[Block]:
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


def _stack(rows: list[Row], group: list[int]) -> Block:
    """Copy the rows' times into one array, and let the rows look into it from now on."""
    epochs = max(len(rows[n].times) for n in group)
    states = max(len(rows[n].widths) for n in group)
    durations = np.empty((len(group), epochs, states))
    rates = np.ones((len(group), states))
    for g, n in enumerate(group):
        row = rows[n]
        e, k = row.times.shape
        durations[g, :e, :k] = row.times
        durations[g, e:] = durations[g, :e, k:] = np.inf
        rates[g, :k] = row.cost_rates
        rows[n] = replace(row, times=durations[g, :e, :k])
    return Block(
        rows=np.array(group),
        class_of=np.array([rows[n].class_index for n in group]),
        epochs=np.array([len(rows[n].times) for n in group]),
        durations=durations,
        cost_rates=rates,
        rescale_s=np.array([rows[n].rescale_s for n in group], dtype=float),
    )
