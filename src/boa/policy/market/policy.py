"""BOA where nodes are billed: rent, fill, squeeze and release by what a node is worth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from boa.model.cluster import Allocation, ClusterView, Decision, JobId, Node, NodeId
from boa.model.speedup import Floats
from boa.placement.seating import Options, seated
from boa.policy.boa import Planned
from boa.policy.market.clearing import Cleared, cleared
from boa.policy.market.prospects import Prospects, Standing, later, prospects
from boa.units import SECONDS_PER_HOUR, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    rent: float = 1.3
    lifetime_s: Seconds = 1000.0
    release: float = 1.0
    least_s: Seconds = 20.0
    rent_s: Seconds | None = None
    keep_s: Seconds | None = 60.0
    ahead: float = 1.0
    drain: bool = True


@dataclass(frozen=True, slots=True)
class Market:
    rules: Rules = Rules()
    price: float | None = None
    name: ClassVar[str] = "boa"
    by_job: ClassVar[bool] = False
    at_events: ClassVar[bool] = True

    def decide(self, view: ClusterView) -> Decision:
        planned: Planned | None = view.memory
        if planned is None:
            return Decision(nodes=tuple(view.nodes))
        return _Step(self, view, planned).decision()


class _Step:
    def __init__(self, market: Market, view: ClusterView, planned: Planned) -> None:
        self.rules, self.view, self.planned = market.rules, view, planned
        price = planned.price if market.price is None else market.price
        self.worths = planned.worths(price)
        self.price = price
        self.kinds = list(view.gpu_types.values())
        self.costs = np.array(
            [price * k.price * k.gpus_per_node / SECONDS_PER_HOUR for k in self.kinds]
        )
        """Seconds per second that a node of every type costs."""
        self.sizes = np.array([float(k.gpus_per_node) for k in self.kinds])
        self.standings = [Standing(job, job.resumes_in) for job in view.jobs]
        between = SECONDS_PER_HOUR / planned.solution.workload.arrivals_per_hour
        self.between = between
        soon = min(view.booting.values(), default=between)
        self.horizon = max(min(between, soon) if view.booting else between, self.rules.least_s)

    def decision(self) -> Decision:
        view = self.view
        ready = [node for node in view.nodes if node.id not in view.booting]
        booting = [node for node in view.nodes if node.id in view.booting]
        new: list[Node] = []
        market = prospects(self.standings, self.worths, self.horizon)
        found = cleared(market, self._room(ready))
        placements = self._seat(market, found, ready)
        if self.standings:
            ahead = later(self.standings, placements, self.worths, view.boot_s * self.rules.ahead)
            jobs = prospects(ahead, self.worths, self.rules.rent_s or self.between)
            new = self._rent(jobs, [*ready, *booting])
        if not booting and not new:
            jobs = prospects(self.standings, self.worths, self.rules.keep_s or self.between)
            kept = self._release(jobs, ready)
            if len(kept) < len(ready):
                ready = kept
                found = cleared(market, self._room(ready))
                placements = self._seat(market, found, ready)
        return Decision(placements=placements, nodes=(*ready, *booting, *new), memory=self.planned)

    def _room(self, nodes: Sequence[Node]) -> Floats:
        room = np.zeros(len(self.kinds))
        for n, kind in enumerate(self.kinds):
            room[n] = kind.gpus_per_node * sum(node.gpu == kind.name for node in nodes)
        return room

    def _rent(self, jobs: Prospects, nodes: Sequence[Node]) -> list[Node]:
        rules, view = self.rules, self.view
        room = self._room(nodes)
        value = cleared(jobs, room).gain
        wait = view.boot_s + view.reclaim_s
        costs = self.costs * (1.0 + wait / rules.lifetime_s)
        found: list[Node] = []
        while len(found) < 1000:
            nets = []
            for n in range(len(self.kinds)):
                more = room.copy()
                more[n] += self.sizes[n]
                gain = cleared(jobs, more).gain
                nets.append((rules.rent * (gain - value) - costs[n], n, gain))
            net, n, gain = max(nets)
            if net <= 0:
                break
            room[n] += self.sizes[n]
            value = gain
            kind = self.kinds[n]
            found.append(Node(view.next_node + len(found), kind.name, kind.gpus_per_node))
        return found

    def _release(self, jobs: Prospects, ready: list[Node]) -> list[Node]:
        moved = prospects(
            [Standing(replace_held(s), 0.0) for s in self.standings],
            self.worths,
            self.rules.keep_s or self.between,
        )
        while ready:
            room = self._room(ready)
            value = cleared(jobs, room).gain
            best: tuple[float, Node, Prospects] | None = None
            for n, kind in enumerate(self.kinds):
                here = [node for node in ready if node.gpu == kind.name]
                if not here:
                    continue
                for node in self._emptiest(here)[:2]:
                    without = self._vacated(jobs, moved, node.id)
                    less = room.copy()
                    less[n] -= self.sizes[n]
                    loss = value - cleared(without, less).gain
                    net = self.rules.release * self.costs[n] - loss
                    if net > 0 and (best is None or net > best[0]):
                        best = (net, node, without)
            if best is None:
                return ready
            ready = [node for node in ready if node.id != best[1].id]
            jobs = best[2]
        return ready

    def _emptiest(self, nodes: list[Node]) -> list[Node]:
        used: dict[NodeId, int] = {}
        for job in self.view.jobs:
            if job.allocation is not None:
                for node, count in job.allocation.nodes:
                    used[node] = used.get(node, 0) + count
        return sorted(nodes, key=lambda node: (used.get(node.id, 0), -node.id))

    def _vacated(self, jobs: Prospects, moved: Prospects, node: NodeId) -> Prospects:
        on = {
            job.id
            for job in self.view.jobs
            if job.allocation is not None and any(n == node for n, _ in job.allocation.nodes)
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
        moved = prospects(
            [Standing(replace_held(s), 0.0) for s in self.standings], self.worths, horizon
        )
        chosen, options = {}, {}
        for n, job in enumerate(market.jobs):
            states = market.states[n]
            options[job] = Options(
                states, market.gains[n, : len(states)], moved.gains[n, : len(states)]
            )
            if found.chosen[n] >= 0:
                chosen[job] = states[found.chosen[n]]
        current = {j.id: j.allocation for j in self.view.jobs if j.allocation is not None}
        return seated(chosen, options, current, ready, self.view.gpu_types)


def replace_held(standing: Standing):
    return replace(standing.view, allocation=None)
