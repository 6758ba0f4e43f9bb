"""The head of an estimated workload file: where it comes from and how to make it again."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from boa.catalogue.calibration import Slowdown, default_slowdown
from boa.catalogue.figures import Figures
from boa.catalogue.offers import OFFERS, PRICE_SOURCE
from boa.catalogue.reading import Reading
from boa.model.trace import Trace
from boa.model.workload import Workload
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, UsdPerHour


def notes_for(
    arrived: Trace,
    learned: Figures,
    workload: Workload,
    *,
    trace: Path,
    profiles: Path | None,
    slowdown: Slowdown | None,
    rescale: Seconds | None,
    prices: Mapping[GpuName, UsdPerHour] | None,
    reading: Reading,
) -> tuple[str, ...]:
    """Comment lines. Paths are relative, so they do not tell where the user keeps the files."""
    hours = arrived.span_s / SECONDS_PER_HOUR
    command = " ".join(
        [_command(workload, trace, profiles, slowdown, rescale, prices), *reading.flags()]
    )
    return (
        f"Estimated from {len(arrived.jobs)} jobs that arrived over {hours:.4g} h.",
        *_drawn(arrived),
        f"Figures: {learned.source}" + (", as in BOA's catalogue." if profiles is None else "."),
        f"Made by: {command}",
        *_method(learned, slowdown),
        *_prices(workload, prices),
    )


def _command(
    workload: Workload,
    trace: Path,
    profiles: Path | None,
    slowdown: Slowdown | None,
    rescale: Seconds | None,
    prices: Mapping[GpuName, UsdPerHour] | None,
) -> str:
    parts = ["boa workload from-trace", _relative(trace, profiles)]
    if profiles is not None:
        parts.append(f"--profiles {_relative(profiles, trace)}")
    parts.append(f"--gpus {','.join(workload.gpu_types)}")
    if slowdown is not None:
        parts.append(f"--slowdown {slowdown}")
    if rescale is not None:
        parts.append(f"--rescale-s {rescale:g}")
    if prices:
        parts.append("--prices " + ",".join(f"{gpu}={price:g}" for gpu, price in prices.items()))
    return " ".join(parts)


def _drawn(arrived: Trace) -> Iterator[str]:
    if arrived.drawn is None:
        return
    how = f"{arrived.drawn.recipe.capitalize()}'s recipe, seed {arrived.drawn.seed}"
    yield f"The log does not tell their models: drawn by the GPU-hours they took ({how})."


def _relative(path: Path, other: Path | None) -> str:
    """The path from above the folder that it shares with the other: the same for every copy."""
    if other is None:
        return path.name
    shared = Path(os.path.commonpath([path.resolve(), other.resolve()]))
    if shared == shared.parent:  # nothing in common but the root
        return path.resolve().as_posix()
    return path.resolve().relative_to(shared.parent).as_posix()


def _method(learned: Figures, slowdown: Slowdown | None) -> Iterator[str]:
    if learned.system == "rubick":
        yield "Progress is raw throughput: the fastest measured plan of every width. Plans that"
        yield "offload to host memory do not count (up to 50 times slower): min_gpus is the least"
        yield "width that runs without. Only the listed widths were measured; between them the"
        yield "speedup is taken to be linear. Models that fit on one GPU stay inside one node."
        return
    yield "Speedup: the best batch size for every width, on the least nodes."
    if (slowdown or default_slowdown(learned.system)) == "sia":
        yield "Rates are divided by Sia's calibration: cifar10 1.8, ncf 1.5, others 1.2."


def _prices(workload: Workload, prices: Mapping[GpuName, UsdPerHour] | None) -> Iterator[str]:
    given = prices or {}
    if len(workload.gpu_types) == 1 and not given:
        yield "Price 1 per GPU-hour: a budget counts GPUs."
        return
    listed = [g for g in workload.gpu_types if g not in given and g in OFFERS and OFFERS[g].price]
    if listed:
        yield f"Prices of {', '.join(listed)}: {PRICE_SOURCE}."
    unknown = [g for g in workload.gpu_types if g not in given and g not in listed]
    if unknown:
        yield f"No list price is known for {', '.join(unknown)}: 1 stands in."
