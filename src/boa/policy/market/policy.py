"""BOA where nodes are billed: rent, fill, squeeze and release by what a node is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from boa.model.cluster import (
    Allocation,
    ClusterView,
    Decision,
    JobId,
    JobView,
    Node,
    NodeId,
    NodeReason,
)
from boa.model.speedup import Floats
from boa.placement.seating import Options, seated
from boa.policy.boa import Planned
from boa.policy.market.clearing import Cleared, cleared
from boa.policy.market.prospects import Prospects, Standing, later, prospects
from boa.policy.market.strangers import Seated, is_stranger, seat_strangers
from boa.units import SECONDS_PER_HOUR, Seconds

STEPS = (1, 2, 3, 4, 6, 8)
NEVER = -1e20
"""Gains below this are of states that a job cannot have."""
LEAST_PRICE = 1e-3
"""Seconds that a dollar is worth at least: where money is not short, nodes that nobody gains by
are given back all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    rent: float = 1.3
    lifetime_s: Seconds = 1000.0
    release: float = 0.7
    least_s: Seconds = 20.0
    rent_s: Seconds = 120.0
    keep_s: Seconds | None = 60.0
    ahead: float = 1.0
    drain: bool = True
    patience_s: Seconds = 1800.0
    """A job that arrived so long ago runs, however dear money is: a budget that is too small, or a
    node that one job alone is not worth, makes nobody wait for ever."""


@dataclass(frozen=True, slots=True)
class Market:
    rules: Rules = Rules()
    price: float | None = None
    name: ClassVar[str] = "boa"
    by_job: ClassVar[bool] = False
    at_events: ClassVar[bool] = True

    def decide(self, view: ClusterView) -> Decision:
        planned: Planned | None = view.memory
        if planned is None:  # nodes are kept for whoever waits for the first plan
            held = seat_strangers(view, view.jobs)
            kept = tuple(view.nodes) if view.jobs else ()
            return Decision(placements=held.placements, nodes=(*kept, *held.new))
        return _Step(self, view, planned).decision()


class _Step:
    def __init__(self, market: Market, view: ClusterView, planned: Planned) -> None:
        self.rules, self.view, self.planned = market.rules, view, planned
        price = max(planned.price if market.price is None else market.price, LEAST_PRICE)
        self.worths = planned.worths(price)
        odd = [job for job in view.jobs if is_stranger(job, self.worths)]
        self.strangers: Seated = seat_strangers(view, odd)
        self.reasons: dict[NodeId, NodeReason] = {}
        self.waiting = 0
        self.price = price
        self.kinds = list(view.gpu_types.values())
        self.costs = np.array(
            [price * k.price * k.gpus_per_node / SECONDS_PER_HOUR for k in self.kinds]
        )
        """Seconds per second that a node of every type costs."""
        self.sizes = np.array([float(k.gpus_per_node) for k in self.kinds])
        self.waits = np.array(
            [view.boot_s.get(k.name, 0.0) + view.reclaim_s.get(k.name, 0.0) for k in self.kinds]
        )
        """Seconds that a node of every type costs without being of use."""
        known = {job.id for job in view.jobs} - {job.id for job in odd}
        self.standings = [Standing(job, job.resumes_in) for job in view.jobs if job.id in known]
        between = SECONDS_PER_HOUR / planned.solution.workload.arrivals_per_hour
        self.between = between
        soon = min(view.booting.values(), default=between)
        self.horizon = max(min(between, soon) if view.booting else between, self.rules.least_s)

    def decision(self) -> Decision:
        view = self.view
        ready = [node for node in view.nodes if node.id not in view.booting]
        booting = [node for node in view.nodes if node.id in view.booting]
        booting += self.strangers.new
        new: list[Node] = []
        market = self._prospects(self.standings, self.horizon)
        found = cleared(market, self._room(ready))
        placements = self._seat(market, found, ready)
        self.waiting = sum(standing.view.id not in placements for standing in self.standings)
        if self.standings:
            new = self._rent(self._ahead(placements), [*ready, *booting])
        if not booting and not new:
            kept = self._release(ready)
            if len(kept) < len(ready):
                found = cleared(market, self._room(kept))
                left = self._seat(market, found, kept)
                told = dict(self.reasons)
                if not self.standings or not self._rent(self._ahead(left), kept):
                    ready, placements = kept, left  # else it would be rented again
                self.reasons = told if ready is kept else {}
        return Decision(
            placements={**self.strangers.placements, **placements},
            nodes=(*ready, *booting, *new),
            memory=self.planned,
            reasons=self.reasons,
        )

    def _ahead(self, placements: Mapping[JobId, Allocation]) -> list[tuple[Seconds, Prospects]]:
        """Markets, over several spans, of jobs as they will stand once a node has booted."""
        boot_s = max(self.view.boot_s.values(), default=0.0)
        ahead = later(self.standings, placements, self.worths, boot_s * self.rules.ahead)
        spans = [self.rules.rent_s, 4 * self.rules.rent_s, 16 * self.rules.rent_s]
        return [(span, self._prospects(ahead, span)) for span in spans]

    def _prospects(self, standings: Sequence[Standing], span: Seconds) -> Prospects:
        """A job that arrived long ago gains more by any GPUs at all than they can cost."""
        found = prospects(standings, self.worths, span)
        late = {
            s.view.id for s in standings if self.view.now - s.view.arrival >= self.rules.patience_s
        }
        if late:
            rows = np.array([job in late for job in found.jobs])[:, None]
            urgent = 10.0 * float((self.costs * (1.0 + self.waits / self.rules.rent_s)).max())
            return replace(
                found, gains=found.gains + np.where(rows & (found.gains > NEVER), urgent, 0)
            )
        return found

    def _room(self, nodes: Sequence[Node]) -> Floats:
        room = np.zeros(len(self.kinds))
        for n, kind in enumerate(self.kinds):
            room[n] = kind.gpus_per_node * sum(node.gpu == kind.name for node in nodes)
            room[n] -= self.strangers.on(nodes, kind.name)
        return room

    def _rent(
        self, markets: Sequence[tuple[Seconds, Prospects]], nodes: Sequence[Node]
    ) -> list[Node]:
        rules, view = self.rules, self.view
        room = self._room(nodes)
        values = [cleared(jobs, room).gain for _, jobs in markets]
        left, first_id = self.strangers.room, view.next_node + len(self.strangers.new)
        found: list[Node] = []
        while len(found) < 1000:
            nets = []
            for n in range(len(self.kinds)):
                for count in STEPS:
                    if not left.has(self.kinds[n], count):
                        break
                    more = room.copy()
                    more[n] += count * self.sizes[n]
                    first = cleared(markets[0][1], more).gain
                    if first - values[0] < rules.release * self.costs[n] * count:
                        continue
                    for m, (span, jobs) in enumerate(markets):
                        gain = first if m == 0 else cleared(jobs, more).gain
                        cost = self.costs[n] * (1.0 + self.waits[n] / span) * count
                        gained = gain - values[m]
                        nets.append((rules.rent * gained - cost, n, count, gained, span))
            nets = sorted((net for net in nets if net[0] > 0), reverse=True)
            best = next(
                (found for found in nets if self._stays(markets[0][1], room, *found[1:3])), None
            )
            if best is None:
                break
            _, n, count, gained, span = best
            room[n] += count * self.sizes[n]
            values = [cleared(jobs, room).gain for _, jobs in markets]
            kind, left = self.kinds[n], left.without(self.kinds[n], count)
            for _ in range(count):
                found.append(Node(first_id + len(found), kind.name, kind.gpus_per_node))
                self._told(found[-1], gained / count, over_s=span)
        return found

    def _stays(self, jobs: Prospects, room: Floats, n: int, count: int) -> bool:
        """Whether the last of several nodes would not be given back at once."""
        if count == 1:
            return True
        more, less = room.copy(), room.copy()
        more[n] += count * self.sizes[n]
        less[n] += (count - 1) * self.sizes[n]
        last = cleared(jobs, more).gain - cleared(jobs, less).gain
        return bool(last >= self.rules.release * self.costs[n])

    def _told(self, node: Node, gain: float, over_s: Seconds, gone: bool = False) -> None:
        """Keep why a node is rented, kept or given back, by what jobs gain per second by it."""
        kind = self.view.gpu_types[node.gpu]
        on = [job for job in self.view.jobs if gone and _is_on(job, node)]
        known = (self.worths[job.job_class] for job in on if job.job_class in self.worths)
        self.reasons[node.id] = NodeReason(
            price_per_hour=kind.price * kind.gpus_per_node,
            worth_per_hour=(
                gain / self.price * SECONDS_PER_HOUR if self.price > LEAST_PRICE else None
            ),
            saves_s=gain * over_s,
            over_s=over_s,
            waiting=self.waiting,
            moved=tuple(job.id for job in on),
            pause_s=sum(worth.course.rescale_s for worth in known),
        )

    def _release(self, ready: list[Node]) -> list[Node]:
        """Without nodes that are worth too little: also over the horizon that they are rented by,
        or what is given back would be rented again."""
        span = self.rules.keep_s or self.between
        away = [Standing(replace_held(s), 0.0) for s in self.standings]
        markets = [
            (self._prospects(self.standings, over), self._prospects(away, over))
            for over in (span, self.rules.rent_s)
        ]
        while ready:
            room = self._room(ready)
            values = [cleared(jobs, room).gain for jobs, _ in markets]
            losses: dict[NodeId, float] = {}
            best: tuple[float, Node] | None = None
            for n, kind in enumerate(self.kinds):
                less = room.copy()
                less[n] -= self.sizes[n]
                here = [node for node in ready if node.gpu == kind.name]
                held = self.strangers.nodes
                for gone in self._emptiest([n for n in here if n.id not in held])[:2]:
                    loss = -np.inf
                    for (jobs, moved), value in zip(markets, values, strict=True):
                        without = self._vacated(jobs, moved, {gone.id})
                        loss = max(loss, value - cleared(without, less).gain)
                        if loss >= self.rules.release * self.costs[n]:
                            break
                    losses[gone.id] = loss
                    net = self.rules.release * self.costs[n] - loss
                    if net > 0 and (best is None or net > best[0]):
                        best = (net, gone)
            if best is None:
                for node in ready:  # the emptiest of a type speak for all of it
                    of = [losses[n.id] for n in ready if n.gpu == node.gpu and n.id in losses]
                    if of:
                        self._told(node, losses.get(node.id, min(of)), span)
                return ready
            gone = best[1]
            self._told(gone, losses[gone.id], span, gone=True)
            ready = [node for node in ready if node.id != gone.id]
            markets = [(self._vacated(jobs, moved, {gone.id}), moved) for jobs, moved in markets]
        return ready

    def _emptiest(self, nodes: list[Node]) -> list[Node]:
        used: dict[NodeId, int] = {}
        for job in self.view.jobs:
            if job.allocation is not None:
                for node, count in job.allocation.nodes:
                    used[node] = used.get(node, 0) + count
        return sorted(nodes, key=lambda node: (used.get(node.id, 0), -node.id))

    def _vacated(self, jobs: Prospects, moved: Prospects, gone: set[NodeId]) -> Prospects:
        on = {
            job.id
            for job in self.view.jobs
            if job.allocation is not None and any(n in gone for n, _ in job.allocation.nodes)
        }
        if not on:
            return jobs
        rows = [n for n, job in enumerate(jobs.jobs) if job in on]
        gains, held = jobs.gains.copy(), jobs.held.copy()
        gains[rows], held[rows] = moved.gains[rows], -1
        return replace(jobs, gains=gains, held=held)

    def _seat(
        self, market: Prospects, found: Cleared, ready: Sequence[Node]
    ) -> dict[JobId, Allocation]:
        horizon = self.horizon
        moved = self._prospects([Standing(replace_held(s), 0.0) for s in self.standings], horizon)
        chosen, options = {}, {}
        for n, job in enumerate(market.jobs):
            states = market.states[n]
            options[job] = Options(
                states, market.gains[n, : len(states)], moved.gains[n, : len(states)]
            )
            if found.chosen[n] >= 0:
                chosen[job] = states[found.chosen[n]]
        current = {j.id: j.allocation for j in self.view.jobs if j.allocation is not None}
        taken = self.strangers.placements.values()
        return seated(chosen, options, current, ready, self.view.gpu_types, taken)


def _is_on(job: JobView, node: Node) -> bool:
    return job.allocation is not None and any(node.id == n for n, _ in job.allocation.nodes)


def replace_held(standing: Standing) -> JobView:
    return replace(standing.view, allocation=None)
