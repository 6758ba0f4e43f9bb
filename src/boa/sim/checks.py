"""Refusals before anything runs: what cannot work together, and jobs that could never start."""

from collections.abc import Iterable, Mapping

import numpy as np

from boa.errors import InputError, UsageError
from boa.formats.calendar import check_types
from boa.model.policies import POLICIES, scheduled_policies
from boa.policy.registry import Choice, Knobs
from boa.scheduler.observe.commands import UNLIMITED, check_cap
from boa.sim.physics import Truth
from boa.sim.run import World
from boa.sim.settings import Settings
from boa.units import GpuName


def check_goes_together(world: World, name: str, choice: Choice, settings: Settings) -> None:
    facts = POLICIES[name]
    if settings.interval_s is None and getattr(choice.policy, "at_events", False):
        raise UsageError(
            f"--interval-s 0 (act at events alone) is not for --policy {name} with --billing node, "
            "which also looks at its nodes in rounds: leave it out, or give the length of a round"
        )
    if settings.interval_s is None and not choice.policy.by_job:
        raise UsageError(
            f"--interval-s 0 (act at events) is not for --policy {name}, which looks at all jobs "
            "in rounds: give the length of a round, such as 60"
        )
    if not facts.several_types and len(world.gpu_types) > 1:
        raise UsageError(
            f"--policy {name} runs on one GPU type, not on {', '.join(world.gpu_types)}"
        )
    if settings.scheduled:
        _check_scheduled(name, choice, settings)
    if settings.learning == "job" and not facts.learns_alone:
        raise UsageError(
            f"--learning job is not for --policy {name}, which has to know a job before it has run"
        )


def _check_scheduled(name: str, choice: Choice, settings: Settings) -> None:
    """The service's own scheduler decides; so it must be able to, and have what it needs."""
    facts = POLICIES[name]
    if name not in scheduled_policies():
        raise UsageError(
            "--max-spend, --max-nodes, --keep-warm-s, --pacing-h, --calendar and --learning "
            "service are decided by the scheduler of boa serve, which does not run "
            f"--policy {name}; it runs {', '.join(scheduled_policies())}"
        )
    if settings.pacing_h is not None and facts.knob != "budget":
        raise UsageError(f"--pacing-h steers a budget, and --policy {name} has none")
    if choice.policy.by_job and settings.interval_s is not None:
        raise UsageError(
            f"--interval-s is not for --policy {name} under the scheduler of boa serve (asked for "
            "by --max-spend and the like), where it acts at events"
        )


def check_can_run(world: World, name: str, knobs: Knobs, settings: Settings) -> None:
    """Jobs that could never start would be waited for in vain."""
    room = {
        gpu: None if knobs.nodes is None else knobs.nodes.get(gpu, 0) * kind.gpus_per_node
        for gpu, kind in world.gpu_types.items()
    }
    _check_limits(world, settings)
    if settings.calendar is not None:
        check_types(settings.calendar, world.gpu_types, "--calendar:", "this simulation (--gpus)")
    if knobs.width is not None:
        _check_width(world, knobs.width)
    elif POLICIES[name].as_asked:
        _check_requests(world, room, alone=settings.learning == "job")
    elif knobs.nodes is not None:
        _check_room(world, knobs.nodes, room)


def _check_limits(world: World, settings: Settings) -> None:
    """Caps under which some job could never run are never meant."""
    for gpu in settings.max_nodes:
        if gpu not in world.gpu_types:
            expected = f"a GPU type that can be rented: {', '.join(world.gpu_types)} (--gpus)"
            raise InputError("--max-nodes", gpu, expected)
    if settings.max_nodes:
        room = {
            gpu: settings.max_nodes.get(gpu, UNLIMITED) * kind.gpus_per_node
            for gpu, kind in world.gpu_types.items()
        }
        _check_room(world, settings.max_nodes, room, "--max-nodes")
    try:
        check_cap(settings.max_spend, world.gpu_types)
    except InputError as wrong:
        raise InputError("--max-spend", wrong.value, wrong.expected) from None


def _runs_at(truth: Truth, gpu: GpuName) -> list[int]:
    """The widths at which a class makes progress."""
    if not truth.widest(gpu):
        return []
    return np.flatnonzero(truth.rates(gpu)[0].max(axis=0) > 0).tolist()


def _check_width(world: World, width: int) -> None:
    gpu = next(iter(world.gpu_types))
    for app in world.trace.counts():
        possible = _runs_at(world.truths[app], gpu)
        if width not in possible:
            takes = f"{possible[0]} to {possible[-1]}" if possible else "no"
            raise InputError(
                "--width", width, f"a width that every class can run at: {app} takes {takes} {gpu}s"
            )


def _check_requests(world: World, room: Mapping[GpuName, int | None], *, alone: bool) -> None:
    """Rigid policies give every job what it asked for, on the first type that can do that."""
    types = list(world.gpu_types)[:1] if alone else list(world.gpu_types)
    known: set[tuple[str, int]] = set()
    for job in world.trace.jobs:
        width = job.gpus or 1
        if (job.application, width) in known:
            continue
        known.add((job.application, width))
        truth = world.truths[job.application]
        gpu = next((gpu for gpu in types if width in _runs_at(truth, gpu)), None)
        most = None if gpu is None else room[gpu]
        if gpu is None:
            expected = f"GPUs that {job.application} can run on: {_takes(truth, types)}"
        elif most is not None and width > most:
            expected = f"at most the {most} {gpu}s of --nodes"
        else:
            continue
        where = f"line {job.line} ({job.name})" if job.line else f"job {job.name}"
        raise InputError(f"trace, {where}, column gpus", job.gpus, expected)


def _takes(truth: Truth, types: Iterable[GpuName]) -> str:
    found = {gpu: _runs_at(truth, gpu) for gpu in types}
    return ", ".join(f"{ks[0]} to {ks[-1]} {gpu}s" for gpu, ks in found.items() if ks)


def _check_room(
    world: World,
    nodes: Mapping[GpuName, int],
    room: Mapping[GpuName, int | None],
    flag: str = "--nodes",
) -> None:
    for app in world.trace.counts():
        truth = world.truths[app]
        needed = {gpu: ks[0] for gpu in world.gpu_types if (ks := _runs_at(truth, gpu))}
        if not any(least <= (room[gpu] or 0) for gpu, least in needed.items()):
            enough = " or ".join(f"{least} {gpu}s" for gpu, least in needed.items())
            raise InputError(flag, cluster_text(nodes), f"room for {app}: at least {enough}")


def cluster_text(nodes: Mapping[GpuName, int]) -> str:
    return ",".join(f"{gpu}={count}" for gpu, count in nodes.items())
