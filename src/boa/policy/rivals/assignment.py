"""Sia's integer program: at most one configuration for every job, within every type's GPUs.

HiGHS needs a fifth of a second for sixty jobs, and a simulation asks every minute of its time. So:

1. Price the GPUs (`pricing`): each job then chooses alone, and what they all pay, less the price of
   the capacity, bounds the optimum from below. What a choice costs above the job's cheapest is its
   loss; an objective is the bound, the losses and the price of the GPUs left idle.
2. One table per GPU type (`_tables`): the least loss at which the jobs from t on fit into what is
   left of that type. A move between types is charged half to each, so the sum over the types never
   overstates; it closes nearly all of the gap that whole jobs leave.
3. Walk through the jobs (`_walk`), keeping the few partial assignments whose loss and tables stay
   within a budget just above the proven bound. The first answer within tolerance ends the search.

Only if too many partial assignments remain does HiGHS get the program, as it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import highspy
import numpy as np
from numpy.typing import NDArray

from boa.errors import BoaError
from boa.model.speedup import Floats
from boa.policy.rivals.pricing import Choices, prices_of
from boa.solver.tables import Ints

Bools: TypeAlias = NDArray[np.bool_]

_WIDTHS = (48, 400, 2000)  # partial assignments kept at once, before HiGHS is asked
_COMBINED = 32  # combinations of choices that a single step of the walk may take
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    costs: Floats  # jobs × configurations; infinite where not allowed
    gpus: Ints  # configurations: the GPUs it takes
    kinds: Ints  # configurations: the index of its GPU type
    capacity: Ints  # GPU types
    unallocated: float  # the cost of a job left without


@dataclass(frozen=True, slots=True)
class _Core:
    """The search that is left when only choices of a loss up to `reach` are looked at."""

    choices: Choices
    losses: Floats
    uses: Ints  # choices × types: the GPUs it takes
    best: Ints  # jobs: the choice of no loss
    reach: float
    order: Ints  # the jobs that have a real choice, the clearest first
    left: Ints  # GPUs of each type that the other jobs leave
    tables: Floats  # stages + 1 × types × (`pad` + GPUs left); infinite below none left
    pad: int

    @property
    def root(self) -> float:
        """The loss that no assignment gets below."""
        if self.left.min() < 0:
            return self.reach
        at = self.tables[0, np.arange(len(self.left)), self.left + self.pad].sum()
        return min(float(at), self.reach)


@dataclass(frozen=True, slots=True)
class _Found:
    loss: float
    picked: Ints | None  # jobs: the choice, if there was any within the budget
    dropped: float  # the least that what was left out for want of room could have come to


def assign(problem: Assignment, *, tolerance: float = 1e-4, required: Bools | None = None) -> Ints:
    """The configuration of every job, −1 for none: within `tolerance`, relative, of the optimum.

    A `required` job must get one; BoaError if that cannot be. Among configurations of equal cost
    a job prefers fewer GPUs, then the lower index. Equal problems get equal answers.
    """
    if not len(problem.costs):
        return np.zeros(0, dtype=np.intp)
    choices = _choices(problem, required)
    picked = _best(choices, choices.cost)
    if (_taken(choices, picked) > problem.capacity).any():
        found = _search(choices, tolerance)
        picked = _through_highs(choices, tolerance) if found is None else found
    chosen = choices.option[picked]
    if required is not None and (chosen[required] < 0).any():
        raise BoaError("the required jobs do not fit into the GPUs there are")
    return chosen


def _choices(problem: Assignment, required: Bools | None) -> Choices:
    """Drop what takes as many GPUs of the same type, or more, and costs no less."""
    jobs, configurations = problem.costs.shape
    nothing = np.full((jobs, 1), problem.unallocated)
    if required is not None:  # more than others could save; whole, so that totals stay round
        offered = np.append(problem.costs[np.isfinite(problem.costs)], problem.unallocated)
        nothing[required] = np.ceil(2.0 * np.abs(offered).max() * (jobs + 1)) + 1.0
    kept = np.zeros((jobs, configurations + 1), dtype=bool)
    kept[:, -1] = True
    by_size = np.argsort(problem.gpus, kind="stable")
    for kind, room in enumerate(problem.capacity):
        mine = by_size[(problem.kinds[by_size] == kind) & (problem.gpus[by_size] <= room)]
        offers = np.concatenate([nothing, problem.costs[:, mine]], axis=1)
        kept[:, mine] = offers[:, 1:] < np.minimum.accumulate(offers, axis=1)[:, :-1]
    job, column = np.nonzero(kept)
    option = np.where(column < configurations, column, -1)
    cost = np.concatenate([problem.costs, nothing], axis=1)[job, column]
    gpus, kinds = np.append(problem.gpus, 0)[column], np.append(problem.kinds, -1)[column]
    start = np.searchsorted(job, np.arange(jobs))
    pool = np.maximum(kinds, 0)
    cell = job * len(problem.capacity) + pool
    return Choices(job, option, cost, gpus, kinds, start, problem.capacity, pool, cell)


def _best(choices: Choices, paid: Floats) -> Ints:
    """Every job's cheapest choice, the first of them."""
    cheapest = np.minimum.reduceat(paid, choices.start)
    (at,) = np.nonzero(paid <= cheapest[choices.job])
    best = np.empty(len(choices.start), dtype=np.intp)
    best[choices.job[at[::-1]]] = at[::-1]
    return best


def _taken(choices: Choices, picked: Ints) -> Ints:
    pools, gpus = choices.pool[picked], choices.gpus[picked]
    return np.bincount(pools, gpus, len(choices.capacity)).astype(np.intp)


def _search(choices: Choices, tolerance: float) -> Ints | None:
    """The assignment, or None if too many partial ones had to be kept."""
    if float(choices.capacity.max() + choices.gpus.max() + 1) ** len(choices.capacity) > 2.0**62:
        return None  # what is left of every type would not fit into one number
    prices = prices_of(choices)
    floor = float(np.minimum.reduceat(choices.priced(prices), choices.start).sum())
    floor -= float(prices @ choices.capacity)
    unit = choices.unit() * (1.0 - _ROUNDING)
    core = _core(choices, prices, float(prices.sum()))
    lower, steps, widths = core.root, 1.0, list(_WIDTHS)
    while widths:
        allowed = max(tolerance * abs(floor + lower), unit, _ROUNDING * _ROUNDING)
        budget = lower + steps * allowed
        if budget > core.reach:
            core = _core(choices, prices, 2.0 * budget)
            lower = max(lower, core.root)
            continue
        found = _walk(core, budget, widths[0])
        proven = max(lower, min(found.loss, found.dropped, budget))
        if found.picked is not None and found.loss - proven <= allowed:
            return found.picked
        lower = proven
        if found.dropped <= budget:
            widths.pop(0)
        else:
            steps *= 2.0
    return None


def _core(choices: Choices, prices: Floats, reach: float) -> _Core:
    """Jobs whose second choice loses more than `reach` have none; the others go into the tables."""
    paid = choices.priced(prices)
    losses = paid - np.minimum.reduceat(paid, choices.start)[choices.job]
    best = _best(choices, losses)
    others = losses.copy()
    others[best] = np.inf
    second = np.minimum.reduceat(others, choices.start)
    order = np.argsort(-second, kind="stable")
    order = order[second[order] <= reach]
    left = choices.capacity - _taken(choices, best[second > reach])
    uses = choices.gpus[:, None] * (choices.kind[:, None] == np.arange(len(prices)))
    tables = _tables(choices, np.where(losses <= reach, losses, np.inf), best, order, left, prices)
    pad = int(choices.gpus.max())
    return _Core(choices, losses, uses, best, reach, order, left, tables, pad)


def _tables(
    choices: Choices, losses: Floats, best: Ints, order: Ints, left: Ints, prices: Floats
) -> Floats:
    """Stages + 1 × types × GPUs left: the least loss, charged to that type, from that stage on."""
    kinds, pad, room = len(prices), int(choices.gpus.max()), np.arange(max(left.max(), 0) + 1)
    size = pad + len(room)
    tables = np.full((len(order) + 1, kinds, size), np.inf)
    tables[-1, :, pad:] = prices[:, None] * room
    cell, gpus, charge = _charges(choices, losses, best, order, kinds)
    starts = np.searchsorted(cell, np.arange(len(order) * kinds + 1))
    source = ((cell % kinds) * size + pad - gpus)[:, None] + room
    for stage in range(len(order) - 1, -1, -1):
        firsts = starts[stage * kinds : (stage + 1) * kinds]
        rows = slice(firsts[0], starts[(stage + 1) * kinds])
        offers = tables[stage + 1].ravel().take(source[rows])
        offers += charge[rows, None]
        np.minimum.reduceat(offers, firsts - firsts[0], axis=0, out=tables[stage, :, pad:])
    return tables


def _charges(
    choices: Choices, losses: Floats, best: Ints, order: Ints, kinds: int
) -> tuple[Ints, Ints, Floats]:
    """(stage and type as one number, GPUs taken of that type, loss charged to it), in order.

    Taking none of a type is free, unless the job's best choice is of that type: then it costs what
    the cheapest way out is charged there.
    """
    stage = np.full(len(choices.start), -1)
    stage[order] = np.arange(len(order))
    home = choices.kind[best][choices.job]
    crossing = (choices.kind >= 0) & (home >= 0) & (choices.kind != home)
    charge = np.where(crossing, 0.5 * losses, losses)
    leaving = np.minimum.reduceat(np.where(choices.kind != home, charge, np.inf), choices.start)
    without = np.zeros((len(order), kinds))
    (housed,) = np.nonzero(choices.kind[best[order]] >= 0)
    without[housed, choices.kind[best[order[housed]]]] = leaving[order[housed]]
    used = (stage[choices.job] >= 0) & (choices.kind >= 0) & np.isfinite(losses)
    cell = (stage[choices.job] * kinds + choices.kind)[used]
    cells = np.concatenate([np.arange(without.size), cell])
    sorting = np.argsort(cells, kind="stable")
    gpus = np.concatenate([np.zeros(without.size, dtype=np.intp), choices.gpus[used]])
    charges = np.concatenate([without.ravel(), charge[used]])
    return cells[sorting], gpus[sorting], charges[sorting]


def _walk(core: _Core, budget: float, width: int) -> _Found:
    """Job by job, the `width` most promising partial assignments that may stay within `budget`."""
    kinds, size = core.tables.shape[1:]
    flat = core.tables.reshape(len(core.tables), -1)
    lowest = size * np.arange(kinds)  # stands for "less than none left", however much less
    places = (lowest + core.pad + core.left)[None, :]
    radix = size ** np.arange(kinds)  # places of one type span less than `size`
    losses, dropped = np.zeros(1), np.inf
    trail: list[tuple[Ints, Ints]] = []
    for stage, picks in _steps(core, budget):
        takes = core.uses[picks].sum(axis=1)
        places = np.maximum(places[:, None, :] - takes, lowest).reshape(-1, kinds)
        losses = (losses[:, None] + core.losses[picks].sum(axis=1)).ravel()
        bounds = losses + flat[stage].take(places).sum(axis=1)
        (kept,) = np.nonzero(bounds <= budget)
        kept = kept[np.lexsort((bounds[kept], places[kept] @ radix))]
        keys = places[kept] @ radix
        kept = kept[np.diff(keys, prepend=keys[:1] - 1) != 0]
        if len(kept) > width:
            ranked = kept[np.argsort(bounds[kept], kind="stable")]
            dropped, kept = min(dropped, float(bounds[ranked[width]])), ranked[:width]
        if not len(kept):
            return _Found(np.inf, None, dropped)
        places, losses = places[kept], losses[kept]
        trail.append((kept // len(picks), picks[kept % len(picks)]))
    bounds = losses + flat[-1].take(places).sum(axis=1)
    last = int(bounds.argmin())
    return _Found(float(bounds[last]), _traced(core, trail, last), dropped)


def _steps(core: _Core, budget: float) -> Iterator[tuple[int, Ints]]:
    """(stages done, combinations × jobs: their choices), several jobs at a time while they are few.

    The clearest jobs come first: those that have one choice within the budget, all in one step.
    """
    choices = core.choices
    (within,) = np.nonzero(core.losses <= budget)
    counts = np.bincount(choices.job[within])[core.order]
    firsts = np.searchsorted(choices.job[within], core.order)
    clear = int((counts == 1).sum())
    picks = within[firsts[:clear]][None, :]
    for stage in range(clear, len(core.order)):
        count = int(counts[stage])
        if picks.size and len(picks) * count > _COMBINED:
            yield stage, picks
            picks = np.zeros((1, 0), dtype=np.intp)
        grid = np.empty((len(picks), count, picks.shape[1] + 1), dtype=np.intp)
        grid[:, :, :-1] = picks[:, None, :]
        grid[:, :, -1] = within[firsts[stage] : firsts[stage] + count]
        picks = grid.reshape(-1, grid.shape[2])
    if picks.size:
        yield len(core.order), picks


def _traced(core: _Core, trail: list[tuple[Ints, Ints]], last: int) -> Ints:
    """Every job's choice on the way to the partial assignment `last`."""
    picked = core.best.copy()
    for parents, picks in reversed(trail):
        picked[core.choices.job[picks[last]]] = picks[last]
        last = int(parents[last])
    return picked


def _through_highs(choices: Choices, tolerance: float) -> Ints:
    """The program as it stands: one choice per job, the GPUs of every type."""
    jobs, count = len(choices.start), len(choices.cost)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = count, jobs + len(choices.capacity)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = choices.cost, np.zeros(count), np.ones(count)
    lp.row_lower_ = np.concatenate([np.ones(jobs), np.zeros(len(choices.capacity))])
    lp.row_upper_ = np.concatenate([np.ones(jobs), choices.capacity])
    entries = np.column_stack([choices.kind >= -1, choices.kind >= 0])
    rows = np.column_stack([choices.job, jobs + choices.kind])[entries]
    values = np.column_stack([np.ones(count), choices.gpus])[entries]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.append(0, np.cumsum(entries.sum(axis=1))).astype(np.int32)
    lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.astype(np.int32), values
    lp.integrality_ = [highspy.HighsVarType.kInteger] * count
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {"output_flag": False, "threads": 1, "mip_rel_gap": tolerance, "mip_abs_gap": 0.0}
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.run()
    status = solver.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise BoaError(f"HiGHS stopped without an answer: {solver.modelStatusToString(status)}")
    return _best(choices, -np.rint(np.array(solver.getSolution().col_value)))
