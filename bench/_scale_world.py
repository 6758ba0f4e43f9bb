"""A service of any size in virtual time: loop, planner's process, store and API are real.

Simulated are the clock, the cloud (a list in memory) and the engine (jobs that are acted out).
"""

import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from boa.clock import VirtualClock
from boa.clouds.base import NoCapacity
from boa.model.cloud import CloudNode
from boa.model.profile import ClassProfile
from boa.model.service import ServiceConfig
from boa.model.workload import GpuType
from boa.policy.boa import Boa
from boa.runtime.assemble import assemble
from boa.runtime.calculator import BackgroundCalculator
from boa.runtime.loop import ControlLoop
from boa.runtime.worker_threads import InlineHands
from boa.sim.engine import SimulatedEngine, acting_out
from boa.store.base import Store
from boa.store.sql import open_store
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from live import START, config, prior, spec

TYPES = {
    "T4": GpuType(name="T4", price=0.5, gpus_per_node=4),
    "A100": GpuType(name="A100", price=1.25, gpus_per_node=8),
}
GPUS_PER_JOB = {"T4": 1.5, "A100": 0.5}
"""What the cloud has, for every job that is active on average; nine tenths are used."""
CLASSES = 40
EPOCHS = 4
WIDEST = 16
WORK_S = 6 * SECONDS_PER_HOUR
"""T4-seconds of an epoch, on average."""
BUDGET_PER_JOB = 1.2
"""Dollars an hour for every active job."""
JOB_H = 10.7
"""Hours that jobs of these classes take on average in a plan for this budget."""
LISTED_AFTER_GONE_S: Seconds = SECONDS_PER_HOUR
BOOT_S: Seconds = 120.0
TURN_STEPS = 4
"""At most so many steps at one moment of virtual time; the rest follows in the next turn."""


def profiles(seed: int = 1) -> dict[str, ClassProfile]:
    """Classes that scale differently, each in every epoch; A100s are 2.5 to 4 times as fast."""
    random = np.random.default_rng(seed)
    widths = np.arange(WIDEST + 1.0)
    found = {}
    for n in range(CLASSES):
        name = f"class{n}"
        alphas = random.uniform(0.4, 0.95, EPOCHS)
        curves = np.where(widths > 0, widths ** alphas[:, None], 0.0)
        faster = {"T4": 1.0, "A100": random.uniform(*((1.2, 1.8) if n % 2 else (2.5, 4.0)))}
        rates = {g: np.repeat((s * curves)[:, None, :], 2, axis=1) for g, s in faster.items()}
        work = tuple(float(w) for w in random.uniform(0.5, 1.5, EPOCHS) * WORK_S)
        found[name] = ClassProfile(name=name, work=work, rates=rates, rescale_s=60.0)
    return found


class ListCloud:
    """What a cloud would say, from memory: `most` nodes of each type, ready after two minutes."""

    def __init__(self, clock: VirtualClock, most: Mapping[GpuName, int]) -> None:
        self._clock, self._most = clock, most
        self._here: dict[str, CloudNode] = {}
        self._booting: deque[tuple[Seconds, str]] = deque()
        self._gone: deque[CloudNode] = deque()
        self._count = dict.fromkeys(TYPES, 0)

    def offers(self) -> Mapping[GpuName, GpuType]:
        return TYPES

    def rent(self, token: str, gpu: GpuName) -> None:
        if token in self._here:
            return
        if self._count[gpu] >= self._most[gpu]:
            raise NoCapacity(f"all {self._most[gpu]} {gpu} nodes are taken")
        self._count[gpu] += 1
        now, kind = self._clock.now(), TYPES[gpu]
        self._here[token] = CloudNode(
            token=token,
            gpu=gpu,
            gpus=kind.gpus_per_node,
            price=kind.price,
            billed_from=now,
            ready_at=None,
        )
        self._booting.append((now + BOOT_S, token))

    def release(self, token: str) -> None:
        node = self._here.pop(token, None)
        if node is not None:
            self._count[node.gpu] -= 1
            self._gone.append(replace(node, gone_at=self._clock.now()))

    def nodes(self) -> Sequence[CloudNode]:
        now = self._clock.now()
        while self._booting and self._booting[0][0] <= now:
            at, token = self._booting.popleft()
            if token in self._here:
                self._here[token] = replace(self._here[token], ready_at=at)
        while self._gone and (self._gone[0].gone_at or 0.0) + LISTED_AFTER_GONE_S < now:
            self._gone.popleft()
        return [*self._here.values(), *self._gone]

    def lose(self, tokens: Sequence[str]) -> None:
        """They vanish."""
        for token in tokens:
            self.release(token)


@dataclass
class World:
    """`jobs`: how many are active at once, on twice as many GPUs."""

    jobs: int
    folder: Path
    report_s: Seconds
    seed: int = 1
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(START))
    steps: list[tuple[float, float]] = field(default_factory=list)
    """Of every step: its seconds of the wall, and of the processor."""
    reports: int = 0
    submitted: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.profiles = profiles()
        self.per_hour = self.jobs / JOB_H
        most = {g: int(self.jobs * n / TYPES[g].gpus_per_node) for g, n in GPUS_PER_JOB.items()}
        each = self.per_hour / CLASSES
        self.config: ServiceConfig = config(
            self.folder,
            budget=BUDGET_PER_JOB * self.jobs,
            gpu_types=TYPES,
            max_nodes=most,
            keep_warm_s=300.0,
            provision_s=BOOT_S,
            priors={name: prior(found, each) for name, found in self.profiles.items()},
        )
        self.engine = SimulatedEngine(self.clock, acting_out(self.profiles), report_s=self.report_s)
        self.cloud = ListCloud(self.clock, most)
        self.begin()

    def begin(self) -> None:
        """From what is stored, as after a crash."""
        self.store: Store = open_store(self.config.db)
        self.calculator = BackgroundCalculator()
        self.loop: ControlLoop = assemble(
            self.config,
            url="http://127.0.0.1:8420",
            store=self.store,
            saved=self.store.load(),
            engine=self.engine,
            cloud=self.cloud,
            clock=self.clock,
            calculator=self.calculator,
            policy=Boa(),
            secret=b"secret",
            log=lambda level, text: print(level, text, file=sys.stderr),
            inline=True,
            cluster="scale",
        )
        # Looked at once before every step, as after a burst of calls, not after every call.
        self.loop.actor._for_engine = InlineHands(lambda: None)
        self.loop.actor._for_cloud = InlineHands(lambda: None)
        self.engine.report = self._report

    def _report(self, report: object) -> None:
        self.reports += 1
        self.loop.report(report)  # type: ignore[arg-type]

    def close(self) -> None:
        self.loop.close()
        self.store.close()

    def submit(self, name: str | None = None) -> None:
        name = name or f"class{self.random.integers(CLASSES)}"
        self.loop.submit(spec(name, epochs=EPOCHS))
        self.submitted += 1

    def fill(self) -> None:
        """As many jobs as there are on average, each somewhere in its training."""
        self.step()
        first = self.loop.state.next_job
        for n in range(self.jobs):
            name = f"class{self.random.integers(CLASSES)}"
            work = np.array(self.profiles[name].work)
            at = float(self.random.uniform()) * float(work.sum())
            epoch = int(np.searchsorted(np.cumsum(work), at, side="right"))
            self.engine.checkpoints[str(first + n)] = (epoch, at - float(work[:epoch].sum()))
            self.submit(name)
        for _ in range(4):
            self.turn(60.0)

    def turn(self, seconds: Seconds) -> None:
        """Time passes; then the loop steps until it has nothing more to do, but not for ever."""
        self.clock.advance_to(self.clock.now() + seconds)
        for _ in range(self.random.poisson(self.per_hour * seconds / SECONDS_PER_HOUR)):
            self.submit()
        self.loop.actor.watch_cloud()
        for _ in range(TURN_STEPS):
            self.loop.actor.watch_engine()
            self.step()
            if self.loop.inbox.empty() and not self.engine._pending:
                return

    def step(self) -> tuple[float, float]:
        """Its seconds. The planner's answer is waited for, which takes no virtual time."""
        wall, cpu = time.perf_counter(), time.thread_time()
        self.loop.step()
        took = time.perf_counter() - wall, time.thread_time() - cpu
        self.steps.append(took)
        while self.calculator._working or self.calculator._question is not None:
            time.sleep(0.001)
        return took
