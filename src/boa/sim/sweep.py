"""One run with every policy's own habits, and many of them: what the two commands call.

A policy is swept over its own knob (a budget, a target efficiency, a cluster, a width), and what
comes is held against BOA at the same average spend: that is the only fair comparison, since any
policy is fast with enough GPUs.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from typing import Any

from boa.errors import BoaError, UsageError
from boa.model.calendar import Calendar
from boa.model.policies import KNOB_NAMES
from boa.model.workload import Billing
from boa.own_process import close_to_others
from boa.policy.registry import POLICIES, ROUND_S, Knobs, Learning, choose
from boa.sim.bound import bound_jct, bound_with_boots
from boa.sim.checks import check_can_run, check_goes_together, cluster_text
from boa.sim.recording import Listener
from boa.sim.report import SimulationReport
from boa.sim.run import World, simulate
from boa.sim.settings import Settings
from boa.sim.simulator import Progress
from boa.units import GpuName, Seconds, UsdPerHour
from boa.worker_process import end_with_parent

TARGETS = (0.3, 0.5, 0.7, 0.9)
WIDTHS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Physics as somebody asks for it; what is left out is each policy's own habit."""

    interval_s: Seconds | None = None
    """0: the policy acts at events. None: as it does by itself."""
    learning: Learning | None = None
    noise: float = 0.0
    provision_s: Seconds = 0.0
    reclaim_s: Seconds = 0.0
    cold_s: Seconds = 0.0
    interference: float = 0.0
    max_spend: UsdPerHour | None = None
    max_nodes: Mapping[GpuName, int] = field(default_factory=dict)
    keep_warm_s: Seconds = 0.0
    pacing_h: float | None = None
    billing: Billing = "gpu"
    calendar: Calendar | None = None
    """Hours of the week in which the budget, or what GPUs cost, is another; its clock begins with
    the trace, and its budgets are scaled to the one that is asked for."""
    seed: int = 0

    def settings(self, name: str, nodes: Mapping[GpuName, int] | None) -> Settings:
        facts = POLICIES[name]
        interval_s = facts.interval_s if self.interval_s is None else self.interval_s or None
        if self.interval_s is None and facts.knob == "budget" and self.billing == "node":
            interval_s = ROUND_S  # a market also looks while nothing happens
        return Settings(
            interval_s=interval_s,
            learning=self.learning or facts.learning,
            noise=self.noise,
            provision_s=self.provision_s,
            reclaim_s=self.reclaim_s,
            cold_s=self.cold_s,
            interference=self.interference,
            max_spend=self.max_spend,
            max_nodes=self.max_nodes,
            keep_warm_s=self.keep_warm_s,
            pacing_h=self.pacing_h,
            billing=self.billing,
            calendar=self.calendar,
            seed=self.seed,
            cluster=nodes,
        )


def run_one(
    world: World,
    name: str,
    knobs: Knobs,
    asked: Asked,
    *,
    progress: Progress | None = None,
    listener: Listener | None = None,
    keep_jcts: bool = False,
) -> SimulationReport:
    """Replay the trace under a policy, once nothing speaks against it."""
    choice = choose(name, knobs, asked.billing)
    settings = asked.settings(name, knobs.nodes)
    if settings.calendar is not None and knobs.budget is not None:
        factor = knobs.budget / settings.calendar.average
        settings = replace(settings, calendar=settings.calendar.scaled(factor))
    check_goes_together(world, name, choice, settings)
    check_can_run(world, name, knobs, settings)
    return simulate(
        world, choice, settings, progress=progress, listener=listener, keep_jcts=keep_jcts
    )


def document_of(report: SimulationReport, name: str, world: World) -> dict[str, Any]:
    """The report as the command prints it: under the name that was asked for, with its world."""
    document = report.document()
    document["policy"] = name
    changing = report.prices_change  # no bound is known of prices that change
    bound = None if changing else bound_jct(world, report.bill_per_hour)
    document["bound_jct_s"] = bound
    document["jct_over_bound"] = None if bound is None else report.average_jct / bound
    boot_s = report.settings.provision_s
    document["bound_boots_jct_s"] = (
        None if changing else bound_with_boots(world, report.bill_per_hour, boot_s)
    )
    document["physics"] |= {"slowdown": world.slowdown, "rescale_s": world.rescale}
    document["gpu_types"] = [
        {"name": gpu.name, "price": gpu.price, "gpus_per_node": gpu.gpus_per_node}
        for gpu in world.gpu_types.values()
    ]
    return document


# Sweeping


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepGrid:
    """The values that each kind of knob is given."""

    budgets: Sequence[UsdPerHour] = ()
    targets: Sequence[float] = TARGETS
    clusters: Sequence[Mapping[GpuName, int]] = ()
    """Clusters for policies on a fixed one; without any, some about as large as the budgets."""
    widths: Sequence[int] = WIDTHS
    knobs: Sequence[float] = ()
    """Numbers for policies that have one of their own; without any, each policy's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One policy at one value of its knob."""

    policy: str
    value: float | str | None
    knobs: Knobs

    @property
    def knob(self) -> str | None:
        knob = POLICIES[self.policy].knob
        return None if knob is None else KNOB_NAMES[knob]

    def document(self) -> dict[str, Any]:
        return {"policy": self.policy, "knob": self.knob, "value": self.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOutcome:
    point: SweepPoint
    document: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    """Why there is no document."""
    exit_code: int = 1


def points_of(
    world: World, policies: Iterable[str], grid: SweepGrid, seed: int = 0
) -> list[SweepPoint]:
    """Every policy over its own knob."""
    return [
        SweepPoint(policy=name, value=value, knobs=knobs)
        for name in policies
        for value, knobs in _values(world, name, grid, seed)
    ]


def _values(
    world: World, name: str, grid: SweepGrid, seed: int
) -> Iterator[tuple[float | str | None, Knobs]]:
    knob = POLICIES[name].knob
    if knob == "budget":
        for budget in _needed(grid.budgets, name):
            yield budget, Knobs(budget=budget, seed=seed)
    elif knob == "target":
        for target in grid.targets:
            yield target, Knobs(target=target, seed=seed)
    elif knob == "knob":
        for own in grid.knobs or POLICIES[name].knob_values:
            yield own, Knobs(knob=own, seed=seed)
    elif knob == "width":
        for width in grid.widths:
            yield width, Knobs(width=width, seed=seed)
    elif knob == "nodes":
        for nodes in grid.clusters or _clusters(world, _needed(grid.budgets, name), name):
            yield cluster_text(nodes), Knobs(nodes=nodes, seed=seed)
    else:
        yield None, Knobs(seed=seed)


def _needed(budgets: Sequence[UsdPerHour], name: str) -> Sequence[UsdPerHour]:
    if not budgets:
        raise UsageError(f"--policies {name} needs --budgets, such as --budgets 100,140,200")
    return budgets


def _clusters(
    world: World, budgets: Sequence[UsdPerHour], name: str
) -> list[Mapping[GpuName, int]]:
    if len(world.gpu_types) > 1:
        raise UsageError(f"--policies {name} on several GPU types needs --nodes-list")
    (kind,) = world.gpu_types.values()
    sizes = [max(1, round(b / kind.node_price)) for b in budgets]
    return [{kind.name: size} for size in dict.fromkeys(sizes)]


def usual_jobs() -> int:
    """Processes to simulate with, where nobody says how many: one for each of two processors."""
    return min(2, os.cpu_count() or 1)


_worker: tuple[World, Asked] | None = None
"""The world and the question that all points of a pool's process share."""


def run_points(
    world: World,
    points: Sequence[SweepPoint],
    asked: Asked,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[PointOutcome]:
    """Simulate every point, several at a time; a point that cannot be is no reason to stop.

    With more than one process, a script has to call this under `if __name__ == "__main__"`.
    """
    if jobs == 1 or len(points) == 1:
        outcomes = []
        for point in points:
            outcomes.append(_outcome(world, asked, point))
            if progress is not None:
                progress(len(outcomes), len(points))
        return outcomes
    strangers = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(jobs, len(points)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(world, asked),
    )
    try:
        # BOA's last: mostly they are short, and a long one at the end leaves a process idle
        by_length = sorted(enumerate(points), key=lambda p: POLICIES[p[1].policy].knob == "budget")
        begun = {number: pool.submit(_run, point) for number, point in by_length}
        futures = [begun[number] for number in range(len(points))]
        for done, _ in enumerate(as_completed(futures), start=1):
            if progress is not None:
                progress(done, len(points))
        return [future.result() for future in futures]
    except BaseException:
        for child in set(multiprocessing.active_children()) - strangers:
            child.terminate()  # or leaving would wait for what they are at
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start(world: World, asked: Asked) -> None:
    global _worker
    close_to_others(lambda name: True)  # its parent unpickles what it answers
    _worker = (world, asked)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # unless our parent does not hear it
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # interrupted, it ends without a traceback
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # by which a pool ends the others when one dies
    threading.Thread(target=end_with_parent, daemon=True).start()


def _run(point: SweepPoint) -> PointOutcome:
    assert _worker is not None
    return _outcome(*_worker, point)


def _outcome(world: World, asked: Asked, point: SweepPoint) -> PointOutcome:
    try:
        report = run_one(world, point.policy, point.knobs, asked)
    except BoaError as problem:  # not all of them can be pickled, their words can
        return PointOutcome(point=point, problem=str(problem), exit_code=problem.exit_code)
    document = document_of(report, point.policy, world)
    if document["completed"] < document["jobs"]:
        ended = f"{document['completed']:,} of {document['jobs']:,}"
        return PointOutcome(point=point, problem=f"only {ended} jobs ever ended")
    return PointOutcome(point=point, document={**point.document(), **document})
