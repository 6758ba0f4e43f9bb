"""BOA where nodes are billed: rent, fill, squeeze and release by what a node is worth.

At every event, and every minute: jobs share the GPUs that are ready by a market (`clearing`),
placement seats them, nodes are rented or given back (`renting`). Everything is compared in
seconds of jobs per second, at the price of money of the plan in force.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress
from typing import ClassVar

from boa.model.cluster import Allocation, ClusterView, Decision, JobId, Node, NodeId, NodeReason
from boa.placement.seating import Options, seated
from boa.policy.boa import Planned
from boa.policy.market.clearing import cleared
from boa.policy.market.prospects import Prospects
from boa.policy.market.renting import Weighed, to_keep, to_rent
from boa.policy.market.scene import LEAST_PRICE, Scene
from boa.policy.market.standings import later
from boa.policy.market.strangers import seat_strangers
from boa.policy.market.waiting import better, staying
from boa.units import SECONDS_PER_HOUR, Seconds


@dataclass(frozen=True, slots=True)
class Market:
    price: float | None = None
    """Seconds that a dollar is worth; None: as in the plan."""
    name: ClassVar[str] = "boa"
    by_job: ClassVar[bool] = False
    at_events: ClassVar[bool] = True
    follows_plan: ClassVar[bool] = True

    def decide(self, view: ClusterView) -> Decision:
        planned: Planned | None = view.memory
        if planned is None:  # nodes are kept for whoever waits for the first plan
            held = seat_strangers(view, view.jobs)
            kept = tuple(view.nodes) if view.jobs else ()
            return Decision(placements=held.placements, nodes=(*kept, *held.new))
        price = planned.price if self.price is None else self.price
        return _decided(Scene(view, planned, price), planned)


def _decided(scene: Scene, planned: Planned) -> Decision:
    view = scene.view
    ready = [node for node in view.nodes if node.id not in view.booting]
    booting = [node for node in view.nodes if node.id in view.booting] if view.booting else []
    booting += scene.strangers.new
    placements = _seated(scene, scene.market, ready)
    new = _wanted(scene, placements, [*ready, *booting])
    coming = [*booting, *chain.from_iterable(one.nodes for one in new)]
    if coming and _moves(scene, placements):
        still = _seated(scene, staying(scene.market), ready)
        ways, there = (still, placements), [*ready, *coming]
        placements = better(scene, ways, there, _ready_in(scene, coming))
    waiting = len(scene.jobs) - len(placements)
    kept, gone = list[Weighed](), list[Weighed]()
    if not booting and not new:
        kept, gone = to_keep(scene, ready)
        left = _without(ready, gone)
        after = _seated(scene, scene.market, left) if gone else placements
        if gone and _wanted(scene, after, left):  # what is given back would be rented again
            kept, gone = [], []
        elif gone:
            ready, placements = left, after
    return Decision(
        placements={**scene.strangers.placements, **placements},
        nodes=(*ready, *coming),
        memory=planned,
        reasons={
            **_reasons(scene, [*kept, *new], waiting),
            **_reasons(scene, gone, waiting, gone=True),
        },
    )


def _moves(scene: Scene, placements: Mapping[JobId, Allocation]) -> bool:
    """Whether anybody is to have other GPUs than it has."""
    get = placements.get
    return any(get(job) is not held and get(job) != held for job, held in scene.current.items())


def _ready_in(scene: Scene, coming: Iterable[Node]) -> Seconds:
    """Seconds until the first of the nodes that are on their way is ready."""
    view = scene.view
    return min(view.booting.get(node.id, view.boot_s.get(node.gpu, 0.0)) for node in coming)


def _without(nodes: Sequence[Node], gone: Iterable[Weighed]) -> list[Node]:
    leaving = {node.id for one in gone for node in one.nodes}
    return [node for node in nodes if node.id not in leaving]


def _wanted(
    scene: Scene, placements: Mapping[JobId, Allocation], nodes: Sequence[Node]
) -> list[Weighed]:
    """Nodes to be rented beside these, by where jobs will stand when one could be ready."""
    if not scene.jobs:
        return []
    boot_s = max(scene.view.boot_s.values(), default=0.0)
    return to_rent(scene, later(scene.standings, placements, boot_s), nodes)


def _seated(scene: Scene, market: Prospects, ready: Sequence[Node]) -> dict[JobId, Allocation]:
    found = cleared(market, scene.room(ready))
    jobs, columns, current = market.jobs, found.chosen.tolist(), scene.current
    chosen = {
        job: states[column]
        for job, states, column in zip(jobs, market.states, columns, strict=True)
        if column >= 0
    }
    stays = (found.chosen >= 0) & (found.chosen == market.held)
    same = {job: current[job] for job in compress(jobs, stays.tolist())}
    taken = scene.strangers.placements.values()
    return seated(chosen, same, _Offered(market), current, ready, scene.view.gpu_types, taken)


class _Offered:
    """Options by job, made when asked for, since few are to move."""

    def __init__(self, market: Prospects) -> None:
        self._market = market
        self._made: dict[JobId, Options] = {}

    @cached_property
    def _rows(self) -> Mapping[JobId, int]:
        return {job: n for n, job in enumerate(self._market.jobs)}

    def __getitem__(self, job: JobId, /) -> Options:
        found = self._made.get(job)
        if found is None:
            market, row = self._market, self._rows[job]
            states = market.states[row]
            gains, elsewhere = market.gains[row], market.elsewhere[row]
            found = Options(states, gains[: len(states)], elsewhere[: len(states)])
            self._made[job] = found
        return found


def _reasons(
    scene: Scene, weighed: Iterable[Weighed], waiting: int, *, gone: bool = False
) -> Mapping[NodeId, NodeReason]:
    """Why nodes are rented, kept or given back, in money and in seconds."""
    found: dict[NodeId, NodeReason] = {}
    weighed = [one for one in weighed if one.nodes]
    if not weighed:
        return found
    known = scene.price > LEAST_PRICE
    left_s = scene.left_s if all(job.work for job in scene.jobs) else None
    for nodes, gain, over_s in weighed:
        kind = scene.view.gpu_types[nodes[0].gpu]
        on = [job for node in nodes for job in scene.jobs_on(node.id)] if gone else []
        pauses = (scene.worths[job.job_class].course.rescale_s + job.lost_s for job in on)
        why = NodeReason(
            price_per_hour=kind.node_price,
            worth_per_hour=gain / scene.price * SECONDS_PER_HOUR if known else None,
            saves_s=gain * over_s,
            over_s=over_s,
            left_s=left_s,
            waiting=waiting,
            moved=tuple(job.id for job in on),
            pause_s=sum(pauses),
        )
        found.update(dict.fromkeys([node.id for node in nodes], why))
    return found
