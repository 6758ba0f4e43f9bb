"""How long a decision takes: policy, fitting to what can be had, placement, GPUs by index.

.venv/bin/python bench/decision.py [--jobs 1000] [--repeats 50] [--json FILE]

Under the market with as many jobs, and with five times as many.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from rich.console import Console

import boa
from _market_steps import market_scenes
from _steps import scenes, temporary
from _table import Measured, show, write
from boa.model.cluster import Allocation, ClusterView, JobId, JobView, Node, NodeId, Share
from boa.model.speedup import Floats
from boa.model.workload import GpuType, JobClass, Workload
from boa.placement.fitting import Room, Want, fit
from boa.placement.packing import choose_slots
from boa.policy.boa import Boa, Planned, planned_of

HERE = Path(__file__).resolve().parent
WORKLOAD = HERE.parent / "examples" / "newtrace-hetero.yaml"
OVER_CHEAPEST = 1.5
PER_NODE = 8
Slots = Mapping[NodeId, tuple[int, ...]]
STEP_MS, LOOK_UP_MS = 10.0, 1.0
"""What a decision step and a look-up may take."""
MARKET_MS = 0.01
"""What a step under the market may take, per job."""
MARKETS = (1, 5)
SHORT_OF = 0.6
"""Of the nodes that the jobs would take: what can be had in a shortage."""


@dataclass(frozen=True)
class Known:
    """A class's speeds as its workload has them."""

    job_class: JobClass
    _found: dict[tuple[str, int], Floats | None] = field(default_factory=dict)

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        if (gpu, epoch) not in self._found:
            curve = self.job_class.epochs[epoch].speedups.get(gpu)
            widths = np.arange(self.job_class.max_on(gpu) + 1.0)
            rates = None if curve is None else curve.rates(np.maximum(widths, curve.base))
            self._found[gpu, epoch] = None if rates is None else np.stack([rates, rates])
        return self._found[gpu, epoch]


@dataclass(frozen=True)
class Scene:
    """Active jobs under a plan, each somewhere in its training."""

    workload: Workload
    planned: Planned
    views: Sequence[JobView]

    @cached_property
    def gpu_types(self) -> Mapping[str, GpuType]:
        types = self.workload.gpu_types.values()
        return {kind.name: replace(kind, gpus_per_node=PER_NODE) for kind in types}

    def decide(self, views: Sequence[JobView]) -> Mapping[JobId, Share]:
        view = ClusterView(
            now=0.0, jobs=views, nodes=(), gpu_types=self.gpu_types, memory=self.planned
        )
        return Boa().decide(view).shares

    def wants(self, shares: Mapping[JobId, Share]) -> dict[JobId, Want]:
        return {
            job.id: Want(
                share=shares[job.id],
                arrival=job.arrival,
                prediction=job.prediction,
                epoch=job.epoch,
            )
            for job in self.views
        }


def main() -> None:
    options = _arguments()
    console = Console(width=150 if not sys.stdout.isatty() else None)
    scene = _scene(options.jobs)
    tables = [decisions(scene, options.repeats), steps(options.jobs, options.repeats)]
    tables += [market(n * options.jobs, options.repeats) for n in MARKETS]
    for table in tables:
        show(table, console)
    write(options.json, tables)
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000, help="active at the same time")
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--json", type=Path, default=HERE / "out" / "decision.json")
    return parser.parse_args()


def _scene(jobs: int) -> Scene:
    workload = boa.load_workload(WORKLOAD)
    budget = OVER_CHEAPEST * boa.frontier(workload).cheapest
    planned = planned_of(boa.plan(workload, budget), version=0, at=0.0)
    dice = random.Random(0)
    known = [Known(job_class) for job_class in workload.classes]
    rates = [job_class.arrivals_per_hour for job_class in workload.classes]
    views = []
    for n in range(jobs):
        of = dice.choices(known, rates)[0]
        views.append(
            JobView(
                id=str(n),
                job_class=of.job_class.name,
                arrival=float(n),
                serial=n,
                epoch=dice.randrange(len(of.job_class.epochs)),
                prediction=of,
            )
        )
    return Scene(workload, planned, views)


def decisions(scene: Scene, repeats: int) -> Measured:
    table = Measured(
        f"one decision, {len(scene.views):,} active jobs on {len(scene.gpu_types)} GPU types",
        note=f"{WORKLOAD.name}, {PER_NODE} GPUs per node; short: {SHORT_OF:.0%} of the nodes. "
        "Medians; a target is met by the processor's time",
    )
    everyone, last = scene.views, scene.views[-1:]
    shares = scene.decide(everyone)
    wants = scene.wants(shares)
    whole = fit(wants, {}, (), scene.gpu_types, 0, Room()).new_nodes
    limits = {
        gpu: int(SHORT_OF * sum(node.gpu == gpu for node in whole)) for gpu in scene.gpu_types
    }
    for name, room in (("", Room()), (", GPUs short", Room(max_nodes=limits))):
        nothing = Before({}, {}, {}, (), room)
        cold = _timed(lambda before=nothing: _step(scene, everyone, before), repeats)  # type: ignore[misc]
        _row(table, f"all jobs asked, nothing there{name}", cold, STEP_MS)
        full = fit(wants, {}, (), scene.gpu_types, 0, room)
        held = {job: found for job, found in full.allocations.items() if job != last[0].id}
        before = Before(shares, held, _slots(held, {}, full.new_nodes), full.new_nodes, room)
        warm = _timed(lambda before=before: _step(scene, last, before), repeats)  # type: ignore[misc]
        _row(table, f"one job arrives{name}", warm, STEP_MS)
    look_up = _timed(lambda: scene.decide(last), repeats)
    _row(table, "table look-up of one job", look_up, LOOK_UP_MS)
    return table


def steps(jobs: int, repeats: int) -> Measured:
    """What the loop does around a decision: views, records, one transaction."""
    table = Measured(
        f"one whole step of the loop, {jobs:,} running jobs, SQLite included",
        note="engine and cloud are called in the step here; in a service they have their threads",
    )
    with temporary() as folder:
        live, cases = scenes(jobs, Path(folder))
        for name, run in cases.items():
            cpu, wall = zip(*_timed(run, max(repeats // 5, 3)), strict=True)
            table.add(what=name, cpu_ms=statistics.median(cpu), wall_ms=statistics.median(wall))
        live.close()
    return table


def market(jobs: int, repeats: int) -> Measured:
    """A whole step of the scheduler where nodes are billed: views, worths, prices, seats, runs."""
    with temporary() as folder:
        live, cases = market_scenes(jobs, Path(folder))
        nodes = len(live.loop.state.nodes)
        table = Measured(
            f"one step under the market, {jobs:,} running jobs on {nodes:,} nodes",
            note="from the draft to who runs where, without the store. Medians; a target is met by "
            "the processor's time",
        )
        for name, run in cases.items():
            _row(table, name, _timed(run, max(repeats // 2, 3)), MARKET_MS * jobs)
        live.close()
    return table


@dataclass(frozen=True)
class Before:
    """What there is when a decision is due."""

    shares: Mapping[JobId, Share]
    held: Mapping[JobId, Allocation]
    slots: Mapping[JobId, Slots]
    nodes: Sequence[Node]
    room: Room


def _step(scene: Scene, asked: Sequence[JobView], before: Before) -> Mapping[JobId, Slots]:
    """Ask the policy about some jobs, give GPUs to all, and choose which of each node."""
    wants = scene.wants({**before.shares, **scene.decide(asked)})
    fitted = fit(wants, before.held, before.nodes, scene.gpu_types, len(before.nodes), before.room)
    moved = {j: found for j, found in fitted.allocations.items() if before.held.get(j) != found}
    kept = {job: slots for job, slots in before.slots.items() if job not in moved}
    return _slots(moved, kept, (*before.nodes, *fitted.new_nodes))


def _slots(
    jobs: Mapping[JobId, Allocation], kept: Mapping[JobId, Slots], nodes: Sequence[Node]
) -> dict[JobId, Slots]:
    """GPUs by index for some jobs, beside those that the others have."""
    sizes = {node.id: node.gpus for node in nodes}
    taken: dict[NodeId, set[int]] = {}
    for slots in kept.values():
        _take(slots, taken)
    found: dict[JobId, Slots] = {}
    for job, allocation in jobs.items():
        chosen = choose_slots(allocation, taken, sizes)
        assert chosen is not None
        _take(chosen, taken)
        found[job] = chosen
    return found


def _take(slots: Slots, taken: dict[NodeId, set[int]]) -> None:
    for node, chosen in slots.items():
        if node in taken:
            taken[node].update(chosen)
        else:
            taken[node] = set(chosen)


def _timed(run: Callable[[], object], repeats: int) -> list[tuple[float, float]]:
    """Milliseconds of the processor, and of the wall."""
    run()
    found = []
    for _ in range(repeats):
        began = time.process_time(), time.perf_counter()
        run()
        ended = time.process_time(), time.perf_counter()
        found.append(((ended[0] - began[0]) * 1e3, (ended[1] - began[1]) * 1e3))
    return found


def _row(table: Measured, what: str, times: list[tuple[float, float]], target_ms: float) -> None:
    cpu, wall = (sorted(one) for one in zip(*times, strict=True))
    table.add(
        what=what,
        cpu_ms=statistics.median(cpu),
        least_cpu_ms=cpu[0],
        wall_ms=statistics.median(wall),
        least_wall_ms=wall[0],
        target_ms=target_ms,
        met="yes" if statistics.median(cpu) < target_ms else "no",
    )


if __name__ == "__main__":
    main()
