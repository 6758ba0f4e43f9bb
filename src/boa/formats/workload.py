"""The workload file: read it with every field checked, write it so that a person can read it."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from boa.errors import InputError
from boa.formats import checks
from boa.formats.files import read_document
from boa.formats.plain_yaml import load_yaml
from boa.model.speedup import Amdahl, Power, Speedup, Table
from boa.model.workload import DEFAULT_MAX_GPUS, Epoch, GpuType, JobClass, Workload
from boa.units import GpuName

VERSION = 1
MAX_WIDTH = 65_536


def load_workload(path: str | Path) -> Workload:
    """Read a workload file (YAML or JSON)."""
    return parse_workload(read_document(path))


def parse_workload(document: Any) -> Workload:
    """A workload from plain mappings and lists, as YAML and JSON give them."""
    top = checks.mapping(document, "", required=("version", "gpu_types", "classes"))
    if top["version"] != VERSION or isinstance(top["version"], bool):
        raise InputError("version", top["version"], f"{VERSION}")
    gpu_types = {
        name: _gpu_type(name, value, f"gpu_types.{name}")
        for name, value in checks.named(top["gpu_types"], "gpu_types").items()
    }
    classes: list[JobClass] = []
    names: set[str] = set()
    for i, value in enumerate(checks.sequence(top["classes"], "classes")):
        job_class = _job_class(value, f"classes[{i}]", gpu_types)
        if job_class.name in names:
            raise InputError(f"classes[{i}].name", job_class.name, "a name no other class has")
        names.add(job_class.name)
        classes.append(job_class)
    if not any(c.arrivals_per_hour for c in classes):
        raise InputError("classes", "no arrivals", "arrivals_per_hour > 0 in at least one class")
    return Workload(gpu_types=gpu_types, classes=tuple(classes))


def _gpu_type(name: str, value: Any, path: str) -> GpuType:
    fields = checks.mapping(
        {} if value is None else value, path, optional=("price", "gpus_per_node")
    )
    return GpuType(
        name=name,
        price=checks.number(fields.get("price", 1.0), f"{path}.price", above=0),
        gpus_per_node=checks.whole(
            fields.get("gpus_per_node", 1), f"{path}.gpus_per_node", most=MAX_WIDTH
        ),
    )


def _job_class(value: Any, path: str, gpu_types: Mapping[GpuName, GpuType]) -> JobClass:
    fields = checks.mapping(
        value,
        path,
        required=("name", "arrivals_per_hour", "epochs"),
        optional=("weight", "rescale_s", "min_gpus", "max_gpus", "max_jct_s"),
    )
    cap = fields.get("max_jct_s")
    job_class = JobClass(
        name=checks.text(fields["name"], f"{path}.name"),
        arrivals_per_hour=checks.number(
            fields["arrivals_per_hour"], f"{path}.arrivals_per_hour", least=0
        ),
        epochs=tuple(
            _epoch(epoch, f"{path}.epochs[{j}]", gpu_types)
            for j, epoch in enumerate(checks.sequence(fields["epochs"], f"{path}.epochs"))
        ),
        weight=checks.number(fields.get("weight", 1.0), f"{path}.weight", above=0),
        rescale_s=checks.number(fields.get("rescale_s", 0.0), f"{path}.rescale_s", least=0),
        min_gpus=_limit(fields.get("min_gpus", 1), f"{path}.min_gpus", gpu_types),
        max_gpus=_limit(fields.get("max_gpus", DEFAULT_MAX_GPUS), f"{path}.max_gpus", gpu_types),
        max_jct_s=None if cap is None else checks.number(cap, f"{path}.max_jct_s", above=0),
    )
    _check_widths(job_class, path)
    return job_class


def _epoch(value: Any, path: str, gpu_types: Mapping[GpuName, GpuType]) -> Epoch:
    fields = checks.mapping(value, path, required=("work_s", "speedup"))
    curves = checks.named(fields["speedup"], f"{path}.speedup")
    for name in curves:
        _known(name, f"{path}.speedup", gpu_types)
    return Epoch(
        work=checks.number(fields["work_s"], f"{path}.work_s", above=0),
        speedups={
            name: _speedup(curve, f"{path}.speedup.{name}") for name, curve in curves.items()
        },
    )


def _speedup(value: Any, path: str) -> Speedup:
    fields = checks.mapping(value, path, optional=(*_CURVES, "scale"))
    kinds = [kind for kind in _CURVES if kind in fields]
    if len(kinds) != 1:
        raise InputError(path, value, f"exactly one of {', '.join(_CURVES)}")
    scale = checks.number(fields.get("scale", 1.0), f"{path}.scale", above=0)
    return _CURVES[kinds[0]](fields[kinds[0]], f"{path}.{kinds[0]}", scale)


def _amdahl(value: Any, path: str, scale: float) -> Speedup:
    return Amdahl(checks.number(value, path, least=0, most=1), scale)


def _power(value: Any, path: str, scale: float) -> Speedup:
    return Power(checks.number(value, path, least=0, most=1), scale)


def _table(value: Any, path: str, scale: float) -> Speedup:
    if not isinstance(value, dict) or not value:
        raise InputError(path, value, "a mapping from widths to speedups, with at least one point")
    if _is_plain(value):  # as good as always, and files have tens of thousands of points
        return Table.of(value, scale)
    points: dict[int, float] = {}
    for key, rate in value.items():
        # JSON has no whole-number keys: there a width arrives as text.
        width = int(key) if isinstance(key, str) and key.isascii() and key.isdigit() else key
        if type(width) is not int or not 1 <= width <= MAX_WIDTH:
            raise InputError(f"{path}.{key}", key, f"a width: a whole number 1 to {MAX_WIDTH}")
        if width in points:
            raise InputError(f"{path}.{key}", key, "each width once")
        points[width] = checks.number(rate, f"{path}.{key}", above=0)
    return Table.of(points, scale)


def _is_plain(table: dict[Any, Any]) -> bool:
    """Whether nothing can be wrong with any of its points."""
    rates = table.values()
    return (
        {int}.issuperset(map(type, table))
        and {int, float}.issuperset(map(type, rates))
        and min(table) >= 1
        and max(table) <= MAX_WIDTH
        and min(rates) >= checks.TINY
        and max(rates) <= checks.HUGE
        and not math.isnan(sum(rates))  # which is neither less nor more than anything
    )


_CURVES: dict[str, Callable[[Any, str, float], Speedup]] = {
    "table": _table,
    "amdahl": _amdahl,
    "power": _power,
}


def _limit(
    value: Any, path: str, gpu_types: Mapping[GpuName, GpuType]
) -> int | Mapping[GpuName, int]:
    if not isinstance(value, dict):
        return checks.whole(value, path, most=MAX_WIDTH)
    for name in checks.named(value, path):
        _known(name, path, gpu_types)
    return {name: checks.whole(k, f"{path}.{name}", most=MAX_WIDTH) for name, k in value.items()}


def _known(name: str, path: str, gpu_types: Mapping[GpuName, GpuType]) -> None:
    if name not in gpu_types:
        expected = f"a GPU type from gpu_types: {', '.join(gpu_types)}"
        raise InputError(f"{path}.{name}", name, expected)


def _check_widths(job_class: JobClass, path: str) -> None:
    for j, epoch in enumerate(job_class.epochs):
        for gpu in epoch.speedups:
            base = job_class.base_on(gpu, epoch)
            if base is None or base > job_class.max_on(gpu):
                raise InputError(
                    f"{path}.epochs[{j}].speedup.{gpu}",
                    f"base {base}, max_gpus {job_class.max_on(gpu)}",
                    "a base (min_gpus, or the table's first width) of at most max_gpus",
                )


def dump_workload(workload: Workload) -> str:
    """The workload as YAML, one line per epoch; `load_workload` gives the same workload back."""
    return "".join(line + "\n" for line in _lines(workload))


def _lines(workload: Workload) -> Iterator[str]:
    for note in workload.notes:
        yield f"# {note}".rstrip()
    yield f"version: {VERSION}"
    yield "gpu_types:"
    for gpu in workload.gpu_types.values():
        fields = f"price: {_num(gpu.price)}, gpus_per_node: {gpu.gpus_per_node}"
        yield f"  {_name(gpu.name)}: {{{fields}}}"
    yield "classes:"
    for job_class in workload.classes:
        yield f"  - name: {_name(job_class.name)}"
        yield f"    arrivals_per_hour: {_num(job_class.arrivals_per_hour)}"
        if job_class.weight != 1.0:
            yield f"    weight: {_num(job_class.weight)}"
        yield f"    rescale_s: {_num(job_class.rescale_s)}"
        yield f"    min_gpus: {_limit_text(job_class.min_gpus)}"
        yield f"    max_gpus: {_limit_text(job_class.max_gpus)}"
        if job_class.max_jct_s is not None:
            yield f"    max_jct_s: {_num(job_class.max_jct_s)}"
        yield "    epochs:"
        for epoch in job_class.epochs:
            curves = (f"{_name(gpu)}: {_curve(curve)}" for gpu, curve in epoch.speedups.items())
            yield f"      - {{work_s: {_num(epoch.work)}, speedup: {{{', '.join(curves)}}}}}"


def _curve(curve: Speedup) -> str:
    scale = "" if curve.scale == 1.0 else f", scale: {_num(curve.scale)}"
    if isinstance(curve, Table):
        points = zip(curve.widths, curve.measured.tolist(), strict=True)
        inside = f"table: {{{', '.join(f'{k}: {_num(s)}' for k, s in points)}}}"
    elif isinstance(curve, Amdahl):
        inside = f"amdahl: {_num(curve.parallel)}"
    elif isinstance(curve, Power):
        inside = f"power: {_num(curve.exponent)}"
    else:
        raise TypeError(f"no file form for {type(curve).__name__}")
    return f"{{{inside}{scale}}}"


def _limit_text(limit: int | Mapping[GpuName, int]) -> str:
    if isinstance(limit, int):
        return str(limit)
    return "{" + ", ".join(f"{_name(gpu)}: {k}" for gpu, k in limit.items()) + "}"


def _name(name: str) -> str:
    """A name as YAML reads it back: quoted if it could be taken for something else."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_.+-]*", name) and load_yaml(name) == name
    return name if plain else json.dumps(name, ensure_ascii=False)


def _num(value: float) -> str:
    """The shortest text that reads back as the same number (YAML 1.1 wants a dot before an e)."""
    text = repr(float(value))
    if text.endswith(".0"):
        return text[:-2]
    return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text
