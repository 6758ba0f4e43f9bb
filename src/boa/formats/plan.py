"""The plan file: read any plan for a workload, ours or hand-written, with every field checked.

What a plan achieves (`average_jct_s`, `spend_per_hour`, ...) may stand in the file and is not
read: it follows from the plan and the workload.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from boa.errors import InputError
from boa.formats import checks
from boa.formats.files import read_document
from boa.model.plan import ClassPlan, Plan, Route, Variant
from boa.model.workload import BILLINGS, Billing, JobClass, Workload
from boa.units import GpuName

VERSION = 1
SHARES = 1e-6
"""How far from 1 the shares of a class may sum to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """Under which rules a plan was made."""

    rescaling: bool = True
    routing: Literal["class", "epoch", "migrate"] = "class"
    billing: Billing = "gpu"


def load_plan(path: str | Path, workload: Workload) -> tuple[Plan, PlanSettings]:
    """Read a plan file (JSON, or YAML of the same shape) for a workload."""
    return parse_plan(read_document(path), workload)


def parse_plan(document: Any, workload: Workload) -> tuple[Plan, PlanSettings]:
    """A plan from plain mappings and lists: one entry per class of the workload, in any order."""
    top = _fields(document, "", ("classes",))
    if top.get("version", VERSION) != VERSION or isinstance(top.get("version"), bool):
        raise InputError("version", top["version"], f"{VERSION}")
    known = {job_class.name: job_class for job_class in workload.classes}
    read: dict[str, ClassPlan] = {}
    for i, value in enumerate(checks.sequence(top["classes"], "classes")):
        path = f"classes[{i}]"
        name = checks.text(_fields(value, path, ("name",))["name"], f"{path}.name")
        if name not in known:
            expected = f"a class of the workload: {_names(known)}"
            raise InputError(f"{path}.name", name, expected)
        if name in read:
            raise InputError(f"{path}.name", name, "each class once")
        read[name] = _class_plan(value, path, known[name], workload)
    missing = [name for name in known if name not in read]
    if missing:
        raise InputError("classes", f"no class {missing[0]!r}", "every class of the workload")
    return Plan(tuple(read[name] for name in known)), _settings(top)


def _settings(top: Mapping[str, Any]) -> PlanSettings:
    rescaling = top.get("rescaling", True)
    if not isinstance(rescaling, bool):
        raise InputError("rescaling", rescaling, "true or false")
    return PlanSettings(
        rescaling=rescaling,
        routing=checks.choice(  # type: ignore[arg-type]
            top.get("routing", "class"), "routing", ("class", "epoch", "migrate")
        ),
        billing=checks.choice(  # type: ignore[arg-type]
            top.get("billing", "gpu"), "billing", BILLINGS
        ),
    )


def _class_plan(value: Any, path: str, job_class: JobClass, workload: Workload) -> ClassPlan:
    if ("variants" in value) == ("epochs" in value):
        found = "both" if "variants" in value else "neither"
        raise InputError(path, found, "either 'variants' or 'epochs'")
    if "epochs" in value:
        return _routed(value["epochs"], f"{path}.epochs", job_class, workload)
    variants = tuple(
        _variant(variant, f"{path}.variants[{v}]", job_class, workload)
        for v, variant in enumerate(checks.sequence(value["variants"], f"{path}.variants"))
    )
    _check_shares([variant.share for variant in variants], f"{path}.variants")
    return ClassPlan(name=job_class.name, variants=variants)


def _variant(value: Any, path: str, job_class: JobClass, workload: Workload) -> Variant:
    fields = checks.mapping(
        value, path, required=("share", "widths"), optional=("gpu_type", "gpu_types")
    )
    epochs = len(job_class.epochs)
    widths = _one_per_epoch(fields["widths"], f"{path}.widths", epochs)
    if ("gpu_type" in fields) == ("gpu_types" in fields):
        found = "both" if "gpu_type" in fields else "neither"
        raise InputError(path, found, "either 'gpu_type' or 'gpu_types'")
    if "gpu_type" in fields:
        where = [f"{path}.gpu_type"] * epochs
        types = [fields["gpu_type"]] * epochs
    else:
        types = _one_per_epoch(fields["gpu_types"], f"{path}.gpu_types", epochs)
        where = [f"{path}.gpu_types[{j}]" for j in range(epochs)]
    for j, gpu in enumerate(types):
        _check_gpu(gpu, where[j], j, job_class, workload)
    return Variant(
        share=_share(fields["share"], f"{path}.share"),
        gpu_types=tuple(types),
        widths=tuple(
            _width(width, f"{path}.widths[{j}]", types[j], j, job_class)
            for j, width in enumerate(widths)
        ),
    )


def _routed(value: Any, path: str, job_class: JobClass, workload: Workload) -> ClassPlan:
    epochs = []
    for j, routes in enumerate(_one_per_epoch(value, path, len(job_class.epochs))):
        here = f"{path}[{j}]"
        ways = tuple(
            _route(route, f"{here}[{r}]", j, job_class, workload)
            for r, route in enumerate(checks.sequence(routes, here))
        )
        _check_shares([way.share for way in ways], here)
        epochs.append(ways)
    return ClassPlan(name=job_class.name, routes=tuple(epochs))


def _route(value: Any, path: str, epoch: int, job_class: JobClass, workload: Workload) -> Route:
    fields = checks.mapping(value, path, required=("share", "gpu_type", "width"))
    gpu = fields["gpu_type"]
    _check_gpu(gpu, f"{path}.gpu_type", epoch, job_class, workload)
    return Route(
        _share(fields["share"], f"{path}.share"),
        gpu,
        _width(fields["width"], f"{path}.width", gpu, epoch, job_class),
    )


def _check_gpu(gpu: Any, path: str, epoch: int, job_class: JobClass, workload: Workload) -> None:
    if not isinstance(gpu, str) or gpu not in workload.gpu_types:
        expected = f"a GPU type of the workload: {', '.join(workload.gpu_types)}"
        raise InputError(path, gpu, expected)
    speedups = job_class.epochs[epoch].speedups
    if gpu not in speedups:
        expected = f"a GPU type that can run epoch {epoch} of {job_class.name}: "
        raise InputError(path, gpu, expected + ", ".join(speedups))


def _width(value: Any, path: str, gpu: GpuName, epoch: int, job_class: JobClass) -> float:
    base = job_class.base_on(gpu, job_class.epochs[epoch])
    width = checks.number(value, path, least=base, most=job_class.max_on(gpu))
    return value if type(value) is int else width


def _share(value: Any, path: str) -> float:
    return checks.number(value, path, least=0, most=1 + SHARES)


def _check_shares(shares: list[float], path: str) -> None:
    total = sum(shares)
    if abs(total - 1) > SHARES:
        raise InputError(path, f"shares that sum to {total:.9g}", "shares that sum to 1")


def _one_per_epoch(value: Any, path: str, epochs: int) -> list[Any]:
    entries = checks.sequence(value, path)
    if len(entries) != epochs:
        expected = f"{epochs}, one per epoch of the class"
        raise InputError(path, f"{len(entries)} entries", expected)
    return entries


def _fields(value: Any, path: str, required: tuple[str, ...]) -> Mapping[str, Any]:
    """A mapping with at least these fields; what else it says is not ours to read."""
    what = path or "the file"
    if not isinstance(value, dict):
        raise InputError(what, value, "a mapping")
    for key in required:
        if key not in value:
            fields = f"the fields {', '.join(required)}"
            raise InputError(checks.joined(path, key), None, fields, "missing")
    return value


def _names(known: Mapping[str, JobClass]) -> str:
    listed = list(known)
    return ", ".join(listed[:8]) + (", …" if len(listed) > 8 else "")
