"""The monolithic program through HiGHS: an independent check of the exact solver.

Nothing here knows of multipliers or shortest paths. For every row (class and GPU type), epoch j
and state k:

    x_jk   share of the class's jobs in state k in epoch j      (binary if deterministic)
    y_jk   share that is started there, y_jk >= x_jk − x_(j−1)k
    p      share of the class's jobs on this row, Σ_k x_jk = p,  Σ_rows p = 1

minimise the objective subject to the budget, to bounds on what classes that share money spend, and
to the classes' caps on their mean JCT.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from boa.errors import BoaError, NoPlanFound
from boa.model.plan import Plan
from boa.model.speedup import Floats
from boa.solver.assemble import plan_of_states
from boa.solver.tables import Row, Tables
from boa.units import Seconds, UsdPerHour

DEFAULT_GAP = 1e-4
_TOLERANCE = 1e-9
_PROVEN = 1e-6
"""The gap, relative, under which an integer optimum counts as proven."""
_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MilpAnswer:
    plan: Plan
    lower_bound: Seconds
    proven: bool
    """Optimal, rather than stopped at a gap or by a time limit."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where one row's variables lie: x, then y, each epochs × states, then p."""

    first: int
    shape: tuple[int, int]

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def x(self) -> _Ints:
        return (self.first + np.arange(self.size)).reshape(self.shape)

    @property
    def y(self) -> _Ints:
        return self.x + self.size

    @property
    def p(self) -> int:
        return self.first + 2 * self.size


@dataclass(frozen=True, slots=True)
class SpendBound:
    """At least and at most so much is spent on these classes together."""

    classes: tuple[int, ...]
    least: UsdPerHour
    most: UsdPerHour


class _Program:
    """A linear program under construction, constraint by constraint."""

    def __init__(self, columns: int) -> None:
        self.cost = np.zeros(columns)
        self.upper = np.ones(columns)
        self.integral = np.zeros(columns, dtype=bool)
        self._entries: list[tuple[_Ints, _Ints, Floats]] = []
        self._lower: list[Floats] = []
        self._upper: list[Floats] = []
        self._rows = 0

    def add(
        self, columns: list[_Ints], values: list[Floats], lower: float, upper: float, count: int
    ) -> None:
        """`count` constraints at once; each part gives one entry (or a list of them) per row."""
        for cols, vals in zip(columns, values, strict=True):
            per_row = cols.reshape(count, -1)
            index = np.repeat(self._rows + np.arange(count), per_row.shape[1])
            entries = np.broadcast_to(vals, cols.shape).reshape(-1)
            self._entries.append((index, per_row.reshape(-1), entries))
        self._lower.append(np.full(count, lower))
        self._upper.append(np.full(count, upper))
        self._rows += count

    def build(self) -> highspy.HighsLp:
        rows, cols, values = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        order = np.argsort(rows, kind="stable")
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), self._rows
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = self.cost, np.zeros(len(self.cost)), self.upper
        lp.row_lower_, lp.row_upper_ = np.concatenate(self._lower), np.concatenate(self._upper)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        counts = np.bincount(rows, minlength=self._rows)
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        lp.a_matrix_.index_ = cols[order].astype(np.int32)
        lp.a_matrix_.value_ = values[order]
        if self.integral.any():
            kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
            lp.integrality_ = [kinds[int(i)] for i in self.integral]
        return lp


def solve_milp(
    tables: Tables,
    budget: UsdPerHour,
    deterministic: bool = False,
    gap: float | None = None,
    time_limit_s: Seconds | None = None,
    bounds: Sequence[SpendBound] = (),
) -> MilpAnswer | None:
    """The same optimum as the exact solver's, mixed or with one sequence per class.

    `bounds`: of classes that share money. None if there is no plan: the caps may cost more than the
    budget with one sequence per class.
    """
    columns = _layout(tables)
    lp = _program(tables, columns, budget, deterministic, bounds).build()
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("primal_feasibility_tolerance", _TOLERANCE)
    solver.setOptionValue("dual_feasibility_tolerance", _TOLERANCE)
    solver.setOptionValue("mip_feasibility_tolerance", _TOLERANCE)
    solver.setOptionValue("mip_rel_gap", DEFAULT_GAP if gap is None else gap)
    solver.setOptionValue("mip_abs_gap", 0.0)
    solver.setOptionValue("threads", 1)
    if time_limit_s is not None:
        solver.setOptionValue("time_limit", float(time_limit_s))
    solver.passModel(lp)
    solver.HandleKeyboardInterrupt = True  # else Ctrl-C waits for the end
    solver.solve()
    return _answer(tables, columns, solver, deterministic, time_limit_s)


def _layout(tables: Tables) -> list[_Columns]:
    columns: list[_Columns] = []
    first = 0
    for row in tables.rows:
        columns.append(_Columns(first, (row.times.shape[0], row.times.shape[1])))
        first = columns[-1].p + 1
    return columns


def _program(
    tables: Tables,
    columns: list[_Columns],
    budget: UsdPerHour,
    deterministic: bool,
    bounds: Sequence[SpendBound] = (),
) -> _Program:
    program = _Program(columns[-1].p + 1)
    spend = np.zeros(len(program.cost))
    seconds = np.zeros(len(program.cost))
    for row, at in zip(tables.rows, columns, strict=True):
        arrivals = tables.arrivals[row.class_index]
        barred = ~np.isfinite(row.times)
        seconds[at.x] = np.where(barred, 0.0, row.times)
        seconds[at.y] = row.rescale_s
        program.upper[at.x[barred]] = 0.0
        for part in (at.x, at.y):
            spend[part] = seconds[part] * row.cost_rates * arrivals
            program.cost[part] = seconds[part] * arrivals * tables.time_weights[row.class_index]
        program.integral[at.x] = deterministic
        _flow(program, at)
    used = np.arange(len(spend))
    program.add([used], [spend / budget], -np.inf, 1.0, 1)
    for bound in bounds:
        mine = [
            np.concatenate([at.x, at.y], axis=None)
            for row, at in zip(tables.rows, columns, strict=True)
            if row.class_index in bound.classes
        ]
        if mine:
            paid = np.concatenate(mine)
            least, most = bound.least / budget, bound.most / budget
            program.add([paid], [spend[paid] / budget], least, most, 1)
    _choices(tables, program, columns, seconds)
    return program


def _flow(program: _Program, at: _Columns) -> None:
    """Σ_k x_jk = p in every epoch; a job that was not there before was started there."""
    epochs, states = at.shape
    one = np.ones(1)
    program.add([at.x, np.full(epochs, at.p)], [one, -one], 0.0, 0.0, epochs)
    program.add([at.y[0], at.x[0]], [one, -one], 0.0, np.inf, states)
    if epochs > 1:
        count = (epochs - 1) * states
        parts = [at.y[1:].reshape(-1), at.x[1:].reshape(-1), at.x[:-1].reshape(-1)]
        program.add(parts, [one, -one, one], 0.0, np.inf, count)


def _choices(tables: Tables, program: _Program, columns: list[_Columns], seconds: Floats) -> None:
    """Every job goes somewhere; a capped class keeps its mean JCT."""
    for i, job_class in enumerate(tables.workload.classes):
        mine = [at for row, at in zip(tables.rows, columns, strict=True) if row.class_index == i]
        shares = np.array([at.p for at in mine])
        program.add([shares], [np.ones(1)], 1.0, 1.0, 1)
        if job_class.max_jct_s is not None:
            used = np.concatenate([np.concatenate([at.x, at.y], axis=None) for at in mine])
            program.add([used], [seconds[used] / job_class.max_jct_s], -np.inf, 1.0, 1)


def _answer(
    tables: Tables,
    columns: list[_Columns],
    solver: highspy.Highs,
    deterministic: bool,
    time_limit_s: Seconds | None,
) -> MilpAnswer | None:
    status = solver.getModelStatus()
    info = solver.getInfo()
    if status == highspy.HighsModelStatus.kInterrupt:
        raise KeyboardInterrupt
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        if status == highspy.HighsModelStatus.kTimeLimit:
            raise NoPlanFound(
                f"HiGHS found no plan within {time_limit_s:g} s; raise --time-limit-s or --gap, "
                "or use --solver exact"
            )
        if status == highspy.HighsModelStatus.kInfeasible and deterministic:
            return None
        raise BoaError(f"HiGHS stopped without an answer: {solver.modelStatusToString(status)}")
    optimal = status == highspy.HighsModelStatus.kOptimal
    values = np.array(solver.getSolution().col_value)
    bound = info.mip_dual_bound if deterministic else info.objective_function_value
    parts: list[list[tuple[float, int, list[int]]]] = [[] for _ in tables.workload.classes]
    for n, (row, at) in enumerate(zip(tables.rows, columns, strict=True)):
        parts[row.class_index] += [(s, n, states) for s, states in _sequences(row, values[at.x])]
    return MilpAnswer(
        plan_of_states(tables, [_normalised(part) for part in parts]),
        float(bound) if optimal or deterministic else 0.0,
        optimal and (not deterministic or info.mip_gap <= _PROVEN),
    )


def _sequences(row: Row, shares: Floats) -> list[tuple[float, list[int]]]:
    """Take the shares apart into sequences that start no more often than they must."""
    left = np.where(shares > 1e-7, shares, 0.0)
    fresh = left.copy()
    fresh[1:] = np.maximum(0.0, left[1:] - left[:-1])
    found: list[tuple[float, list[int]]] = []
    while left[0].max() > 1e-7:
        states = [int(left[0].argmax())]
        for j in range(1, len(left)):
            stay = states[-1]
            states.append(
                stay if left[j, stay] > fresh[j, stay] + 1e-12 else int(fresh[j].argmax())
            )
        share = float(left[np.arange(len(left)), states].min())
        for j, state in enumerate(states):
            share = min(share, fresh[j, state]) if j and state != states[j - 1] else share
        if share <= 0.0:
            break
        for j, state in enumerate(states):
            left[j, state] -= share
            if j == 0 or state != states[j - 1]:
                fresh[j, state] -= share
        found.append((share, states))
    return found


def _normalised(
    parts: list[tuple[float, int, list[int]]],
) -> list[tuple[float, int, list[int]]]:
    kept = [part for part in parts if part[0] > 1e-7]
    total = sum(share for share, _, _ in kept)
    return [(share / total, row, states) for share, row, states in kept]
