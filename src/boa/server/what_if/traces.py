"""Traces that simulations run on: made up here, sent along, or what the service has seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from boa.api.what_if import TraceChoice
from boa.catalogue.arrivals import spec_of_mix, synthetic_trace
from boa.catalogue.figures import known_figures
from boa.catalogue.offers import OFFERS
from boa.catalogue.traces import parse_trace
from boa.errors import InputError
from boa.model.trace import Trace
from boa.model.workload import GpuType
from boa.sim.run import World, world_of
from boa.units import GpuName, PerHour, UsdPerHour

MOST_JOBS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A trace that is drawn anew whenever it is asked for, always the same."""

    name: str
    about: str
    jobs: int
    arrivals_per_hour: PerHour
    cv2: float
    seed: int
    sizes: tuple[int, ...]
    """Average numbers of its first GPU type that are sensible to start with."""


GENERATED = (
    Generated(
        name="day",
        about="A day of the paper's mix: 160 jobs that come in bursts. Speeds are the catalogue's.",
        jobs=160,
        arrivals_per_hour=7.0,
        cv2=2.65,
        seed=1,
        sizes=(55, 65, 80, 110),
    ),
    Generated(
        name="steady-day",
        about="A day of the paper's mix: 160 jobs that come evenly. Speeds are the catalogue's.",
        jobs=160,
        arrivals_per_hour=7.0,
        cv2=1.0,
        seed=1,
        sizes=(55, 65, 80, 110),
    ),
)
BY_NAME = {generated.name: generated for generated in GENERATED}


@cache
def generated_trace(name: str) -> Trace:
    known = BY_NAME[name]
    spec = spec_of_mix(jobs=known.jobs, arrivals_per_hour=known.arrivals_per_hour, cv2=known.cv2)
    return synthetic_trace(spec, known.seed)


def generated_choice(known: Generated, prices: Mapping[GpuName, GpuType]) -> TraceChoice:
    trace = generated_trace(known.name)
    types = known_figures("sia").gpu_names
    price = price_of(types[0], prices)
    return {
        "name": known.name,
        "about": known.about,
        "jobs": len(trace.jobs),
        "hours": hours_of(trace),
        "gpu_types": list(types),
        "budgets": [float(round(size * price)) for size in known.sizes],
    }


def hours_of(trace: Trace) -> float:
    return (trace.jobs[-1].arrival_s - trace.jobs[0].arrival_s) / 3600


def uploaded_trace(name: str, text: str) -> Trace:
    """A trace from CSV text as `boa simulate` reads it. Its length is looked at before anything
    else."""
    jobs = sum(1 for line in text.splitlines() if line.strip()) - 1
    if jobs > MOST_JOBS:
        raise InputError(name, f"{jobs:,} lines", f"a trace of at most {MOST_JOBS:,} jobs")
    return parse_trace(name, text)


def catalogue_world(
    name: str, trace: Trace, gpus: Sequence[GpuName] | None, prices: Mapping[GpuName, GpuType]
) -> World:
    """The trace with the catalogue's speeds, at what the service pays, or else list prices."""
    try:
        world = world_of(trace, None, gpus)
    except InputError as wrong:
        if wrong.field == "gpus":
            given = list(gpus or ())
            raise InputError("gpu_types", given, wrong.expected) from None
        raise wrong.inside(name) from None
    if trace.span_s <= 0:
        expected = "arrivals that spread over time"
        raise InputError(name, f"{len(trace.jobs):,} jobs, all at time 0", expected)
    types = {
        gpu: replace(kind, price=price_of(gpu, prices)) for gpu, kind in world.gpu_types.items()
    }
    return replace(world, gpu_types=types)


def price_of(gpu: GpuName, prices: Mapping[GpuName, GpuType]) -> UsdPerHour:
    """The service's, the list price, or 1 where neither is known: spend then counts GPUs."""
    if gpu in prices:
        return prices[gpu].price
    offer = OFFERS.get(gpu)
    return 1.0 if offer is None or offer.price is None else offer.price
