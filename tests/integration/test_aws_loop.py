"""The real control loop renting from a moto server through bad weather, in virtual time."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aws_faults import Layer, Weather
from aws_server import T4, Aws, moto_server
from boa.model.job import GpuLimits
from boa.runtime.assemble import assemble
from boa.scheduler.money.ledger import bill
from live import Live, config, kinds, prior, profile, spec

SHORT = profile("short", work=(400.0, 500.0), alpha=0.8, rescale_s=20.0, widest=8)
MAX_SPEND = 16.0
TICK_S = 60.0


@pytest.fixture(scope="module")
def layer() -> Iterator[Layer]:
    with moto_server() as layer:
        yield layer


@pytest.fixture
def lives(
    layer: Layer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., "Flight"]]:
    """All waiting is in virtual time: botocore's, and the loop's before it asks again."""
    made: list[Flight] = []

    def make(spot: bool = False, billing: str = "node") -> Flight:
        aws = Aws(layer)
        patch = monkeypatch.setattr
        patch("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))
        patch("boa.clouds.aws.calls.ATTEMPTS", 2)
        virtual = SimpleNamespace(monotonic=aws.clock.now, time=time.time)
        patch("boa.runtime.actor.time", virtual)
        patch("live.assemble", lambda *a, **k: assemble(*a, **{**k, "cluster": f"{aws.owner}-db"}))
        made.append(Flight(aws, tmp_path, spot, billing))
        return made[-1]

    yield make
    for flight in made:
        flight.live.close()


class Flight:
    """A service and its account, and what must be true of both at every moment."""

    def __init__(self, aws: Aws, folder: Path, spot: bool, billing: str) -> None:
        self.aws, self._spot = aws, spot
        settings = config(
            folder,
            budget=12.0,
            max_spend=MAX_SPEND,
            gpu_types={"T4": T4},
            priors={"short": prior(SHORT, 12.0)},
            billing=billing,
            keep_warm_s=120.0,
            refused_s=60.0,
        )
        self.live = Live(settings, {"short": SHORT}, clock=aws.clock, cloud=self._cloud())
        self.live.settle()

    def _cloud(self) -> Any:
        return self.aws.cloud(spot=self._spot, gpu_types={"T4": T4}, max_spend=MAX_SPEND)

    def tick(self) -> None:
        self.live.advance(TICK_S, tick=TICK_S)
        rate = 4 * T4.price * len(self.aws.sky.alive())
        assert rate <= MAX_SPEND

    def crash(self) -> None:
        weather, self.aws.sky.weather = self.aws.sky.weather, Weather()
        self.live.cloud = self._cloud()
        self.live.crash()
        self.aws.sky.weather = weather

    def land(self) -> None:
        """The weather clears up, all jobs end, and all nodes are given back."""
        self.aws.sky.weather = Weather()
        for _ in range(120):
            if not self.live.loop.snapshot.jobs and not self.aws.sky.alive():
                break
            self.tick()
        self.live.advance(300.0)

    def check(self, slack_s: float = 0.0) -> None:
        truth = self.aws.sky.truth
        assert truth, "nothing was rented"
        assert Counter(one.token for one in truth.values()).most_common(1)[0][1] == 1
        assert not self.aws.sky.alive(), "an instance was forgotten"
        assert not self.live.loop.snapshot.nodes
        lived = sum((one.ended or 0.0) - one.launched for one in truth.values())
        assert self.live.store is not None
        stored = self.live.store.nodes_between(0.0, float("inf"))
        paid = bill(stored, (), 0.0, float("inf")).total / 4 / T4.price * 3600
        assert lived - 1e-3 <= paid <= lived + slack_s + 1e-3


@pytest.mark.parametrize(("seed", "billing"), [(1, "gpu"), (2, "gpu"), (1, "node")])
def test_no_weather_makes_two_of_one_forgets_any_or_pays_wrongly(
    lives: Any, seed: int, billing: str
) -> None:
    flight = lives(spot=seed % 2 == 1, billing=billing)
    sky, luck = flight.aws.sky, random.Random(seed)
    sky.boot_s, sky.stop_s, sky.listed_after_s = 50.0, 40.0, seed * 5.0
    sky.idempotent = sky.listed_after_s > 0
    sky.weather = Weather(seed=seed, faults=0.25, short=0.25)
    deeds = [(6, sky.vanish), (12, sky.interrupt)]
    for minute in range(18):
        if minute % 4 == 0:
            flight.live.submit(spec("short"))
        there = sorted(sky.alive(), key=lambda id: sky.truth[id].token)  # ids are moto's luck
        if there and deeds and minute >= deeds[0][0]:
            deeds.pop(0)[1](luck.choice(there))
        if minute == 9:
            flight.crash()
        flight.tick()
    assert not deeds
    flight.land()
    flight.check(slack_s=2 * TICK_S)  # until the one that vanished was missed
    happened = set(kinds(flight.live))
    assert happened >= {"shortage", "trouble", "node_ready", "node_leaving", "node_lost"}


def test_a_spot_notice_moves_the_job_before_its_node_goes(lives: Any) -> None:
    flight = lives(spot=True)
    job = flight.live.submit(spec("short", gpus=GpuLimits(max=4)))
    flight.tick()
    assert flight.live.job(job).state == "running"
    (id,) = flight.aws.sky.alive()
    flight.aws.sky.interrupt(id)
    flight.live.advance(30.0, tick=10.0)
    first, second = flight.aws.sky.truth
    assert first == id
    assert flight.aws.sky.state(second) == "running"
    assert "node_leaving" in kinds(flight.live)
    assert flight.live.job(job).restarts == 0, "moved, not lost"
    flight.land()
    flight.check()
    assert flight.live.job(job).state == "succeeded"


def test_nodes_of_a_database_that_was_lost_are_given_back(lives: Any) -> None:
    flight = lives()
    flight.aws.cloud().rent(f"{flight.aws.owner}-older-1", "T4")
    flight.live.advance(120.0, tick=30.0)
    assert "orphan" in kinds(flight.live)
    flight.check()
