"""A cloud that takes nodes away after a warning, and that changes its prices: spot markets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from boa.clouds.base import Cloud
from boa.clouds.local import LocalCloud
from boa.model.cloud import CloudNode
from boa.model.job import GpuLimits
from boa.model.records import NodeRecord
from boa.model.workload import GpuType
from boa.scheduler.decide.room import room_for
from boa.scheduler.money.ledger import bill, spend_now
from boa.scheduler.state import Draft, State
from boa.units import Seconds
from live import START, T4, Live, config, kinds, prior, profile, spec

LONG = profile("long", work=(360_000.0,), alpha=0.9)
ONE_NODE = GpuLimits(max=T4.gpus_per_node)
NOTICE_S: Seconds = 120.0


@dataclass
class SpotMarket:
    """Any cloud, whose nodes may be called back and become dearer."""

    cloud: Cloud
    leaving: dict[str, Seconds] = field(default_factory=dict)
    price: float = 1.0

    def offers(self) -> Mapping[str, GpuType]:
        return self.cloud.offers()

    def rent(self, token: str, gpu: str) -> None:
        self.cloud.rent(token, gpu)

    def release(self, token: str) -> None:
        self.cloud.release(token)

    def nodes(self) -> Sequence[CloudNode]:
        return [
            replace(node, leaving_at=self.leaving.get(node.token), price=self.price)
            for node in self.cloud.nodes()
        ]


@pytest.fixture
def market(tmp_path: Path) -> Any:
    settings = config(tmp_path, budget=4.0, priors={"long": prior(LONG, 0.05)})
    live = Live(settings, {"long": LONG})
    assert isinstance(live.cloud, LocalCloud)
    spot = SpotMarket(live.cloud)
    live.cloud = live.loop.actor._cloud = spot
    live.settle()
    yield live
    live.close()


def test_a_node_that_is_called_back_is_left_at_once_without_a_failure(market: Live) -> None:
    job_id = market.submit(spec("long", retries=0, gpus=ONE_NODE))
    market.advance(3600.0)
    before = market.job(job_id)
    assert before.run is not None
    (node,) = market.loop.snapshot.nodes.values()
    cloud: Any = market.cloud
    cloud.leaving[node.token] = market.clock.now() + NOTICE_S
    market.settle()
    market.advance(60.0)
    job = market.job(job_id)
    assert job.run is not None
    assert node.id not in job.run.slots, "it runs elsewhere"
    assert (job.failures, job.run.attempt) == (0, before.run.attempt + 1)
    assert kinds(market, job_id) == ["submitted", "started", "preempted", "rescaled"], (
        "asked to, not killed"
    )
    listed = {seen.token: seen for seen in cloud.nodes()}
    gone_at = listed[node.token].gone_at
    assert gone_at is not None
    assert gone_at < cloud.leaving[node.token], "given back as soon as it is empty"
    assert [kind for kind in kinds(market) if kind == "node_leaving"] == ["node_leaving"]


def test_nothing_is_placed_on_a_node_that_is_leaving(market: Live) -> None:
    market.submit(spec("long", gpus=ONE_NODE))
    (node,) = market.loop.snapshot.nodes.values()
    cloud: Any = market.cloud
    cloud.leaving[node.token] = market.clock.now() + NOTICE_S
    market.settle()
    for _ in range(3):
        job = market.job(market.submit(spec("long", gpus=ONE_NODE)))
        assert job.allocation is None or node.id not in dict(job.allocation.nodes)


def test_a_node_that_is_leaving_counts_as_one_of_the_most_that_may_be_rented() -> None:
    """Or the cloud would refuse its successor, and be taken at its word for a while."""
    node = NodeRecord(
        id=1, token="boa-1", gpu="T4", gpus=4, price=1.0, state="ready", requested_at=0.0
    )
    state = State(nodes={1: node, 2: replace(node, id=2, leaving_at=9.0)})
    assert room_for(Draft(state, 1.0), {"T4": 2}, {}, None).releasing == {"T4": 1}


def test_a_node_whose_price_changes_costs_its_average_so_far(market: Live) -> None:
    market.submit(spec("long", gpus=ONE_NODE))
    market.advance(3600.0)
    cloud: Any = market.cloud
    cloud.price = 1.5  # on average: the second hour costs twice as much as the first
    market.advance(3600.0)
    nodes = list(market.loop.snapshot.nodes.values())
    assert spend_now(nodes, 0.0) == pytest.approx(1.5 * T4.gpus_per_node * len(nodes))
    owed = bill(nodes, market.loop.snapshot.holds.values(), START, market.clock.now())
    hours = sum(market.clock.now() - (node.billed_from or 0.0) for node in nodes) / 3600.0
    assert owed.total == pytest.approx(1.5 * T4.gpus_per_node * hours)
