"""Numbers behind a width picture: one panel per class, its lines and their words."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from boa.amounts import duration, percent
from boa.model.plan import ClassPlan
from boa.model.workload import JobClass, Workload
from boa.plots.words import Money
from boa.solver.objective import ClassOutcome
from boa.solver.solution import Solution
from boa.units import GpuName


@dataclass(frozen=True, slots=True)
class Stretch:
    """From one epoch (0 is the beginning) to another on so many GPUs of one type."""

    first: int
    end: int
    gpu: GpuName
    width: float


@dataclass(frozen=True, slots=True)
class VariantLine:
    """A way through training that a share of the class's jobs takes."""

    share: float
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    name: str
    said: str
    epochs: int
    lines: tuple[VariantLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """The classes, those that spend most first."""

    title: str
    gpus: tuple[GpuName, ...]
    """All GPU types of the workload: their order gives the colours."""
    panels: tuple[Panel, ...]

    @property
    def used(self) -> tuple[GpuName, ...]:
        """The GPU types that the plan uses."""
        seen = {s.gpu for panel in self.panels for line in panel.lines for s in line.stretches}
        return tuple(gpu for gpu in self.gpus if gpu in seen)


def panels_of(workload: Workload, solution: Solution) -> Panels:
    money = Money.of(workload)
    rows = zip(workload.classes, solution.plan.classes, solution.outcome.classes, strict=True)
    ordered = sorted(rows, key=lambda row: -row[2].spend)
    return Panels(
        title=f"Plan for {money.rate(solution.budget)}: "
        f"average JCT {duration(solution.average_jct)}",
        gpus=tuple(workload.gpu_types),
        panels=tuple(
            Panel(
                name=job_class.name,
                said=_said(workload, job_class, got, money),
                epochs=len(job_class.epochs),
                lines=tuple(_lines(plan)),
            )
            for job_class, plan, got in ordered
        ),
    )


def _said(workload: Workload, job_class: JobClass, got: ClassOutcome, money: Money) -> str:
    share = percent(job_class.arrivals_per_hour / workload.arrivals_per_hour)
    return f"{share} of jobs · JCT {duration(got.jct)} · {money.rate(got.spend)}"


def _lines(plan: ClassPlan) -> Iterator[VariantLine]:
    for variant in plan.variants:
        yield VariantLine(variant.share, tuple(Stretch(*part) for part in variant.stretches()))
    yield from _route_lines(plan)


def _route_lines(plan: ClassPlan) -> Iterator[VariantLine]:
    """Runs of epochs that share a route: a line each, for jobs draw anew in every epoch."""
    ways = sorted({(r.gpu_type, r.width) for routes in plan.routes for r in routes})
    for gpu, width in ways:
        shares = [
            sum(r.share for r in routes if (r.gpu_type, r.width) == (gpu, width))
            for routes in plan.routes
        ]
        start = 0
        for share, same in groupby(shares):
            end = start + sum(1 for _ in same)
            if share > 0:
                yield VariantLine(share, (Stretch(start, end, gpu, width),))
            start = end
