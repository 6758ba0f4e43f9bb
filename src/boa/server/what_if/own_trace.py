"""The service's own past as a trace: its jobs, with the speeds that it has learned."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from boa.api.what_if import TraceChoice
from boa.errors import InputError
from boa.model.job import JobRecord
from boa.model.profile import ClassProfile
from boa.model.trace import Trace, TraceJob
from boa.model.workload import Billing, GpuType
from boa.policy.rivals.common import WIDEST
from boa.server.context import Service, looked_up
from boa.server.what_if.traces import hours_of
from boa.sim.physics import TableTruth, Truth
from boa.sim.run import World
from boa.units import GpuName, Seconds, UsdPerHour

OWN = "own"
LEAST_JOBS = 10
"""Jobs that it takes to say how often they come."""
MOST_OWN = 5000
"""Newest jobs that count: all of them are read whenever somebody looks."""
BUDGETS = (0.5, 0.75, 1.0, 1.5, 2.0)
"""Budgets to try, as shares of the service's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """Jobs of known classes, and the classes that they are of."""

    trace: Trace
    profiles: Mapping[str, ClassProfile]
    scales: Mapping[str, float]
    """Work of each job over that of its class's mean job."""
    left_out: int
    """Jobs of classes that nothing is known of, or that got nowhere."""
    gpu_types: Mapping[GpuName, GpuType]
    began: Seconds = 0.0
    """Unix time of the first job's submission: the trace's moment 0."""

    @property
    def enough(self) -> bool:
        return len(self.trace.jobs) >= LEAST_JOBS and self.trace.span_s > 0


def seen_by(service: Service, gpu_types: Mapping[GpuName, GpuType]) -> Own:
    """Blocks on the store and the control loop."""
    active = service.control.snapshot.jobs
    stored = service.store.jobs(limit=MOST_OWN)
    profiles = looked_up(service.control.profiles)
    return own_of([active.get(job.id, job) for job in stored], profiles, gpu_types)


def own_of(
    records: Iterable[JobRecord],
    profiles: Mapping[str, ClassProfile],
    gpu_types: Mapping[GpuName, GpuType],
) -> Own:
    known = {name: limited for name, p in profiles.items() if (limited := _limited(p, gpu_types))}
    counted, scales, left_out = [], {}, 0
    for record in sorted(records, key=lambda record: record.submitted_at):
        profile = known.get(record.job_class)
        scale = 0.0 if profile is None else part_of(record, profile)
        if scale > 0:
            counted.append(record)
            scales[record.id] = scale
        else:
            left_out += 1
    used = {record.job_class for record in counted}
    began = counted[0].submitted_at if counted else 0.0
    return Own(
        trace=Trace(tuple(_job(record, began, known[record.job_class]) for record in counted)),
        profiles={name: profile for name, profile in known.items() if name in used},
        scales=scales,
        left_out=left_out,
        gpu_types={
            gpu: kind
            for gpu, kind in gpu_types.items()
            if any(gpu in known[name].rates for name in used)
        },
        began=began,
    )


def part_of(record: JobRecord, profile: ClassProfile) -> float:
    """A job's work over that of its class's mean job; of one that gave up, what it had done."""
    total = sum(profile.work)
    stated = record.spec.total_work
    scale = 1.0 if stated is None else stated / total
    if record.state not in ("failed", "stopped"):
        return scale
    whole = profile.work[: record.best_epoch]
    inside = profile.work[record.best_epoch] * scale if len(whole) < len(profile.work) else 0.0
    return scale * sum(whole) / total + min(record.best_progress, inside) / total


def _limited(profile: ClassProfile, gpu_types: Mapping[GpuName, GpuType]) -> ClassProfile | None:
    """On types that can be rented, as wide as simulated policies go; None: it cannot run so."""
    rates = {
        gpu: profile.rates[gpu][..., : WIDEST + 1] for gpu in gpu_types if gpu in profile.rates
    }
    rates = {gpu: table for gpu, table in rates.items() if table.any()}
    return replace(profile, rates=rates) if rates and sum(profile.work) > 0 else None


def _job(record: JobRecord, began: float, profile: ClassProfile) -> TraceJob:
    """Rigid policies give it the fewest GPUs that it can run on."""
    least = (np.flatnonzero(table.max(axis=(0, 1)) > 0)[0] for table in profile.rates.values())
    return TraceJob(
        name=record.id,
        arrival_s=record.submitted_at - began,
        application=record.job_class,
        gpus=max(record.spec.gpus.min, int(min(least))),
    )


def own_choice(own: Own, budget: UsdPerHour, billing: Billing) -> TraceChoice:
    classes = len(own.profiles)
    nodes = "come at once" if billing == "gpu" else "take as long as the service's own have taken"
    about = (
        f"What this service has seen: {len(own.trace.jobs):,} jobs of {classes} "
        f"class{'es' if classes > 1 else ''}, as they came, with the speeds and the work that it "
        "has learned of their classes; policies know these from the start. A job that failed or "
        "was stopped counts for what it had done. No job gets wider than a plan would make it "
        f"now. Prices are today's, and nodes {nodes}."
    )
    if own.left_out:
        about += f" Left out: {own.left_out:,} that nothing was measured of, or that did nothing."
    return {
        "name": OWN,
        "about": about,
        "jobs": len(own.trace.jobs),
        "hours": hours_of(own.trace),
        "gpu_types": list(own.gpu_types),
        "budgets": [round(budget * part, 2) for part in BUDGETS],
    }


def own_world(own: Own, gpus: Sequence[GpuName] | None) -> World:
    """On these types, or all that its jobs run on."""
    if not own.enough:
        expected = f"another trace: there are fewer than {LEAST_JOBS} jobs of known classes yet"
        raise InputError("trace", OWN, expected)
    for gpu in gpus or ():
        if gpu not in own.gpu_types:
            raise InputError("gpu_types", gpu, f"one of {', '.join(own.gpu_types)}")
    types = {gpu: own.gpu_types[gpu] for gpu in gpus or own.gpu_types}
    truths: dict[str, Truth] = {}
    for name, profile in own.profiles.items():
        rates = {gpu: profile.rates[gpu] for gpu in types if gpu in profile.rates}
        if not rates:
            expected = f"a GPU type that {name} runs on: {', '.join(profile.rates)}"
            raise InputError("gpu_types", list(types), expected)
        mine = [job.name for job in own.trace.jobs if job.application == name]
        truths[name] = TableTruth(
            profile=replace(profile, rates=rates), scales={job: own.scales[job] for job in mine}
        )
    return World(trace=own.trace, truths=truths, gpu_types=types, slowdown="none")
