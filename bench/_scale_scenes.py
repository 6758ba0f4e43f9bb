"""What one step costs, by what happens in it; what the API costs; what a restart costs."""

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np

from _scale_world import TYPES, World
from boa.model.job import JobRecord
from boa.model.records import Report
from boa.scheduler.decide.room import Refused
from boa.server.app import create_app

Scene = Callable[[], None]
"""Prepares a step."""


class Scenes:
    """Every scene happens at one moment of virtual time, a second after the last."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = np.random.default_rng(7)

    def all(self) -> dict[str, Scene]:
        return {
            "nothing happens": lambda: None,
            "the cloud lists its nodes": self._world.loop.actor.watch_cloud,
            "one job reports": lambda: self._reports(1),
            "every job reports": lambda: self._reports(self._world.jobs),
            "one job arrives": self._world.submit,
            "one job ends": self._end,
            "a plan that changes nothing": self._plan,
            "a plan for another budget": self._other_budget,
            "one job arrives, GPUs are short": self._short,
            "one node is lost": lambda: self._lose(1),
            "2 % of the nodes are lost": lambda: self._lose(self._world.jobs // 100),
        }

    def measure(self, scene: Scene) -> tuple[float, float]:
        """Seconds of the wall, and of the processor."""
        world = self._world
        world.clock.advance_to(world.clock.now() + 1.0)
        scene()
        took = world.step()
        for _ in range(2):  # what follows from it is not to be part of the next
            world.loop.actor.watch_engine()
            world.step()
        return took

    def _running(self) -> list[JobRecord]:
        jobs = self._world.loop.state.jobs.values()
        return [job for job in jobs if job.run is not None and job.run.state == "running"]

    def _reports(self, most: int) -> None:
        now = self._world.clock.now()
        for job in self._running()[:most]:
            run = job.run
            assert run is not None
            self._world.loop.report(
                Report(
                    job=job.id,
                    attempt=run.attempt,
                    uptime_s=now - run.requested_at,
                    epoch=job.epoch,
                    progress=job.progress + 1.0,
                    units=now - run.requested_at,
                    step=int(now),
                    loss=float(self._random.uniform()),
                    metrics={"noise_scale": float(self._random.uniform(100, 200))},
                )
            )

    def _end(self) -> None:
        job = self._running()[0]
        assert job.run is not None
        world = self._world
        (key,) = [k for k in world.engine.runs() if k.job == job.id]
        world.engine.kill(key, exit_code=0)
        world.loop.actor.watch_engine()

    def _plan(self) -> None:
        self._world.loop.scheduler.decider.fresh_plan = True

    def _other_budget(self) -> None:
        """Half as much, or twice as much again: the step that takes the plan over is timed."""
        world = self._world
        budget = world.config.budget
        if world.loop.scheduler.purse.budget == budget:
            budget /= 2
        world.loop.set_budget(budget)
        world.clock.advance_to(world.clock.now() + 10.0)
        world.step()

    def _short(self) -> None:
        """The cloud is believed to have no more nodes than there are."""
        world = self._world
        state = world.loop.state
        for gpu in TYPES:
            had = sum(node.gpu == gpu for node in state.nodes.values())
            world.loop.scheduler.decider.refused[gpu] = Refused(had, world.clock.now() + 0.5, "")
        for _ in range(max(world.jobs // 50, 1)):
            world.submit()

    def _lose(self, nodes: int) -> None:
        world = self._world
        ready = [n for n in world.loop.state.nodes.values() if n.state == "ready"]
        world.cloud.lose([node.token for node in ready[:nodes]])
        world.loop.actor.watch_cloud()


REQUESTS = {
    "jobs (all pages)": "/api/v1/jobs",
    "one job": "/api/v1/jobs/{job}",
    "nodes": "/api/v1/nodes",
    "metrics": "/metrics",
    "cost": "/api/v1/cost",
    "cost by class": "/api/v1/cost?by=class",
    "newest events": "/api/v1/events",
    "plan": "/api/v1/plan",
}


class Requests:
    """The real application, without a socket in between."""

    def __init__(self, world: World) -> None:
        self._world = world
        app = create_app(
            world.loop, world.store, world.engine, token=None, secret=b"secret", version="0"
        )
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")

    async def measure(self, path: str) -> tuple[float, float]:
        """Seconds of the wall, and of the processor, to the last byte of the last page."""
        job = next(reversed(self._world.loop.state.jobs))
        wall, cpu = time.perf_counter(), time.process_time()
        before: int | None = None
        while True:
            parameters = None if before is None else {"before": before}
            got = await self._client.get(path.format(job=job), params=parameters)
            assert got.status_code == 200, got.text
            before = got.json()["before"] if path.endswith("/jobs") else None
            if before is None:
                return time.perf_counter() - wall, time.process_time() - cpu


def resident_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(x.split()[1]) for x in lines if x.startswith("VmRSS:")) / 1024


def restart(world: World) -> dict[str, float]:
    """As after SIGKILL: what is only in memory is lost. CPU seconds until the first step is done,
    in which engine and cloud say all that they know."""
    world.calculator.close()
    world.store.close()
    began = time.process_time()
    world.begin()
    ready = time.process_time()
    world.loop.actor.watch_engine()
    world.loop.actor.watch_cloud()
    world.step()
    stepped = time.process_time()
    return {"restart: s of CPU to load": ready - began, "… and to step": stepped - ready}
