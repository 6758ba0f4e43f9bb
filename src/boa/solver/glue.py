"""Algorithm 1 of the paper, the width calculator: glue epochs, solve without rescaling, shrink.

Fifty times, every class draws how many adjacent epochs to glue into one super-epoch. The problem
without rescaling is solved on the super-epochs' hulls and its widths rounded; then the plan is
priced with rescaling, and solved again for a budget 1 % smaller until it fits. The best plan that
fits is kept. It proves nothing, and stands here for comparison.

Published for one GPU type. With several, we let each class take the lower convex envelope of its
types' trade-offs, which is the problem without rescaling under routing at arrival (p_i^(h)): at
most one class is split between two types, and it stays split. That extension is ours.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from boa.errors import NoPlanFound, UsageError
from boa.model.plan import Plan
from boa.model.speedup import Floats
from boa.solver.assemble import plan_of_states
from boa.solver.convex import efficient_hull
from boa.solver.tables import Row, Tables
from boa.units import Seconds, UsdPerHour

Ints = NDArray[np.intp]

SAMPLES = 50
SHRINK = 0.99
_ROUNDING = 1e-10
"""Relative slack for arithmetic: the same plan's cost, added up in another order."""
_AT_ONCE = 32
"""Shrunken budgets tried together; nearly always a few are enough."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Edges of several convex chains, merged: the order in which money is best spent."""

    owners: Ints
    """Whose edge it is, from the steepest slope down; each owner's edges stay in order."""
    order: Ints
    """The edges themselves, by their index in the input."""
    keys: Ints

    @classmethod
    def of(cls, slopes: Floats, owners: Ints) -> "Steps":
        """`owners` ascending; slopes falling within each owner, up to rounding."""
        n = len(slopes)
        rank = np.empty(n, dtype=np.intp)
        rank[np.argsort(slopes, kind="stable")] = np.arange(n)
        falling = np.minimum.accumulate(rank - owners * n) + owners * n
        order = np.argsort(-falling, kind="stable")
        keys = np.sort(owners[order] * (n + 1) + np.arange(n))
        return cls(owners[order], order, keys)

    def taken(self, owners: Ints, first: Ints) -> Ints:
        """How many of each owner's edges are among the first so many: owners × counts."""
        begin = owners[:, None] * (len(self.keys) + 1)
        here = np.searchsorted(self.keys, begin + first[None, :])
        return np.asarray(here - np.searchsorted(self.keys, begin))


@dataclass(frozen=True)
class Ladder:
    """One class on one GPU type, its epochs glued: from the cheapest widths up to the fastest."""

    index: int
    row: Row
    glue: int
    times: Floats
    """Super-epochs × states: the glued epochs' times add up."""
    states: Ints
    """The states on the super-epochs' hulls, one super-epoch after the other."""
    begin: Ints
    """Where each super-epoch's states begin."""
    steps: Steps
    """Every step moves one super-epoch one state up."""
    cost: Floats
    time: Floats
    """Without rescaling, after so many steps."""
    round_up: Floats
    """The part of each step above which its width is nearer to the upper end."""

    @classmethod
    def of(cls, index: int, row: Row, glue: int) -> "Ladder | None":
        """None if a super-epoch has no width that can run all of it."""
        times = np.add.reduceat(row.times, np.arange(0, len(row.times), glue), axis=0)
        if not np.isfinite(times).any(axis=1).all():
            return None
        epoch, state = np.nonzero(efficient_hull(row.cost_rates, 1.0 / times))
        time = times[epoch, state]
        cost = time * row.cost_rates[state]
        edge = np.flatnonzero(epoch[1:] == epoch[:-1])
        saved = time[edge] - time[edge + 1]
        extra = np.maximum(cost[edge + 1] - cost[edge], 0.0)
        slopes = np.divide(saved, extra, out=np.full(len(edge), np.inf), where=extra > 0)
        steps = Steps.of(slopes, epoch[edge])
        begin = np.flatnonzero(np.diff(epoch, prepend=-1))
        halfway = time[edge] / (time[edge] + time[edge + 1])
        return cls(
            index=index,
            row=row,
            glue=glue,
            times=times,
            states=state,
            begin=begin,
            steps=steps,
            cost=np.cumsum(np.concatenate([[cost[begin].sum()], extra[steps.order]])),
            time=np.cumsum(np.concatenate([[time[begin].sum()], -saved[steps.order]])),
            round_up=halfway[steps.order],
        )

    def states_after(self, taken: Ints) -> Ints:
        """The state of every super-epoch after so many steps: super-epochs × counts."""
        reached = self.steps.taken(np.arange(len(self.begin)), taken)
        return np.asarray(self.states[self.begin[:, None] + reached])

    def with_rescaling(self, taken: Ints) -> tuple[Floats, Floats]:
        """Mean JCT and cost of a job after so many steps, by the theorem on rescaling."""
        states = self.states_after(taken)
        rescale_s = np.full(states.shape, self.row.rescale_s)
        rescale_s[1:][states[1:] == states[:-1]] = 0.0
        held = np.take_along_axis(self.times, states, axis=1) + rescale_s
        return held.sum(axis=0), (held * self.row.cost_rates[states]).sum(axis=0)

    def sequence(self, taken: int) -> list[int]:
        """One state per epoch."""
        states = self.states_after(np.array([taken]))[:, 0]
        return [int(s) for s in np.repeat(states, self.glue)[: len(self.row.times)]]


@dataclass(frozen=True)
class Trade:
    """One class under one glue parameter: cost against time, over all its GPU types."""

    ladders: tuple[Ladder, ...]
    ladder: Ints
    taken: Ints
    """Each point's ladder, and the steps taken on it; from the cheapest point to the fastest."""
    cost: Floats
    time: Floats

    @classmethod
    def of(cls, ladders: Sequence[Ladder]) -> "Trade":
        which = np.repeat(np.arange(len(ladders)), [len(one.cost) for one in ladders])
        taken = np.concatenate([np.arange(len(one.cost)) for one in ladders])
        cost = np.concatenate([one.cost for one in ladders])
        time = np.concatenate([one.time for one in ladders])
        if len(ladders) > 1:
            on = _envelope(cost, time, which)
            which, taken, cost, time = which[on], taken[on], cost[on], time[on]
        return cls(tuple(ladders), which, taken, cost, time)

    @cached_property
    def splits(self) -> NDArray[np.bool_]:
        """The steps that move jobs from one GPU type to another."""
        return np.asarray(self.ladder[1:] != self.ladder[:-1])

    @cached_property
    def round_up(self) -> Floats:
        halves = [
            np.inf if split else self.ladders[which].round_up[taken]
            for which, taken, split in zip(self.ladder, self.taken, self.splits, strict=False)
        ]
        return np.array(halves)

    def with_rescaling(self, points: Ints) -> tuple[Floats, Floats]:
        """Mean JCT and cost of a job at each point."""
        time, cost = np.empty(len(points)), np.empty(len(points))
        for which in np.unique(self.ladder[points]):
            at = self.ladder[points] == which
            time[at], cost[at] = self.ladders[which].with_rescaling(self.taken[points][at])
        return time, cost

    def parts(self, point: int, split: float) -> list[tuple[float, int, list[int]]]:
        """(share, row, states) of the class at a point, and of a split to the next."""
        shares = [(1.0 - split, point), (split, point + 1)]
        return [
            (share, one.index, one.sequence(int(self.taken[at])))
            for share, at in shares
            if share > 0.0
            for one in [self.ladders[self.ladder[at]]]
        ]


def _envelope(cost: Floats, time: Floats, ladder: Ints) -> Ints:
    """The lower convex envelope of all ladders' points, from the cheapest on."""
    chain: list[int] = []
    for n in np.lexsort((time, cost)).tolist():
        if chain and time[n] >= time[chain[-1]]:
            continue
        while len(chain) > 1:
            a, b = chain[-2], chain[-1]
            ahead = (time[b] - time[a]) * (cost[n] - cost[a])
            if ahead <= (time[n] - time[a]) * (cost[b] - cost[a]):
                break
            chain.pop()
        chain.append(n)
    # Between two points of one ladder its other points lie on the same line.
    whole: list[int] = []
    for n in chain:
        if whole and ladder[whole[-1]] == ladder[n]:
            whole.extend(range(whole[-1] + 1, n))
        whole.append(n)
    return np.array(whole)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan that fits the budget: per class a point of its trade, and the share past it."""

    trades: tuple[Trade, ...]
    points: tuple[int, ...]
    splits: tuple[float, ...]
    objective: Seconds


def solve_glue(tables: Tables, budget: UsdPerHour, seed: int) -> Plan:
    """The best plan of fifty glue configurations that spends at most the budget."""
    _check(tables)
    rows: dict[int, list[int]] = defaultdict(list)
    for n, row in enumerate(tables.rows):
        rows[row.class_index].append(n)

    @cache
    def trade(i: int, glue: int) -> Trade | None:
        ladders = [Ladder.of(n, tables.rows[n], glue) for n in rows[i]]
        usable = [one for one in ladders if one is not None]
        return Trade.of(usable) if usable else None

    best: Candidate | None = None
    for glues in dict.fromkeys(configurations(tables, seed)):
        trades = [one for i, g in enumerate(glues) if (one := trade(i, g)) is not None]
        if len(trades) < len(glues):
            continue
        found = _shrink_to_fit(tables, tuple(trades), budget)
        if found is not None and (best is None or found.objective < best.objective):
            best = found
    if best is None:
        raise NoPlanFound(
            f"Algorithm 1 found no plan for {budget:,.6g} per hour in {SAMPLES} samples: the "
            "budget is too near the cheapest spend. Raise --budget, or use --solver exact."
        )
    chosen = zip(best.trades, best.points, best.splits, strict=True)
    return plan_of_states(tables, [one.parts(point, split) for one, point, split in chosen])


def _check(tables: Tables) -> None:
    if tables.rules.routing != "class":
        raise UsageError(
            "--solver glue routes at arrival; leave --routing at class, or use --solver exact"
        )
    for job_class in tables.workload.classes:
        if job_class.max_jct_s is not None:
            raise UsageError(
                f"--solver glue knows no max_jct_s, and class {job_class.name} has one; "
                "use --solver exact"
            )


def configurations(tables: Tables, seed: int) -> list[tuple[int, ...]]:
    """Glue parameters g_i per class, each a power of two of at most its number of epochs."""
    random = np.random.default_rng(seed)
    powers = [len(job_class.epochs).bit_length() for job_class in tables.workload.classes]
    return [tuple(2 ** int(random.integers(n)) for n in powers) for _ in range(SAMPLES)]


def _shrink_to_fit(
    tables: Tables, trades: tuple[Trade, ...], budget: UsdPerHour
) -> Candidate | None:
    """Solve without rescaling for b, 0.99 b, 0.99² b, ... until the true cost fits b."""
    arrivals, weights = tables.arrivals, tables.time_weights
    owners = np.repeat(np.arange(len(trades)), [len(one.cost) - 1 for one in trades])
    extra = np.concatenate([np.maximum(np.diff(one.cost), 0.0) for one in trades])
    saved = np.concatenate([-np.diff(one.time) for one in trades]) * weights[owners]
    slopes = np.divide(saved, extra, out=np.full(len(extra), np.inf), where=extra > 0)
    steps = Steps.of(slopes, owners)
    first = sum(rate * one.cost[0] for rate, one in zip(arrivals, trades, strict=True))
    spend = np.cumsum(np.concatenate([[first], (extra * arrivals[owners])[steps.order]]))
    run = budget * SHRINK ** np.arange(_AT_ONCE)
    while len(run := run[run >= first * (1.0 - _ROUNDING)]):
        points, splits = _rounded(trades, steps, spend, np.maximum(run, first))
        time, cost = _priced(trades, points, splits)
        fits = np.flatnonzero(arrivals @ cost <= budget * (1.0 + _ROUNDING))
        if len(fits):
            n = fits[0]
            objective = float((arrivals * weights) @ time[:, n])
            chosen, shares = points[:, n].tolist(), splits[:, n].tolist()
            return Candidate(trades, tuple(chosen), tuple(shares), objective)
        run = run * SHRINK**_AT_ONCE
    return None


def _rounded(
    trades: tuple[Trade, ...], steps: Steps, spend: Floats, budgets: Floats
) -> tuple[Ints, Floats]:
    """Every class's point at every budget, the one fractional width rounded; and its split."""
    full = np.searchsorted(spend, budgets, side="right") - 1
    points = steps.taken(np.arange(len(trades)), full)
    splits = np.zeros(points.shape)
    for n, (edge, budget) in enumerate(zip(full.tolist(), budgets.tolist(), strict=True)):
        if edge == len(steps.owners):
            continue
        part = (budget - spend[edge]) / (spend[edge + 1] - spend[edge])
        i = steps.owners[edge]
        point = points[i, n]
        if trades[i].splits[point]:
            splits[i, n] = part
        elif part > trades[i].round_up[point]:
            points[i, n] += 1
    return points, splits


def _priced(trades: tuple[Trade, ...], points: Ints, splits: Floats) -> tuple[Floats, Floats]:
    """Mean JCT and cost per job with rescaling: classes × budgets."""
    time, cost = np.empty(points.shape), np.empty(points.shape)
    for i, one in enumerate(trades):
        time[i], cost[i] = one.with_rescaling(points[i])
        split = splits[i] > 0.0
        if split.any():
            part = splits[i][split]
            more_time, more_cost = one.with_rescaling(points[i][split] + 1)
            time[i][split] += part * (more_time - time[i][split])
            cost[i][split] += part * (more_cost - cost[i][split])
    return time, cost
