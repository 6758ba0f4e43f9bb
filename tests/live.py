"""The real control loop on a virtual clock: real store, real local cloud, jobs that are acted out.

Nothing sleeps: the clock is moved to whatever happens next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boa.clock import VirtualClock
from boa.clouds.base import Cloud
from boa.clouds.by_calendar import PricedByCalendar
from boa.clouds.local import LocalCloud
from boa.model.cluster import Policy
from boa.model.job import GpuLimits, JobRecord, JobSpec
from boa.model.prices import CONSTANT, PriceSchedule
from boa.model.profile import ClassProfile
from boa.model.service import ClassPrior, ServiceConfig
from boa.model.workload import GpuType
from boa.policy.registry import Knobs, choose
from boa.runtime.assemble import assemble
from boa.runtime.loop import ControlLoop
from boa.scheduler.plan.calculator import InlineCalculator
from boa.sim.engine import SAVES, Checkpointing, SimulatedEngine, acting_out
from boa.sim.jobs import NEVER
from boa.store.base import Store
from boa.store.sql import open_store
from boa.units import Seconds

T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
A100 = GpuType(name="A100", price=3.0, gpus_per_node=2)
START = 1_000_000.0


def profile(
    name: str,
    *,
    work: Sequence[float] = (3600.0,),
    alpha: float = 0.8,
    gpus: Mapping[str, float] | None = None,
    rescale_s: Seconds = 30.0,
    widest: int = 16,
) -> ClassProfile:
    """Units per second at width k: speed × k^alpha."""
    widths = np.arange(widest + 1.0)
    curve = np.where(widths > 0, widths**alpha, 0.0)
    rates = {
        gpu: np.broadcast_to(speed * curve, (len(work), 2, widest + 1)).copy()
        for gpu, speed in (gpus or {"T4": 1.0}).items()
    }
    return ClassProfile(name=name, work=tuple(work), rates=rates, rescale_s=rescale_s)


LONG = profile("long", work=(36_000.0,), alpha=0.9)
HALVES = profile("halves", work=(1800.0, 1800.0), alpha=0.8)
BILLINGS = pytest.mark.parametrize("billing", ["gpu", "node"])


def spec(name: str, **fields: object) -> JobSpec:
    fields.setdefault("gpus", GpuLimits(max=16))
    return JobSpec(job_class=name, run=("true",), launcher="single", **fields)  # type: ignore[arg-type]


def config(folder: Path, **fields: object) -> ServiceConfig:
    settings: dict[str, object] = {
        "budget": 8.0,
        "gpu_types": {"T4": T4},
        "data_dir": folder,
        "db": f"sqlite:///{folder}/boa.db",
        "keep_warm_s": 0.0,
        **fields,
    }
    return ServiceConfig(**settings)  # type: ignore[arg-type]


def prior(known: ClassProfile, per_hour: float, weight_h: float = 1000.0) -> ClassPrior:
    """A class that is known for good: its rates and how often it comes."""
    return ClassPrior(
        name=known.name,
        profile=known,
        arrivals_per_hour=per_hour,
        arrivals_weight_h=weight_h,
        measured_weight=1000.0,
    )


def policy_of(settings: ServiceConfig) -> Policy:
    """BOA, as the accounting wants it."""
    return choose("boa", Knobs(budget=settings.budget), settings.billing).policy


@dataclass
class Live:
    """A service in virtual time. `crash` drops everything that is only in memory."""

    config: ServiceConfig
    profiles: Mapping[str, ClassProfile]
    policy: Policy | None = None
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(START))
    cloud: Cloud | None = None
    store: Store | None = None
    schedule: PriceSchedule = CONSTANT
    """Prices over time: the cloud charges them, and the service knows them ahead."""
    saving: Mapping[str, Checkpointing] = field(default_factory=dict)
    """How jobs keep their work, by class; others lose nothing at a stop."""

    def __post_init__(self) -> None:
        self.engine = SimulatedEngine(self.clock, acting_out(self.profiles))
        self.engine.saving = lambda launch: self.saving.get(launch.spec.job_class, SAVES)
        self.logged: list[str] = []
        self.loop = self._begin()

    def _begin(self) -> ControlLoop:
        self.store = open_store(self.config.db)
        self.cloud = self.cloud or LocalCloud(
            self.config.data_dir / "cloud.json",
            gpu_types=self.config.gpu_types,
            max_nodes=self.config.max_nodes,
            clock=self.clock,
            provision_s=self.config.provision_s,
            release_s=self.config.release_s,
        )
        cloud = self.cloud
        if self.schedule is not CONSTANT:
            cloud = PricedByCalendar(cloud, self.schedule, self.clock)
        loop = assemble(
            self.config,
            url="http://127.0.0.1:8420",
            store=self.store,
            saved=self.store.load(),
            engine=self.engine,
            cloud=cloud,
            clock=self.clock,
            calculator=InlineCalculator(),
            policy=self.policy or policy_of(self.config),
            secret=b"secret",
            log=lambda level, text: self.logged.append(f"{level}: {text}"),
            inline=True,
            cluster="test",
            schedule=self.schedule,
        )
        self.engine.report = loop.report
        return loop

    def crash(self) -> None:
        """SIGKILL and a new start: only store, cloud and engine remember anything."""
        assert self.store is not None
        self.store.close()
        self.loop = self._begin()
        self.settle()

    def close(self) -> None:
        self.loop.close()
        assert self.store is not None
        self.store.close()

    def submit(self, job: JobSpec) -> str:
        asked = self.loop.submit(job)
        self.settle()
        return asked.result(timeout=0).id

    def job(self, job_id: str) -> JobRecord:
        active = self.loop.snapshot.jobs.get(job_id)
        assert self.store is not None
        found = active or self.store.job(job_id)
        assert found is not None
        return found

    def settle(self) -> None:
        """Step until nothing more happens at this moment."""
        for _ in range(50):
            self.loop.actor.watch_engine()
            self.loop.actor.watch_cloud()
            before = self.loop.state
            self.loop.step()
            quiet = self.loop.inbox.empty() and not self.loop.scheduler.planner.thinking
            if quiet and _same(before, self.loop.state):
                return
        raise AssertionError("the loop does not come to rest")

    def advance(self, seconds: Seconds, tick: Seconds = 300.0) -> None:
        """Let time pass: stop at whatever happens, and at least every tick."""
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            next_at = min(self.engine.wakes_at(), self.clock.now() + tick, end)
            self.clock.advance_to(max(next_at, self.clock.now() + 1e-6))
            self.settle()

    def finish(self, most: Seconds = 30 * 86_400.0) -> None:
        """Let time pass until no job is left."""
        end = self.clock.now() + most
        while self.loop.snapshot.jobs:
            assert self.clock.now() < end, "jobs that never end"
            wakes = self.engine.wakes_at()
            step = min(wakes, self.clock.now() + 300.0) if wakes < NEVER else self.clock.now() + 60
            self.clock.advance_to(max(step, self.clock.now() + 1e-6))
            self.settle()


def _same(before: object, after: object) -> bool:
    return all(getattr(before, part) == getattr(after, part) for part in ("jobs", "nodes", "holds"))


def kinds(live: Live, job: str | None = None) -> list[str]:
    """Of all its events, or of those of a job, by time."""
    assert live.store is not None
    return [stored.event.kind for stored in live.store.events(job=job, limit=10_000)]


def asked(live: Live, future: Any) -> Any:
    """The answer, once it is stored."""
    live.settle()
    return future.result(timeout=0)
