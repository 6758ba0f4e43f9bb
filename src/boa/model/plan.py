"""A plan: for every class, which share of its jobs runs on which GPUs in every epoch."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from boa.units import GpuName


@dataclass(frozen=True, slots=True)
class Variant:
    """One way through training; a job picks its variant at arrival and keeps it."""

    share: float
    gpu_types: tuple[GpuName, ...]
    """One per epoch; all the same unless jobs may migrate."""
    widths: tuple[float, ...]
    """One per epoch, k_ij. Whole numbers, except in the fractional optimum of the theorems."""

    def stretches(self) -> Iterator[tuple[int, int, GpuName, float]]:
        """(first epoch, one past the last, GPU type, width) between two rescalings."""
        start = 0
        for (gpu, width), run in groupby(zip(self.gpu_types, self.widths, strict=True)):
            end = start + sum(1 for _ in run)
            yield start, end, gpu, width
            start = end


@dataclass(frozen=True, slots=True)
class Route:
    """Under per-epoch routing: a share of the jobs in one epoch (p_ij^(h), k_ij^(h))."""

    share: float
    gpu_type: GpuName
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPlan:
    """The plan of one class: variants chosen at arrival, or routes drawn anew in every epoch."""

    name: str
    variants: tuple[Variant, ...] = ()
    routes: tuple[tuple[Route, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    classes: tuple[ClassPlan, ...]

    def __getitem__(self, name: str) -> ClassPlan:
        return self.by_class()[name]

    def by_class(self) -> dict[str, ClassPlan]:
        return {c.name: c for c in self.classes}
