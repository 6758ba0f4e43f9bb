"""The scene of a decision: who is there, what money is worth, what nodes cost."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from boa.model.cluster import Allocation, ClusterView, JobId, JobView, Node, NodeId
from boa.model.speedup import Floats
from boa.policy.boa import Planned
from boa.policy.market.facts import Facts
from boa.policy.market.prospects import Prospects, prospects
from boa.policy.market.standings import Standings, standings_of
from boa.policy.market.strangers import seat_strangers
from boa.policy.market.worth import Worth
from boa.units import SECONDS_PER_HOUR, Seconds

LOOK_S: Seconds = 60.0
"""How far ahead gains are looked at, at least: until the next decision. Further ahead, moves look
better than they turn out, since something else happens first."""
UNTIL_NEXT = 1 / 8
"""Where jobs come seldom it is so much of the time between two of them …"""
PAUSES = 8.0
"""… but no more than so many of the longest pause: whoever rescales slowly would else never move,
beside GPUs that are free or on a node that is not worth its price."""
FURTHEST_S: Seconds = 16 * LOOK_S
LEAST_S: Seconds = 20.0
"""The least of that where a node is about to be ready."""
URGENT = 10.0
"""Nodes' worth that whoever is out of patience gains by any GPUs at all; or seconds, where nodes
are worth next to nothing."""
HOLDS, HELD = 8.0, 2.0
"""Times that, per GPU that it needs at least, for a job that holds GPUs, or that others give way
to; times that for a job that held some before."""
LEAST_PRICE = 1e-3
"""Seconds that a dollar is worth at least: where money is not short, nodes that nobody gains by
are given back all the same."""
TRIAL = "\0trial"
"""Marks a worth that is hoped for: no class has such a name."""


URGENCY = "\0urgency "
"""Marks the worth of jobs that count more or less than their class."""


def _urgent_name(job: JobView) -> str:
    return f"{job.job_class}{URGENCY}{job.urgency!r}"


def _urgent(jobs: Sequence[JobView], planned: Planned, price: float) -> dict[str, Worth]:
    """Worths of jobs that count more or less than their class, by the names they go by."""
    if all(job.urgency == 1.0 for job in jobs):
        return {}
    found = {
        _urgent_name(job): planned.urgent.of(job.job_class, price, job.urgency)
        for job in jobs
        if job.urgency != 1.0
    }
    return {name: worth for name, worth in found.items() if worth is not None}


def _facts(
    jobs: Sequence[JobView], planned: Planned, worths: Mapping[str, Worth], price: float
) -> tuple[Facts, Mapping[str, Worth]]:
    """Facts of jobs, and the worths that they go by: those that try what nobody has run
    (`policy/trials.py`) go by what is hoped of it."""
    urgent = _urgent(jobs, planned, price)
    if not urgent and (planned.hoped is None or not planned.trials.variants):
        return planned.facts.of(jobs, worths), worths
    hoped = {} if planned.hoped is None else planned.hoped(price)
    tried = {name + TRIAL: hoped[name] for name in planned.trials.variants if name in hoped}
    tried |= urgent

    def named(job: JobView) -> str:
        if (own := _urgent_name(job)) in tried:
            return own
        trial = job.job_class + TRIAL
        is_trial = trial in tried and planned.trials.variant(job.job_class, job.serial) is not None
        return trial if is_trial else job.job_class

    worths = {**worths, **tried}
    return planned.trial_facts.of(jobs, worths, named), worths


class Scene:
    def __init__(self, view: ClusterView, planned: Planned, price: float) -> None:
        self.view, self.price = view, max(price, LEAST_PRICE)
        self.worths = planned.worths(self.price)
        facts, worths = _facts(view.jobs, planned, self.worths, self.price)
        self.strangers = seat_strangers(view, facts.strangers)
        self.jobs: Sequence[JobView] = facts.others.views
        """Those that take part in the market."""
        self.standings = standings_of(self.jobs, worths, facts.others)
        self.kinds = list(view.gpu_types.values())
        self.sizes = np.array([float(kind.gpus_per_node) for kind in self.kinds])
        dollars = np.array([kind.price / SECONDS_PER_HOUR for kind in self.kinds])
        self.costs: Floats = self.price * dollars * self.sizes
        """Seconds per second that a node of every type costs."""
        names = [kind.name for kind in self.kinds]
        self.waits: Floats = np.array(
            [view.boot_s.get(name, 0.0) + view.reclaim_s.get(name, 0.0) for name in names]
        )
        """Seconds that a node of every type costs without being of use."""
        self.ahead_s = self._ahead_s(planned)
        soon = min(view.booting.values(), default=self.ahead_s)
        self.look_s = max(min(soon, self.ahead_s), LEAST_S)

    def _ahead_s(self, planned: Planned) -> Seconds:
        """How far ahead gains are looked at where no node is about to be ready."""
        rate = planned.solution.workload.arrivals_per_hour
        gap_s = SECONDS_PER_HOUR / rate if rate else math.inf
        longest = max((worth.course.rescale_s for worth in self.standings.worths), default=0.0)
        return min(max(min(UNTIL_NEXT * gap_s, PAUSES * longest), LOOK_S), FURTHEST_S)

    @cached_property
    def current(self) -> Mapping[JobId, Allocation]:
        """GPUs that jobs of the market hold."""
        return {job.id: job.allocation for job in self.jobs if job.allocation is not None}

    @cached_property
    def _held(self) -> list[tuple[int, tuple[tuple[NodeId, int], ...]]]:
        """Jobs that hold GPUs, as their rows among the standings, and where."""
        views = enumerate(self.standings.views)
        return [(row, held.nodes) for row, view in views if (held := view.allocation) is not None]

    def rows_on(self, node: NodeId) -> list[int]:
        """Jobs on a node: few nodes are asked for, so all jobs are looked at for each of them."""
        return [
            row
            for row, nodes in self._held
            if nodes[0][0] == node or (len(nodes) > 1 and node in dict(nodes))
        ]

    def jobs_on(self, node: NodeId) -> list[JobView]:
        """The same as they were shown."""
        places = self.standings.order[self.rows_on(node)]
        return [self.jobs[n] for n in sorted(places.tolist())]

    def gains(self, standings: Standings, over_s: Seconds) -> Prospects:
        """Prospects over so many seconds; whoever is let in gains more by any GPUs than nodes cost,
        and more than others lose."""
        return prospects(standings, over_s, self._urged[standings.order])

    @cached_property
    def market(self) -> Prospects:
        """Gains of jobs from where they stand, until the next decision."""
        return self.gains(self.standings, self.look_s)

    @cached_property
    def left_s(self) -> Seconds:
        """Seconds that all jobs still have to go: where they are, or where they are fastest."""
        jobs = self.standings
        ends_in = jobs.ends_in.copy()
        for worth, rows in jobs.by_class():
            waits = rows.start + np.isinf(ends_in[rows]).nonzero()[0]
            if not len(waits):
                continue
            epochs, course = jobs.epochs[waits], worth.course
            rest = course.whole - course.reached[epochs]
            rest -= (1.0 - jobs.left[waits])[:, None] * course.times[epochs]
            if jobs.forbidden is not None:
                rest[jobs.forbidden[waits, : rest.shape[1]]] = np.inf
            ends_in[waits] = course.rescale_s + rest.min(axis=1)
        return float(ends_in.sum())

    @cached_property
    def ahead(self) -> Prospects:
        """The same as if no node were about to be ready."""
        if self.look_s == self.ahead_s:
            return self.market
        return self.gains(self.standings, self.ahead_s)

    @cached_property
    def _urged(self) -> Floats:
        """Gains of jobs by any GPUs at all, by their place among those that were shown."""
        let_in = self.view.let_in
        found = np.array([self._claim(job) if job.id in let_in else 0.0 for job in self.jobs])
        return np.asarray(found * self._urgent)

    def _claim(self, job: JobView) -> float:
        """Return how much more a job that is let in gains by any GPUs than a newcomer.

        A job that holds GPUs keeps some, however wide or narrow it is. One that held some goes
        before newcomers.
        """
        least = 1 if job.limits is None else job.limits.min
        if job.allocation is not None or job.id in self.view.seats:
            return HOLDS * least
        return HELD * least if job.service else 1.0

    @cached_property
    def _urgent(self) -> float:
        nodes = float((self.costs * (1.0 + self.waits / LOOK_S)).max())
        weights = (worth.weight for worth in self.standings.worths)
        return URGENT * max(nodes, *weights) if self.standings.worths else URGENT * nodes

    def room(self, nodes: Sequence[Node]) -> Floats:
        """GPUs of every type on these nodes that the market may share out."""
        there = {kind.name: 0.0 for kind in self.kinds}
        for node in nodes:
            there[node.gpu] += node.gpus
        if self.strangers.placements:
            for kind in self.kinds:
                there[kind.name] -= self.strangers.on(nodes, kind.name)
        return np.array([there[kind.name] for kind in self.kinds])
