"""The demo's story: a service of its own, a stream of replay jobs, one job that really trains."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from boa.api.answers import Job, LivePlan
from boa.api.tokens import new_token
from boa.catalogue.offers import gpu_types
from boa.cli.live.examples import example_path
from boa.cli.live.serve import signed_in
from boa.client.spawn import OwnService
from boa.errors import BoaError
from boa.formats.job import load_job
from boa.formats.plain_yaml import load_yaml
from boa.formats.workload import parse_workload
from boa.model.job import ENDED, GpuLimits, JobSpec
from boa.model.trace import Trace, TraceJob
from boa.plots.live import DemoClassOutcome, DemoOutcome
from boa.sim.replay_jobs import profiles_of, replay_jobs, write_profiles
from boa.sim.run import world_of
from boa.units import Seconds

GPU = "T4"
SPEED = 120.0
SPAN_S: Seconds = 5400.0
"""Jobs arrive over so long, in the service's time."""
MIX = {"cifar10": 10, "bert": 3, "deepspeech2": 3}
BUDGET = 40.0
REAL = "train_numpy.yaml"
MOST_S = 170.0
"""Seconds of the wall after which a demo has gone wrong."""


class DemoTooSlow(BoaError):
    """The machine is too busy for jobs 120 times as fast."""


def demo_trace() -> Trace:
    """Jobs of every model spread evenly over the span, so that no run is a lucky one."""
    jobs = [
        TraceJob(name=f"{app}-{n + 1}", arrival_s=(n + offset) / count * SPAN_S, application=app)
        for (app, count), offset in zip(MIX.items(), (0.02, 0.3, 0.55), strict=True)
        for n in range(count)
    ]
    return Trace(tuple(sorted(jobs, key=lambda job: job.arrival_s)))


class Demo:
    def __init__(self, scratch: Path) -> None:
        trace = demo_trace()
        world = world_of(trace, None, [GPU])
        kind = gpu_types([GPU])[GPU]
        self.jobs = list(replay_jobs(world, scratch / "profiles"))
        files = write_profiles(profiles_of(world), scratch / "profiles")
        classes = {
            world.truths[app].name: {
                "profile": str(files[app]),
                "arrivals_per_hour": count / SPAN_S * 3600,
                "arrivals_weight_h": 100,
                "measured_weight": 1000,
            }
            for app, count in MIX.items()
        }
        self.service = OwnService(
            scratch / "service",
            {
                "budget_per_hour": BUDGET,
                "speed": SPEED,
                "gpu_types": {GPU: {"price": kind.price, "gpus_per_node": kind.gpus_per_node}},
                "keep_warm_s": 60,
                "classes": classes,
            },
            new_token(),
        )
        self.planned: LivePlan | None = None
        self.began = 0.0
        self._real = ""

    @property
    def dashboard(self) -> str:
        """Its address; on a terminal, one that needs no token typed in."""
        token = self.service.token if sys.stderr.isatty() else None
        return self.service.url if token is None else signed_in(self.service.url, token)

    @contextmanager
    def running(self) -> Iterator[None]:
        with self.service, self.service.client() as self.client:
            yield

    def play(self, watching: Callable[[Sequence[Job]], None]) -> None:
        """Submit every job at its time; returns when all have ended."""
        self.planned = self._plan()
        began, self.began = time.monotonic(), self.client.health()["now"]
        waiting = [(0.0, self._real_job()), *self.jobs]
        while True:
            passed = time.monotonic() - began
            while waiting and waiting[0][0] <= passed * SPEED:
                job = self.client.submit(waiting.pop(0)[1])
                self._real = self._real or job["id"]
            jobs = self.client.jobs(all=True)
            watching(jobs)
            if not waiting and all(job["state"] in ENDED for job in jobs):
                return
            if passed > MOST_S:
                raise DemoTooSlow("the demo takes too long: this machine is too busy for it")
            next_s = waiting[0][0] / SPEED - passed if waiting else 0.5
            time.sleep(min(max(next_s, 0.02), 0.5))

    def _plan(self) -> LivePlan:
        """The plan in force: its promise, before a dollar is spent."""
        for _ in range(200):
            try:
                return self.client.plan()
            except BoaError:
                time.sleep(0.1)
        return self.client.plan()

    def _real_job(self) -> JobSpec:
        spec = load_job(example_path(REAL))
        command = tuple(sys.executable if part == "python" else part for part in spec.run)
        return replace(spec, run=command, gpus=GpuLimits(max=2))

    def outcome(self) -> DemoOutcome:
        assert self.planned is not None
        jobs = [job for job in self.client.jobs(all=True) if job["id"] != self._real]
        classes = []
        for planned in self.planned["plan"]["classes"]:
            own = [job for job in jobs if job["class"] == planned["name"]]
            classes.append(
                DemoClassOutcome(
                    name=planned["name"],
                    jobs=len(own),
                    failed=sum(job["state"] != "succeeded" for job in own),
                    planned_jct=planned["average_jct_s"],
                    jct=_mean([_jct(job) for job in own]),
                    planned_cost=planned["cost_per_job"],
                    cost=_mean([job["cost_usd"] for job in own]),
                )
            )
        return DemoOutcome(
            budget=BUDGET,
            span_s=SPAN_S,
            workload=parse_workload(load_yaml(self.planned["workload"])),
            classes=tuple(classes),
            cost=dict(self.client.cost()),
            real=dict(self.client.job(self._real)),
            began=self.began,
            ended=max(job["ended_at"] or self.began for job in jobs),
            events=[dict(event) for event in self.client.history(after=0, limit=10_000)],
        )


def _jct(job: Job) -> Seconds:
    return (job["ended_at"] or job["submitted_at"]) - job["submitted_at"]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
