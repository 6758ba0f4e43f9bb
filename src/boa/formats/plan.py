"""The plan file: read any plan for a workload, ours or hand-written, with every field checked.

What a plan achieves (`average_jct_s`, `spend_per_hour`, ...) may stand in the file and is not
read: it follows from the plan and the workload.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from boa.errors import InputError
from boa.formats.containers import as_given, list_of, mapping_of, object_of
from boa.formats.files import read_document
from boa.formats.parts import NAME, VERSION_1
from boa.formats.shapes import FLAG, Field, Format, choice, needed, number, text
from boa.model.plan import ClassPlan, Plan, Route, Variant
from boa.model.workload import BILLINGS, Billing, JobClass, Workload
from boa.units import GpuName

Routing = Literal["class", "epoch", "migrate"]
SHARES = 1e-6
"""How far from 1 the shares of a class may sum to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """Under which rules a plan was made."""

    rescaling: bool = True
    routing: Routing = "class"
    billing: Billing = "gpu"


def _told(name: str, meaning: str) -> Field:
    """A figure that follows from the plan: written, and not read back."""
    return Field(name, number(), meaning, told=True)


_SHARE = needed(
    "share", number(least=0, most=1 + SHARES), "A share of the class's jobs; the shares sum to 1."
)
_WIDTH = number(least=1)
_VARIANT = object_of(
    _SHARE,
    Field("gpu_type", NAME, "The type it runs on in every epoch."),
    Field("gpu_types", list_of(NAME), "For a job that migrates: one type per epoch."),
    needed("widths", list_of(_WIDTH), "GPUs in each epoch (k): one number per epoch of the class."),
    make=as_given,
    one_of=("gpu_type", "gpu_types"),
)
_ROUTE = object_of(
    _SHARE,
    needed("gpu_type", NAME, "The type it runs on in this epoch."),
    needed("width", _WIDTH, "How many GPUs it runs on (k)."),
    make=Route,
)
_CLASS = object_of(
    needed("name", NAME, "A class of the workload."),
    _told("average_jct_s", "Mean JCT of the class."),
    _told("spend_per_hour", "What the class spends on average."),
    _told("cost_per_job", "USD."),
    _told("rescalings", "Per job, the start included."),
    _told("cheapest_jct_s", "Mean JCT if the class ran as cheaply as it can."),
    _told("cheapest_cost_per_job", "USD, if the class ran as cheaply as it can."),
    Field(
        "variants",
        list_of(_VARIANT),
        "Ways through training; a job draws one at arrival and keeps it.",
    ),
    Field(
        "epochs",
        list_of(list_of(_ROUTE)),
        "Under per-epoch routing: for every epoch, the routes of its jobs.",
    ),
    make=as_given,
    one_of=("variants", "epochs"),
    open_to_more=True,
)
_IN_USE = object_of(
    _told("mean", "On average."),
    _told("std", "Standard deviation."),
    _told("p95", "The 95th percentile."),
    make=as_given,
    open_to_more=True,
)
_BUDGET = object_of(
    Field("name", NAME, "Of the whole, or of a part.", told=True),
    Field("above", NAME, "The budget that it is a part of; null: it is the whole.", told=True),
    _told("budget_per_hour", "Of the whole the most, of a part what it has by right."),
    _told("max_per_hour", "The most that it may spend; null: what there is."),
    _told("spend_per_hour", "What its classes spend under the plan."),
    _told("wanted_per_hour", "What its fastest plan would spend: more buys it nothing."),
    _told("average_jct_s", "Mean JCT of its jobs; null where none come."),
    _told("alone_jct_s", "The same if it had its share alone; null: that cannot keep up."),
    _told("shadow_price_s", "Seconds of objective that one more dollar of its own buys."),
    make=as_given,
    open_to_more=True,
)
PLAN = Format(
    "BOA plan",
    "For every class, which share of its jobs runs on which GPUs in every epoch. `boa plan` writes "
    "it, `boa evaluate` reads it. Only `classes` is needed; figures such as spend_per_hour follow "
    "from the plan and are not read back.",
    object_of(
        VERSION_1,
        Field(
            "rescaling",
            FLAG,
            "Whether rescaling takes its time, or none (`--no-rescaling`).",
            default=True,
        ),
        Field(
            "routing",
            choice(get_args(Routing)),
            "Whether a job keeps its GPU type, has it drawn anew in every epoch, or may migrate "
            "between types.",
            default="class",
        ),
        Field(
            "billing", choice(BILLINGS), "Whether GPUs or whole nodes are paid for.", default="gpu"
        ),
        Field("solver", text("a name"), "`exact`, `glue` or `milp`.", told=True),
        _told("budget_per_hour", "The budget that was given."),
        _told("spend_per_hour", "What the plan spends on average."),
        _told("average_jct_s", "Mean JCT over all jobs: Σ λ T / Σ λ."),
        _told("objective_s", "What is minimised: Σ w λ T / Σ w λ."),
        _told("lower_bound_s", "No plan under these rules and this budget is below it."),
        _told("gap", "objective_s / lower_bound_s − 1."),
        Field("proven_optimal", FLAG, "Whether the gap is proven to be none.", told=True),
        _told("shadow_price_s", "Seconds of objective that one more dollar per hour buys (μ)."),
        _told("cheapest_per_hour", "The least spend that keeps up with the workload."),
        _told("solve_time_s", "How long the solver took."),
        Field(
            "cluster",
            mapping_of(NAME, _IN_USE, called="GPU", least=0),
            "GPUs in use per type, under Poisson arrivals.",
            told=True,
        ),
        Field(
            "budgets",
            list_of(_BUDGET),
            "Where a budget is shared (`--budgets`): the whole and all parts, from the top down.",
            told=True,
        ),
        needed("classes", list_of(_CLASS), "One entry per class of the workload."),
        make=as_given,
        open_to_more=True,
    ),
)


def load_plan(path: str | Path, workload: Workload) -> tuple[Plan, PlanSettings]:
    """Read a plan file (JSON, or YAML of the same shape) for a workload."""
    return parse_plan(read_document(path), workload)


def parse_plan(document: Any, workload: Workload) -> tuple[Plan, PlanSettings]:
    """A plan from plain mappings and lists: one entry per class of the workload, in any order."""
    top = PLAN.shape.read(document)
    known = {job_class.name: job_class for job_class in workload.classes}
    read: dict[str, ClassPlan] = {}
    for i, given in enumerate(top.pop("classes")):
        path, name = f"classes[{i}]", given["name"]
        if name not in known:
            expected = f"a class of the workload: {_names(known)}"
            raise InputError(f"{path}.name", name, expected)
        if name in read:
            raise InputError(f"{path}.name", name, "each class once")
        read[name] = _class_plan(given, path, known[name], workload)
    missing = [name for name in known if name not in read]
    if missing:
        raise InputError("classes", f"no class {missing[0]!r}", "every class of the workload")
    return Plan(tuple(read[name] for name in known)), PlanSettings(**top)


def _class_plan(
    given: Mapping[str, Any], path: str, job_class: JobClass, workload: Workload
) -> ClassPlan:
    if "epochs" in given:
        return _routed(given["epochs"], f"{path}.epochs", job_class, workload)
    variants = tuple(
        _variant(variant, f"{path}.variants[{v}]", job_class, workload)
        for v, variant in enumerate(given["variants"])
    )
    _check_shares([variant.share for variant in variants], f"{path}.variants")
    return ClassPlan(name=job_class.name, variants=variants)


def _variant(
    given: Mapping[str, Any], path: str, job_class: JobClass, workload: Workload
) -> Variant:
    epochs = len(job_class.epochs)
    _check_epochs(given["widths"], f"{path}.widths", epochs)
    types = given.get("gpu_types") or (given["gpu_type"],) * epochs
    _check_epochs(types, f"{path}.gpu_types", epochs)
    for j, gpu in enumerate(types):
        where = f"gpu_types[{j}]" if "gpu_types" in given else "gpu_type"
        _check_gpu(gpu, f"{path}.{where}", j, job_class, workload)
    widths = tuple(
        _width(width, f"{path}.widths[{j}]", types[j], j, job_class)
        for j, width in enumerate(given["widths"])
    )
    return Variant(share=given["share"], gpu_types=types, widths=widths)


def _routed(
    epochs: Sequence[Sequence[Route]], path: str, job_class: JobClass, workload: Workload
) -> ClassPlan:
    _check_epochs(epochs, path, len(job_class.epochs))
    routes = []
    for j, ways in enumerate(epochs):
        for r, way in enumerate(ways):
            _check_gpu(way.gpu_type, f"{path}[{j}][{r}].gpu_type", j, job_class, workload)
        checked = tuple(
            replace(
                way, width=_width(way.width, f"{path}[{j}][{r}].width", way.gpu_type, j, job_class)
            )
            for r, way in enumerate(ways)
        )
        _check_shares([way.share for way in checked], f"{path}[{j}]")
        routes.append(checked)
    return ClassPlan(name=job_class.name, routes=tuple(routes))


def _check_gpu(gpu: str, path: str, epoch: int, job_class: JobClass, workload: Workload) -> None:
    if gpu not in workload.gpu_types:
        expected = f"a GPU type of the workload: {', '.join(workload.gpu_types)}"
        raise InputError(path, gpu, expected)
    speedups = job_class.epochs[epoch].speedups
    if gpu not in speedups:
        expected = f"a GPU type that can run epoch {epoch} of {job_class.name}: "
        raise InputError(path, gpu, expected + ", ".join(speedups))


def _width(width: float, path: str, gpu: GpuName, epoch: int, job_class: JobClass) -> float:
    """A whole number as such: widths are GPUs, but in the theorems' fractional optimum."""
    base = job_class.base_on(gpu, job_class.epochs[epoch])
    number(least=base, most=job_class.max_on(gpu)).read(width, path)
    return int(width) if width.is_integer() else width


def _check_shares(shares: Sequence[float], path: str) -> None:
    total = sum(shares)
    if abs(total - 1) > SHARES:
        raise InputError(path, f"shares that sum to {total:.9g}", "shares that sum to 1")


def _check_epochs(entries: Sequence[object], path: str, epochs: int) -> None:
    if len(entries) != epochs:
        expected = f"{epochs}, one per epoch of the class"
        raise InputError(path, f"{len(entries)} entries", expected)


def _names(known: Mapping[str, JobClass]) -> str:
    listed = list(known)
    return ", ".join(listed[:8]) + (", …" if len(listed) > 8 else "")
