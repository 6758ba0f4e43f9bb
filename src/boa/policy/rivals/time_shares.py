"""Gavel's programs: which part of its time every job should have on every GPU type.

Jobs are rows, GPU types columns; x is the part, Σ over types at most 1, and no type has more GPUs
in use, on average, than there are. Solutions are vertices: of equal jobs one runs before the other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import highspy
import numpy as np

from boa.errors import BoaError
from boa.model.kept_rows import Ints
from boa.model.speedup import Floats

FAIR_ENOUGH = 0.01
"""Part of the fairest ρ that is not looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """Jobs that share a cluster in time."""

    rates: Floats
    """Progress per second of every job on every type; 0: not there."""
    widths: Ints
    gpus: Floats
    """GPUs of every type."""
    left: Floats
    """Progress that every job has yet to make …"""
    whole: Floats
    """… and all that it has to."""
    age: Floats
    """Seconds since it came."""
    start_s: Floats
    """Seconds that its start takes."""

    def split(self, widths: Ints | float) -> Floats:
        """Rate of every job with an equal part of the cluster, if it takes this many GPUs."""
        part = np.broadcast_to(self.gpus / len(self.rates), self.rates.shape)
        part = part / np.reshape(widths, (-1, 1))
        part = part / np.maximum(part.sum(axis=1, keepdims=True), 1.0)
        return np.asarray((self.rates * part).sum(axis=1))


Objective: TypeAlias = Callable[[Contest], Floats]


def max_sum(contest: Contest) -> Floats:
    """The most progress per second in all, each job's counted as it is."""
    return _solved(contest, contest.rates, np.zeros(len(contest.rates)))[0]


def max_min(contest: Contest) -> Floats:
    """The worst-off job as fast as can be, by what it would do with an equal part."""
    needs = contest.split(1.0) / contest.widths
    return _solved(contest, np.zeros_like(contest.rates), needs)[0]


def fair_finish(contest: Contest) -> Floats:
    """The least of the largest ρ: when a job will have ended, by when it would have with an equal
    part of the cluster from the start."""
    alone = contest.start_s + contest.whole / np.maximum(contest.split(contest.widths), 1e-300)

    def by(rho: float) -> tuple[Floats, bool]:
        needs = contest.left / np.maximum(rho * alone - contest.age, 1e-9)
        shares, reached = _solved(contest, np.zeros_like(contest.rates), needs)
        return shares, reached >= 1.0

    low = high = max(float((contest.age / alone).max()), 1e-3)
    found, in_time = by(high)
    while not in_time:
        low, high = high, 2.0 * high
        found, in_time = by(high)
    while high - low > FAIR_ENOUGH * high:
        middle = 0.5 * (low + high)
        shares, in_time = by(middle)
        if in_time:
            found, high = shares, middle
        else:
            low = middle
    return found


def symmetric(contest: Contest, shares: Floats) -> Floats:
    """Equal jobs, equally: every job has the mean of those that are like it."""
    keys = np.column_stack([contest.rates, contest.widths])
    _, of = np.unique(keys, axis=0, return_inverse=True)
    of = of.reshape(-1)
    sums = np.zeros((of.max() + 1, shares.shape[1]))
    np.add.at(sums, of, shares)
    return np.asarray((sums / np.bincount(of)[:, None])[of])


def _solved(contest: Contest, values: Floats, needs: Floats) -> tuple[Floats, float]:
    """The shares of most value, and the most z at which every job makes z × its need: where jobs
    need anything, that alone counts. A job that can run nowhere needs nothing."""
    jobs, types = contest.rates.shape
    able = contest.rates > 0
    needing = np.flatnonzero(able.any(axis=1) & (needs > 0))
    columns = np.arange(jobs * types).reshape(jobs, types)
    matrix = np.zeros((jobs + types + len(needing), jobs * types + 1))
    matrix[np.arange(jobs)[:, None], columns] = 1.0
    matrix[jobs + np.arange(types), columns] = contest.widths[:, None]
    behind = jobs + types + np.arange(len(needing))
    matrix[behind[:, None], columns[needing]] = -contest.rates[needing] / needs[needing, None]
    matrix[behind, -1] = 1.0
    limits = np.concatenate([np.ones(jobs), contest.gpus, np.zeros(len(needing))])
    costs = np.append(-values.ravel(), -1.0 if len(needing) else 0.0)
    most = highspy.kHighsInf if len(needing) else 0.0
    found = least(costs, matrix, limits, np.append(able.ravel().astype(float), most))
    reached = float(found[-1]) if len(needing) else np.inf
    return np.clip(found[:-1].reshape(jobs, types), 0.0, 1.0), reached


def least(costs: Floats, matrix: Floats, limits: Floats, upper: Floats) -> Floats:
    """x of least cost with matrix · x ≤ limits, 0 ≤ x ≤ upper: a vertex."""
    rows, columns = matrix.shape
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, rows
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = costs, np.zeros(columns), upper
    lp.row_lower_, lp.row_upper_ = np.full(rows, -highspy.kHighsInf), limits
    at, where = np.nonzero(matrix.T)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.searchsorted(at, np.arange(columns + 1)).astype(np.int32)
    lp.a_matrix_.index_, lp.a_matrix_.value_ = where.astype(np.int32), matrix.T[at, where]
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("presolve", "off")  # which takes longer than the program
    solver.passModel(lp)
    solver.run()
    status = solver.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise BoaError(f"HiGHS stopped without an answer: {solver.modelStatusToString(status)}")
    return np.array(solver.getSolution().col_value)
