"""A cloud that answers late, loses requests and takes nodes back: what is paid is what is owed."""

import random
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from boa.model.cloud import CloudNode
from boa.model.records import NodeRecord
from boa.scheduler.money.ledger import bill
from boa.scheduler.observe.reconcile import Changed, Orphan, Release, Rent, adopted, reconcile

TICK_S = 10.0
PRICE, GPUS = 3600.0, 1
"""A dollar a second."""


@dataclass
class Cloud:
    """Its own truth. Requests may be lost, or come late; lists may be old."""

    dice: random.Random
    nodes: dict[str, CloudNode] = field(default_factory=dict)
    on_the_way: list[tuple[float, str, str]] = field(default_factory=list)

    def ask(self, what: str, token: str, now: float) -> None:
        if self.dice.random() > 0.3:
            self.on_the_way.append((now + self.dice.choice([0.0, 5.0, 35.0]), what, token))

    def pass_time(self, now: float, quiet: bool) -> None:
        arrived = [request for request in self.on_the_way if request[0] <= now]
        self.on_the_way = [request for request in self.on_the_way if request[0] > now]
        for at, what, token in arrived:
            if what == "rent" and token not in self.nodes:
                self.nodes[token] = CloudNode(
                    token=token, gpu="T4", gpus=GPUS, price=PRICE, billed_from=at, ready_at=None
                )
            elif what == "release" and token in self.nodes:
                self._end(token, at)
        for token, node in self.nodes.items():
            if node.ready_at is None and node.gone_at is None and self.dice.random() < 0.3:
                self.nodes[token] = replace(node, ready_at=now)
            if not quiet and self.dice.random() < 0.03:
                self._end(token, now)

    def _end(self, token: str, at: float) -> None:
        if self.nodes[token].gone_at is None:
            self.nodes[token] = replace(self.nodes[token], gone_at=at)

    def list(self) -> list[CloudNode]:
        """Those that are gone for a while at most."""
        live = [node for node in self.nodes.values() if node.gone_at is None]
        gone = [node for node in self.nodes.values() if node.gone_at is not None]
        return live + [node for node in gone if self.dice.random() < 0.5]

    def owed(self) -> float:
        return sum((node.gone_at or 0.0) - node.billed_from for node in self.nodes.values())


@dataclass
class Service:
    cloud: Cloud
    dice: random.Random
    forgetful: bool
    """Now and then a record is lost, as no store should lose it: its node becomes an orphan."""
    records: dict[int, NodeRecord] = field(default_factory=dict)
    gone: list[NodeRecord] = field(default_factory=list)
    next_node: int = 0

    def tick(self, now: float, listed: list[CloudNode], at: float, closing: bool) -> None:
        if not closing and self.dice.random() < 0.3:
            node = NodeRecord(
                id=self.next_node,
                token=f"boa-{self.next_node}",
                gpu="T4",
                gpus=GPUS,
                price=PRICE,
                requested_at=now,
            )
            self._write(node)
            self.cloud.ask("rent", node.token, now)
        for action in reconcile([*self.records.values(), *self.gone], listed, at, again_s=60.0):
            self._act(action, now)
        for node in list(self.records.values()):
            if node.state in ("requested", "ready") and (closing or self.dice.random() < 0.05):
                self._write(replace(node, state="releasing", released_at=now))
                self.cloud.ask("release", node.token, now)
            elif self.forgetful and self.dice.random() < 0.02 and node.billed_from is not None:
                del self.records[node.id]

    def _act(self, action: object, now: float) -> None:
        if isinstance(action, Changed):
            self._write(action.node)
        elif isinstance(action, Orphan):
            self._write(adopted(action, self.next_node, now))
        elif isinstance(action, Rent):
            self.cloud.ask("rent", action.node.token, now)
        elif isinstance(action, Release):
            self.cloud.ask("release", action.node.token, now)

    def _write(self, node: NodeRecord) -> None:
        self.next_node = max(self.next_node, node.id + 1)
        self.records[node.id] = node
        if node.state == "gone":
            self.gone.append(self.records.pop(node.id))


@given(seed=st.integers(0, 100_000), ticks=st.integers(1, 60), forgetful=st.booleans())
def test_in_the_end_every_node_is_gone_and_was_paid_for_once(
    seed: int, ticks: int, forgetful: bool
) -> None:
    dice = random.Random(seed)
    cloud = Cloud(dice)
    service = Service(cloud, dice, forgetful)
    listed, listed_at, now = cloud.list(), 0.0, 0.0
    for tick in range(ticks + 60):
        now += TICK_S
        closing = tick >= ticks
        service.forgetful = forgetful and not closing
        cloud.pass_time(now, quiet=closing)
        if tick % 2:
            listed, listed_at = cloud.list(), now
        service.tick(now, listed, listed_at, closing)
    assert not service.records, "a node nobody ended"
    assert all(node.gone_at is not None for node in cloud.nodes.values()), "a forgotten node"
    paid = bill(service.gone, [], 0.0, now).total
    unseen = 3 * TICK_S * len(service.gone)  # between its end and the next look at a list
    assert paid <= cloud.owed() + unseen, "nothing is paid for twice"
    if not forgetful:
        assert paid >= cloud.owed() - unseen, "nothing is left out"
