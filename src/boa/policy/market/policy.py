"""BOA where nodes are billed: rent, fill, squeeze and release by what a node is worth."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from boa.model.cluster import Allocation, ClusterView, Decision, JobId, Node, NodeId
from boa.model.speedup import Floats
from boa.placement.seating import Options, seated
from boa.policy.boa import Planned
from boa.policy.market.clearing import Cleared, cleared, gained
from boa.policy.market.prospects import Prospects, prospects
from boa.policy.market.standings import later, standings_of
from boa.units import SECONDS_PER_HOUR, Seconds

STEPS = (1, 2, 3, 4, 6, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    rent: float = 1.3
    lifetime_s: Seconds = 1000.0
    release: float = 0.7
    least_s: Seconds = 20.0
    rent_s: Seconds = 60.0
    keep_s: Seconds | None = 60.0
    ahead: float = 1.0
    span: float = 60.0
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
        self.standings = standings_of(view.jobs, self.worths)
        between = market.rules.span
        self.between = between
        soon = min(view.booting.values(), default=between)
        self.horizon = max(min(between, soon) if view.booting else between, self.rules.least_s)

    def decision(self) -> Decision:
        view = self.view
        ready = [node for node in view.nodes if node.id not in view.booting]
        booting = [node for node in view.nodes if node.id in view.booting]
        new: list[Node] = []
        market = prospects(self.standings, self.horizon)
        found = cleared(market, self._room(ready))
        placements = self._seat(market, found, ready)
        if self.view.jobs:
            ahead = later(self.standings, placements, view.boot_s * self.rules.ahead)
            spans = [self.rules.rent_s, 4 * self.rules.rent_s, 16 * self.rules.rent_s]
            new = self._rent([(span, prospects(ahead, span)) for span in spans], [*ready, *booting])
        if not booting and not new:
            jobs = prospects(self.standings, self.rules.keep_s or self.between)
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

    def _rent(
        self, markets: Sequence[tuple[Seconds, Prospects]], nodes: Sequence[Node]
    ) -> list[Node]:
        rules, view = self.rules, self.view
        room = self._room(nodes)
        wait = view.boot_s + view.reclaim_s
        found: list[Node] = []
        asked = [(n, count) for n in range(len(self.kinds)) for count in STEPS]
        while len(found) < 1000:
            nets = []
            rooms = np.array([room, *(self._more(room, n, count) for n, count in asked)])
            firsts = gained(markets[0][1], rooms)
            pays = [
                i
                for i, (n, count) in enumerate(asked, start=1)
                if firsts[i] - firsts[0] >= rules.release * self.costs[n] * count
            ]
            if not pays:
                break
            some = [0, *pays]
            gains = [firsts[some], *(gained(jobs, rooms[some]) for _, jobs in markets[1:])]
            for i, (n, count) in enumerate((asked[i - 1] for i in pays), start=1):
                for m, (span, _) in enumerate(markets):
                    cost = self.costs[n] * (1.0 + wait / span) * count
                    nets.append((rules.rent * (gains[m][i] - gains[m][0]) - cost, n, count))
            net, n, count = max(nets, default=(0.0, 0, 0))
            if net <= 0:
                break
            room[n] += count * self.sizes[n]
            kind = self.kinds[n]
            for _ in range(count):
                found.append(Node(view.next_node + len(found), kind.name, kind.gpus_per_node))
        return found

    def _more(self, room: Floats, n: int, count: int) -> Floats:
        more = room.copy()
        more[n] += count * self.sizes[n]
        return more

    def _release(self, jobs: Prospects, ready: list[Node]) -> list[Node]:
        while ready:
            room = self._room(ready)
            value = cleared(jobs, room).gain
            best: tuple[float, list[Node], Prospects] | None = None
            for n, kind in enumerate(self.kinds):
                here = [node for node in ready if node.gpu == kind.name]
                if not here:
                    continue
                order = self._emptiest(here)
                for gone in (order[:1], order[1:2]):
                    if not gone:
                        continue
                    without = self._vacated(jobs, {node.id for node in gone})
                    less = room.copy()
                    less[n] -= self.sizes[n] * len(gone)
                    loss = value - cleared(without, less).gain
                    net = self.rules.release * self.costs[n] * len(gone) - loss
                    if net > 0 and (best is None or net > best[0]):
                        best = (net, gone, without)
            if best is None:
                return ready
            gone = {node.id for node in best[1]}
            ready = [node for node in ready if node.id not in gone]
            jobs = best[2]
        return ready

    def _emptiest(self, nodes: list[Node]) -> list[Node]:
        used = self._used
        return sorted(nodes, key=lambda node: (used.get(node.id, 0), -node.id))

    @cached_property
    def _used(self) -> dict[NodeId, int]:
        used: dict[NodeId, int] = {}
        for job in self.view.jobs:
            if job.allocation is not None:
                for node, count in job.allocation.nodes:
                    used[node] = used.get(node, 0) + count
        return used

    @cached_property
    def _rows_on(self) -> dict[NodeId, list[int]]:
        """Rows of the jobs on every node."""
        found: dict[NodeId, list[int]] = {}
        for row, job in enumerate(self.standings.views):
            if job.allocation is not None:
                for node, _ in job.allocation.nodes:
                    found.setdefault(node, []).append(row)
        return found

    def _vacated(self, jobs: Prospects, gone: set[NodeId]) -> Prospects:
        rows = sorted({row for node in gone for row in self._rows_on.get(node, ())})
        if not rows:
            return jobs
        gains, held = jobs.gains.copy(), jobs.held.copy()
        gains[rows], held[rows] = jobs.elsewhere[rows], -1
        return replace(jobs, gains=gains, held=held)

    def _seat(
        self, market: Prospects, found: Cleared, ready: Sequence[Node]
    ) -> dict[JobId, Allocation]:
        states = market.states
        columns = enumerate(found.chosen.tolist())
        chosen = {market.jobs[n]: states[n][column] for n, column in columns if column >= 0}
        options = _Menu(market)
        current = {j.id: j.allocation for j in self.view.jobs if j.allocation is not None}
        return seated(chosen, options, current, ready, self.view.gpu_types)


class _Menu(Mapping[JobId, Options]):
    """Options of each job: put together for those alone whom somebody asks about."""

    def __init__(self, market: Prospects) -> None:
        self._market = market
        self._rows = {job: row for row, job in enumerate(market.jobs)}

    def __getitem__(self, job: JobId) -> Options:
        market, row = self._market, self._rows[job]
        states = market.states[row]
        columns = slice(len(states))
        return Options(states, market.gains[row, columns], market.elsewhere[row, columns])

    def __iter__(self) -> Iterator[JobId]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
