"""A stream of jobs for some days at one size; single steps and requests at all sizes in turn."""

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

from _scale_scenes import REQUESTS, Requests, Scenes, resident_mb, restart
from _scale_world import World
from boa.units import Seconds

DAY_S: Seconds = 86_400.0
REPEATS = 15
KEPT = ("jobs", "holds", "nodes", "events", "cells", "classes", "meta")
Times: TypeAlias = tuple[float, float]
"""Of the wall, and of the processor."""
Figures: TypeAlias = dict[str, dict[str, dict[str, float]]]
"""By what was done, and by size."""


# Single steps and requests


def in_turn(sizes: Sequence[int]) -> dict[str, Figures]:
    """All sizes live side by side and take turns, so that whatever else the machine is at falls on
    all of them alike."""
    with ExitStack() as stack:
        worlds = {}
        for jobs in sizes:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="boa-scale-"))
            worlds[jobs] = World(jobs, Path(folder), 3600.0)
            stack.callback(worlds[jobs].close)
            worlds[jobs].fill()
            for _ in range(2):
                worlds[jobs].turn(300.0)
        return {"steps": _steps_of(worlds), "requests": asyncio.run(_requests_of(worlds))}


def _steps_of(worlds: Mapping[int, World]) -> Figures:
    scenes = {jobs: Scenes(world) for jobs, world in worlds.items()}
    found = {}
    for name in next(iter(scenes.values())).all():
        times: dict[int, list[Times]] = {jobs: [] for jobs in worlds}
        for _ in range(REPEATS):
            for jobs, scene in scenes.items():
                times[jobs].append(scene.measure(scene.all()[name]))
        found[name] = {str(jobs): _figures(taken) for jobs, taken in times.items()}
        print(name, {n: round(f["cpu"], 2) for n, f in found[name].items()}, file=sys.stderr)
    return found


async def _requests_of(worlds: Mapping[int, World]) -> Figures:
    clients = {jobs: Requests(world) for jobs, world in worlds.items()}
    found = {}
    for name, path in REQUESTS.items():
        times: dict[int, list[Times]] = {jobs: [] for jobs in worlds}
        for _ in range(5):
            for jobs, client in clients.items():
                times[jobs].append(await client.measure(path))
        found[name] = {str(jobs): _figures(taken) for jobs, taken in times.items()}
    return found


def _figures(times: Sequence[Times]) -> dict[str, float]:
    """Milliseconds."""
    wall, cpu = (sorted(one) for one in zip(*times, strict=True))
    return {
        "cpu": statistics.median(cpu) * 1e3,
        "least": cpu[0] * 1e3,
        "p99": cpu[int(0.99 * len(cpu))] * 1e3,
        "worst": cpu[-1] * 1e3,
        "wall": statistics.median(wall) * 1e3,
    }


# The stream


def stream(jobs: int, days: float, turn_s: Seconds, report_s: Seconds) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="boa-scale-") as folder:
        world = World(jobs, Path(folder), report_s)
        world.fill()
        filled_mb = resident_mb()
        began = time.perf_counter()
        by_day = _days(world, days, turn_s)
        steps = _figures(world.steps)
        summary: dict[str, float] = {
            "s of the wall": time.perf_counter() - began,
            "jobs submitted per hour": world.submitted / (days * 24),
            "reports per hour": world.reports / (days * 24),
            "steps": len(world.steps),
            "CPU ms of a step, median": steps["cpu"],
            "CPU ms of a step, p99": steps["p99"],
            "CPU ms of a step, worst": steps["worst"],
            "MB resident, all jobs running": filled_mb,
            "MB resident at the end": by_day[-1]["resident_mb"],
            **asyncio.run(_at_the_end(world)),
            **restart(world),
        }
        world.close()
    return {"summary": summary, "days": by_day}


async def _at_the_end(world: World) -> dict[str, float]:
    """Requests that look at all that was."""
    client = Requests(world)
    found = {}
    for name in ("cost", "cost by class", "newest events"):
        await client.measure(REQUESTS["one job"])  # the first of all is slow
        _, cpu = await client.measure(REQUESTS[name])
        found[f"CPU ms of a request, {name}"] = cpu * 1e3
    return found


def _days(world: World, days: float, turn_s: Seconds) -> list[dict[str, float]]:
    """Figures at the end of every day."""
    world.steps.clear()
    world.submitted = world.reports = 0
    found: list[dict[str, float]] = []
    turns = round(days * DAY_S / turn_s)
    each = max(round(min(days, 1.0) * DAY_S / turn_s), 1)
    for n in range(1, turns + 1):
        world.turn(turn_s)
        if n % each == 0 or n == turns:
            found.append({"day": round(n * turn_s / DAY_S, 2), **_day(world)})
            print(found[-1], file=sys.stderr)
    return found


def _day(world: World) -> dict[str, float]:
    rows, sizes = _tables(world)
    state = world.loop.state
    return {
        "jobs_submitted": world.submitted,
        "reports": world.reports,
        "active": len(state.jobs),
        "nodes": len(state.nodes),
        "gpus_held": sum(hold.gpus for hold in state.holds.values()),
        "resident_mb": resident_mb(),
        **{f"{name}_rows": rows[name] for name in KEPT[:4]},
        **{f"{name}_mb": round(sizes[name] / 1e6, 2) for name in (*KEPT[:4], "all")},
    }


def _tables(world: World) -> tuple[dict[str, int], dict[str, float]]:
    """Rows and bytes of every table, its indexes included."""
    database = sqlite3.connect(f"file:{world.folder / 'boa.db'}?mode=ro", uri=True)
    try:
        rows = {t: database.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in KEPT}
        owners = dict(database.execute("SELECT name, tbl_name FROM sqlite_master"))
        sizes = dict.fromkeys(KEPT, 0.0)
        for name, size in database.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"):
            if owners.get(name) in sizes:
                sizes[owners[name]] += size
    finally:
        database.close()
    return rows, {**sizes, "all": sum(sizes.values())}


WORK: dict[str, Callable[..., Any]] = {"in-turn": in_turn, "stream": stream}
