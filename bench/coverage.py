"""Do four of five jobs end within the interval that was estimated for them?

Streams of jobs through the real control loop, on a virtual clock with a simulated engine. Before
each job is submitted, its estimate is asked for; when it has ended, the bench checks whether the
interval held. Jobs of a class differ in length (a lognormal factor), and no job was seen before.

| kind | stream |
| --- | --- |
| reporting | jobs that report progress, enough GPUs |
| silent | jobs that report nothing, enough GPUs |
| first | the second to fourth job of a class, reporting or silent |
| contention | one node of four GPUs, nearly always full; one job in ten is urgent |

.venv/bin/python bench/coverage.py [--seeds 3] [--jobs 60] [--json FILE]
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from boa.clock import VirtualClock
from boa.clouds.local import LocalCloud
from boa.model.job import GpuLimits, JobSpec
from boa.model.profile import ClassProfile
from boa.model.runs import Launch
from boa.model.service import ServiceConfig
from boa.model.workload import GpuType
from boa.policy.registry import Knobs, choose
from boa.runtime.assemble import assemble
from boa.scheduler.plan.calculator import InlineCalculator
from boa.sim.engine import SimulatedEngine, acting_out
from boa.sim.jobs import NEVER, ActiveJob
from boa.store.sql import open_store
from boa.units import Seconds

T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
START = 1_000_000.0
FEW = 4
"""Jobs of a class that count as its first."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    kind: str
    report_s: Seconds | None
    per_hour: float
    max_nodes: int
    urgent: float = 0.0
    classes: int = 1
    sd: float = 0.2
    """Standard deviation of the logarithm of a job's length."""


STREAMS = (
    Stream(kind="reporting", report_s=30.0, per_hour=4.0, max_nodes=8),
    Stream(kind="silent", report_s=None, per_hour=4.0, max_nodes=8),
    Stream(kind="first", report_s=30.0, per_hour=4.0, max_nodes=8, classes=15),
    Stream(kind="first", report_s=None, per_hour=4.0, max_nodes=8, classes=15),
    Stream(kind="contention", report_s=30.0, per_hour=15.0, max_nodes=1, urgent=0.1, classes=2),
)


@dataclass(frozen=True)
class Outcome:
    kind: str
    earlier: int
    """Jobs of the class that had succeeded."""
    time_s: Seconds
    jct_s: Seconds
    expected_s: Seconds | None
    """The estimate of the end, from submission."""
    times: tuple[float, float] | None
    jcts: tuple[float, float] | None

    def covers(self, what: str) -> bool | None:
        found = self.times if what == "time" else self.jcts
        took = self.time_s if what == "time" else self.jct_s
        return None if found is None else found[0] <= took <= found[1]


class World:
    """The control loop on a virtual clock."""

    def __init__(self, stream: Stream, folder: Path, seed: int) -> None:
        self.random, self.stream = np.random.default_rng(seed), stream
        self.clock = VirtualClock(START)
        self.config = ServiceConfig(
            budget=4.0 * stream.max_nodes,
            gpu_types={"T4": T4},
            data_dir=folder,
            db=f"sqlite:///{folder}/boa.db",
            keep_warm_s=600.0,
            max_nodes={"T4": stream.max_nodes},
            provision_s=60.0,
        )
        self.engine = SimulatedEngine(self.clock, self._cast(), report_s=stream.report_s)
        self.store = open_store(self.config.db)
        self.loop = assemble(
            self.config,
            url="http://127.0.0.1:8420",
            store=self.store,
            saved=self.store.load(),
            engine=self.engine,
            cloud=LocalCloud(
                folder / "cloud.json",
                gpu_types=self.config.gpu_types,
                max_nodes=self.config.max_nodes,
                clock=self.clock,
                provision_s=self.config.provision_s,
                release_s=self.config.release_s,
            ),
            clock=self.clock,
            calculator=InlineCalculator(),
            policy=choose("boa", Knobs(budget=self.config.budget), self.config.billing).policy,
            secret=b"secret",
            log=lambda level, text: None,
            inline=True,
            cluster="coverage",
        )
        self.engine.report = self.loop.report

    def _cast(self) -> Callable[[Launch], ActiveJob]:
        widths = np.arange(5.0)
        act = acting_out({f"class{n}": self._profile(n, widths) for n in range(15)})

        def cast(launch: Launch) -> ActiveJob:
            job = act(launch)
            factor = float(np.exp(self.random.normal(0.0, self.stream.sd)))
            job.work = [factor * work for work in job.work]
            return job

        return cast

    def _profile(self, number: int, widths: np.ndarray) -> ClassProfile:
        work = float(self.random.uniform(300.0, 1500.0))
        speed = np.where(widths > 0, widths ** self.random.uniform(0.5, 0.95), 0.0)
        rates = {"T4": np.broadcast_to(speed, (1, 2, 5)).copy()}
        start_s = float(self.random.uniform(5.0, 40.0))
        return ClassProfile(name=f"class{number}", work=(work,), rates=rates, rescale_s=start_s)

    def settle(self) -> None:
        for _ in range(50):
            self.loop.actor.watch_engine()
            self.loop.actor.watch_cloud()
            before = self.loop.state
            self.loop.step()
            after = self.loop.state
            same = before.jobs == after.jobs and before.nodes == after.nodes
            if same and self.loop.inbox.empty() and not self.loop.scheduler.planner.thinking:
                return

    def advance(self, until: Seconds) -> None:
        while self.clock.now() < until:
            boots = any(node.state == "requested" for node in self.loop.snapshot.nodes.values())
            at = min(self.engine.wakes_at(), self.clock.now() + (5.0 if boots else 120.0), until)
            self.clock.advance_to(max(at, self.clock.now() + 1e-6))
            self.settle()

    def run(self, jobs: int) -> list[Outcome]:
        asked = []
        for number in range(jobs):
            self.advance(self.clock.now() + self.random.exponential(3600.0 / self.stream.per_hour))
            urgent = self.random.uniform() < self.stream.urgent
            spec = JobSpec(
                job_class=f"class{number % self.stream.classes}",
                run=("true",),
                launcher="single",
                gpus=GpuLimits(max=4 if self.stream.report_s else 1),
                priority="urgent" if urgent else "normal",
                preemptible=True,
            )
            found = self.loop.estimate(spec)
            submitted = self.loop.submit(spec)
            self.settle()
            asked.append((submitted.result(timeout=0).id, found))
        while self.loop.snapshot.jobs and self.clock.now() < START + 30 * 86_400.0:
            wakes = self.engine.wakes_at()
            self.advance(min(wakes, self.clock.now() + 300.0) if wakes < NEVER else START)
            if wakes == NEVER:
                self.advance(self.clock.now() + 60.0)
        return [
            outcome for job, found in asked if (outcome := self._outcome(job, found)) is not None
        ]

    def _outcome(self, job: str, found: object) -> Outcome | None:
        record = self.store.job(job)
        if record is None or record.ended_at is None or record.started_at is None:
            return None
        times = getattr(found, "times", None)
        jcts = getattr(found, "jcts", times)  # none, where the wait is unknown
        expected = getattr(found, "jct_s", getattr(found, "time_s", None))
        return Outcome(
            self.stream.kind,
            getattr(found, "jobs", 0),
            record.ended_at - record.started_at,
            record.ended_at - record.submitted_at,
            expected,
            None if times is None else (times.low, times.high),
            None if jcts is None else (jcts.low, jcts.high),
        )

    def close(self) -> None:
        self.loop.close()
        self.store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    outcomes = []
    for seed in range(asked.seeds):
        for stream in STREAMS:
            with tempfile.TemporaryDirectory() as folder:
                world = World(stream, Path(folder), seed)
                outcomes += world.run(asked.jobs)
                world.close()
    found = [_row(kind, outcomes) for kind in ("reporting", "silent", "first", "contention", "all")]
    print("| kind | jobs | no interval | start to end | submission to end | end ÷ estimate |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in found:
        print(
            f"| {row['kind']} | {row['jobs']} | {row['none']:.0%} | {row['time']:.0%} | "
            f"{row['jct']:.0%} | {row['median']:.2f}, {row['p90']:.2f} |"
        )
    if asked.json is not None:
        rows = {"rows": found, "outcomes": [asdict(one) for one in outcomes]}
        asked.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _row(kind: str, outcomes: list[Outcome]) -> dict[str, float | str]:
    """Coverage of one kind. Streams but `first` count from the fifth job of a class on."""
    mine = [
        one
        for one in outcomes
        if (kind == "all" or one.kind == kind)
        and (0 < one.earlier < FEW if one.kind == "first" else one.earlier >= FEW)
    ]
    told = [one for one in mine if one.times is not None]
    ratios = [one.jct_s / one.expected_s for one in mine if one.expected_s]
    part = {}
    for what in ("time", "jct"):
        held = [within for one in mine if (within := one.covers(what)) is not None]
        part[what] = float(np.mean(held)) if held else float("nan")
    return {
        "kind": kind,
        "jobs": len(mine),
        "none": 1.0 - len(told) / max(len(mine), 1),
        **part,
        "median": float(np.median(ratios)) if ratios else float("nan"),
        "p90": float(np.quantile(ratios, 0.9)) if ratios else float("nan"),
    }


if __name__ == "__main__":
    main()
