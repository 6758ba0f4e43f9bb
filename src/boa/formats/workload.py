"""The workload file: read it with every field checked, write it so that a person can read it."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from boa.formats.containers import as_given, either, list_of, mapping_of, object_of
from boa.formats.files import read_document
from boa.formats.parts import NAME, VERSION, VERSION_1
from boa.formats.plain_yaml import load_yaml
from boa.formats.shapes import (
    HUGE,
    LEFT_OUT,
    TINY,
    BeyondSchema,
    Field,
    Format,
    Shape,
    Wrong,
    needed,
    nullable,
    number,
    or_empty,
    step,
    whole,
)
from boa.model.speedup import Amdahl, Power, Speedup, Table
from boa.model.workload import DEFAULT_MAX_GPUS, Epoch, GpuType, JobClass, Workload
from boa.units import GpuName

MAX_WIDTH = 65_536


def _width(key: Any) -> int:
    if type(key) is int and 1 <= key <= MAX_WIDTH:
        return key
    # JSON has no whole-number keys: there a width arrives as text.
    digits = isinstance(key, str) and key.isascii() and key.isdigit()
    if digits and len(key) < 20 and 1 <= (width := int(key)) <= MAX_WIDTH:
        return width
    kind = BeyondSchema if digits and key.strip("0") else Wrong
    raise kind(key, f"a width: a whole number 1 to {MAX_WIDTH}")


def _curve(
    scale: float,
    table: dict[int, float] | None = None,
    amdahl: float | None = None,
    power: float | None = None,
) -> Speedup:
    if table is not None:
        return Table.of(table, scale)
    return Power(power, scale) if amdahl is None else Amdahl(amdahl, scale)  # type: ignore[arg-type]


def _job_class(**values: Any) -> JobClass:
    job_class = JobClass(**values)
    for j, epoch in enumerate(job_class.epochs):
        for gpu in epoch.speedups:
            base = job_class.base_on(gpu, epoch)
            if base is None or base > job_class.max_on(gpu):
                raise BeyondSchema(
                    f"base {base}, max_gpus {job_class.max_on(gpu)}",
                    "a base (min_gpus, or the table's first width) of at most max_gpus",
                    at=f".epochs[{j}].speedup{step(gpu)}",
                )
    return job_class


def _workload(gpu_types: dict[GpuName, dict[str, Any]], classes: tuple[JobClass, ...]) -> Workload:
    names: set[str] = set()
    for i, job_class in enumerate(classes):
        if job_class.name in names:
            expected = "a name no other class has"
            raise BeyondSchema(job_class.name, expected, at=f".classes[{i}].name")
        names.add(job_class.name)
        _check_types(job_class, gpu_types, f".classes[{i}]")
    if not any(c.arrivals_per_hour for c in classes):
        expected = "arrivals_per_hour > 0 in at least one class"
        raise BeyondSchema("no arrivals", expected, at=".classes")
    types = {name: GpuType(name=name, **facts) for name, facts in gpu_types.items()}
    return Workload(gpu_types=types, classes=classes)


def _check_types(job_class: JobClass, gpu_types: Mapping[GpuName, Any], at: str) -> None:
    """That every GPU type of the class is one of the workload's."""
    known = gpu_types.keys()
    named: dict[str, Any] = {"min_gpus": job_class.min_gpus, "max_gpus": job_class.max_gpus}
    for j, epoch in enumerate(job_class.epochs):
        if not epoch.speedups.keys() <= known:
            named[f"epochs[{j}].speedup"] = epoch.speedups
    for where, by_type in named.items():
        for name in by_type if isinstance(by_type, dict) else ():
            if name not in known:
                expected = f"a GPU type from gpu_types: {', '.join(gpu_types)}"
                raise BeyondSchema(name, expected, at=f"{at}.{where}{step(name)}")


def _is_plain(table: Any) -> bool:
    """Whether nothing can be wrong with a table: as good as always, and told for all its points at
    once. Files have tens of thousands of them."""
    if type(table) is not dict or not table:
        return False
    rates = table.values()
    return (
        {int}.issuperset(map(type, table))
        and {int, float}.issuperset(map(type, rates))
        and min(table) >= 1
        and max(table) <= MAX_WIDTH
        and min(rates) >= TINY
        and max(rates) <= HUGE
        and not math.isnan(sum(rates))  # which is neither less nor more than anything
    )


_WIDTH: Shape[int] = Shape(
    _width, {"type": "string", "pattern": "^[0-9]*[1-9][0-9]*$"}, "whole number"
)
_GPU_TYPE = or_empty(
    object_of(
        Field(
            "price",
            number(above=0),
            "USD per GPU and hour. With every price 1, a budget counts GPUs.",
            default=1.0,
        ),
        Field(
            "gpus_per_node",
            whole(most=MAX_WIDTH),
            "GPUs on one node: what `--billing node` pays for at once.",
            default=1,
        ),
        make=as_given,
    )
)
_POINTS = mapping_of(
    _WIDTH,
    number(above=0),
    called="width",
    expected="a mapping from widths to speedups, with at least one point",
)
_SPEEDUP = object_of(
    Field(
        "table",
        replace(_POINTS, take=lambda table: table if _is_plain(table) else _POINTS.take(table)),
        "Measured speedups by width: linear between the points, flat after the last; no width "
        "below the first point runs.",
        example={"1": 1.0, "2": 1.9, "4": 3.4, "8": 5.5},
    ),
    Field(
        "amdahl",
        number(least=0, most=1),
        "Amdahl's law: 1 / ((1 − f) + f/k), f the share of work that runs in parallel.",
    ),
    Field("power", number(least=0, most=1), "k to this power."),
    Field(
        "scale",
        number(above=0),
        "Multiplies the curve: how much faster this GPU type is.",
        default=1.0,
    ),
    make=_curve,
    one_of=("table", "amdahl", "power"),
)
_EPOCH = object_of(
    needed(
        "work_s", number(above=0), "Mean inherent work: seconds it takes at speed 1 (X).", to="work"
    ),
    needed(
        "speedup",
        mapping_of(NAME, _SPEEDUP, called="GPU"),
        "Rate of inherent work at width k, s(k): one curve per GPU type. A type left out cannot "
        "run this epoch.",
        to="speedups",
    ),
    make=Epoch,
)
_LIMIT_WIDTH = whole(most=MAX_WIDTH)
_LIMIT = either(
    {
        int: _LIMIT_WIDTH,
        float: _LIMIT_WIDTH,
        dict: mapping_of(NAME, _LIMIT_WIDTH, called="GPU", words="one per GPU type"),
    },
    expected=f"a whole number >= 1 and <= {MAX_WIDTH}, or one per GPU type",
)
_CLASS = object_of(
    needed("name", NAME, "A name that no other class has."),
    needed("arrivals_per_hour", number(least=0), "Jobs that arrive per hour (λ)."),
    Field(
        "weight",
        number(above=0),
        "How much a second of this class's JCT counts in the objective (w).",
        default=1.0,
    ),
    Field(
        "rescale_s",
        number(least=0),
        "Mean time of one rescaling: checkpoint, stop, restart on other GPUs (r). The first start "
        "of a job is one. GPUs are paid for while it lasts.",
        default=0.0,
    ),
    Field(
        "min_gpus", _LIMIT, "The smallest width on which the class can run (its base).", default=1
    ),
    Field("max_gpus", _LIMIT, "The largest width it may run on.", default=DEFAULT_MAX_GPUS),
    Field(
        "max_jct_s",
        nullable(number(above=0)),
        "A cap on the mean JCT of the class.",
        otherwise="none",
    ),
    needed("epochs", list_of(_EPOCH), "Stretches of training, in order (j)."),
    make=_job_class,
)
WORKLOAD = Format(
    "BOA workload",
    "Which GPU types can be rented at which price, and which job classes arrive: all that a plan "
    "is made from. Durations are seconds, rates per hour, money USD.",
    object_of(
        replace(VERSION_1, required=True, default=LEFT_OUT),
        needed(
            "gpu_types",
            mapping_of(NAME, _GPU_TYPE, called="GPU"),
            "GPU types that can be rented, by name (h).",
            example={"T4": {"price": 1.088, "gpus_per_node": 4}},
        ),
        needed(
            "classes",
            list_of(_CLASS),
            "Job classes, jobs that share model and data (i); each needs a name of its own.",
        ),
        make=_workload,
    ),
)


def load_workload(path: str | Path) -> Workload:
    """Read a workload file (YAML or JSON)."""
    return parse_workload(read_document(path))


def parse_workload(document: Any) -> Workload:
    """A workload from plain mappings and lists, as YAML and JSON give them."""
    return WORKLOAD.shape.read(document)


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
            curves = (f"{_name(gpu)}: {_law(curve)}" for gpu, curve in epoch.speedups.items())
            yield f"      - {{work_s: {_num(epoch.work)}, speedup: {{{', '.join(curves)}}}}}"


def _law(curve: Speedup) -> str:
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
