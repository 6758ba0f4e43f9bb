"""Users' commands: each changes the draft, or raises what they did wrong. All pure."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from boa.errors import InputError
from boa.model.cluster import JobId
from boa.model.job import After, JobRecord, JobSpec
from boa.model.workload import GpuType, cheapest_node
from boa.scheduler.refusals import NoSuchJob
from boa.scheduler.state import Draft
from boa.scheduler.terms.dependencies import Known, still_awaited, unknown, waits
from boa.scheduler.terms.stopping import stop_job
from boa.units import GpuName, UsdPerHour

UNLIMITED = 1_000_000
"""Nodes of a type that has no limit."""
PayerOf: TypeAlias = Callable[[str, str, str], str]


class Whose(NamedTuple):
    owner: str
    team: str
    payer: str


def nobody(job_class: str, owner: str, team: str) -> str:
    """No part of the budget pays because of who submits: the class says who does."""
    return ""


def submit(
    draft: Draft,
    spec: JobSpec,
    gpu_types: Mapping[GpuName, GpuType],
    max_nodes: Mapping[GpuName, int],
    *,
    one_machine: bool = True,
    owner: str = "",
    team: str = "",
    code: str = "",
    known: Known = unknown,
    payer_of: PayerOf = nobody,
) -> JobRecord:
    """`one_machine`: all nodes are this one, so that one process sees the GPUs of several.
    `code`: fingerprint of what is run. `known`: what is stored of a job that has ended.
    `payer_of`: class, owner and team to the part of the budget that pays because of them."""
    check(spec, gpu_types, max_nodes)
    awaits = still_awaited(draft, spec.after, known)
    payer = payer_of(spec.job_class, owner, team)
    return _add(draft, spec, one_machine, Whose(owner, team, payer), code, awaits)


def submit_many(
    draft: Draft,
    specs: Sequence[JobSpec],
    gpu_types: Mapping[GpuName, GpuType],
    max_nodes: Mapping[GpuName, int],
    *,
    one_machine: bool = True,
    owner: str = "",
    team: str = "",
    codes: Sequence[str] = (),
    known: Known = unknown,
    payer_of: PayerOf = nobody,
) -> list[JobRecord]:
    """All of them or, where one is wrong, none: the error names which."""
    awaits, known = [], cache(known)  # thousands of jobs may wait for the same thousand others
    for number, spec in enumerate(specs):
        try:
            check(spec, gpu_types, max_nodes)
            awaits.append(still_awaited(draft, spec.after, known))
        except InputError as wrong:
            field = f"jobs[{number}].{wrong.field}"
            raise InputError(field, wrong.value, wrong.expected, wrong.problem) from None
    codes = codes or [""] * len(specs)
    payers = {name: payer_of(name, owner, team) for name in {spec.job_class for spec in specs}}
    return [
        _add(draft, spec, one_machine, Whose(owner, team, payers[spec.job_class]), code, others)
        for spec, code, others in zip(specs, codes, awaits, strict=True)
    ]


def check(
    spec: JobSpec, gpu_types: Mapping[GpuName, GpuType], max_nodes: Mapping[GpuName, int]
) -> None:
    """A job that can be given what it asks for, as far as is known here."""
    strange = [name for name in spec.gpus.types if name not in gpu_types]
    if strange:
        expected = f"GPU types that can be rented here: {', '.join(gpu_types)}"
        raise InputError("gpus.types", strange[0], expected)
    _check_size(spec, gpu_types, max_nodes)


def _add(
    draft: Draft,
    spec: JobSpec,
    one_machine: bool,
    whose: Whose,
    code: str,
    awaits: tuple[After, ...],
) -> JobRecord:
    state = draft.state
    serial = state.serials.get(spec.job_class, 0)
    job = JobRecord(
        id=str(state.next_job),
        spec=spec,
        serial=serial,
        owner=whose.owner,
        team=whose.team,
        payer=whose.payer,
        code=code,
        submitted_at=draft.now,
        reason=waits(awaits) if awaits else "new",
        awaits=awaits,
        deadline=None if spec.deadline_s is None else draft.now + spec.deadline_s,
    )
    state.next_job += 1
    state.serials[spec.job_class] = serial + 1
    draft.put_meta("serials", state.serials)  # the draft's own: the next one has a copy
    draft.put_job(job)
    draft.arrived.append(job)
    draft.count(submitted=1)
    draft.tell("submitted", job=job.id, name=job.name, job_class=job.job_class)
    if spec.launcher == "single" and spec.gpus.max > 1 and not one_machine:
        draft.tell("trouble", job=job.id, why="one_process")
    return job


def _check_size(
    spec: JobSpec, gpu_types: Mapping[GpuName, GpuType], max_nodes: Mapping[GpuName, int]
) -> None:
    """A job that could never be given its least GPUs would wait for ever."""
    usable = spec.gpus.types or tuple(gpu_types)
    most = max(
        (gpu_types[gpu].gpus_per_node * max_nodes.get(gpu, UNLIMITED) for gpu in usable), default=0
    )
    if spec.gpus.min > most:
        expected = f"at most {most}: there are never more GPUs of one type here"
        raise InputError("gpus.min", spec.gpus.min, expected)


def check_cap(max_spend: UsdPerHour | None, gpu_types: Mapping[GpuName, GpuType]) -> None:
    """A cap under which no node can be rented stops everything: that is never meant."""
    cheapest = cheapest_node(gpu_types.values())
    if max_spend is not None and max_spend < cheapest:
        expected = f"at least {cheapest:g}: the cheapest node costs so much an hour"
        raise InputError("max_spend_per_hour", max_spend, expected)


def check_type(gpu: GpuName | None, gpu_types: Mapping[GpuName, GpuType]) -> None:
    if gpu is not None and gpu not in gpu_types:
        expected = f"a GPU type that can be rented here: {', '.join(gpu_types)}"
        raise InputError("gpu_type", gpu, expected)


def stop(draft: Draft, job_id: JobId, known: JobRecord | None) -> JobRecord:
    """`known` is what the store has of a job that is not active."""
    job = draft.jobs.get(job_id)
    if job is None:
        if known is None:
            raise NoSuchJob(job_id)
        return known
    return stop_job(draft, job)
