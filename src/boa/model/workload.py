"""The solver's input: GPU types that can be rented, and the job classes that arrive."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from boa.model.limits import DEFAULT_MAX_GPUS as DEFAULT_MAX_GPUS
from boa.model.speedup import Speedup
from boa.units import GpuName, PerHour, Seconds, UsdPerHour

Billing: TypeAlias = Literal["gpu", "node"]
"""GPUs that a job pays for: those it uses, or all of the nodes they lie on."""
BILLINGS: tuple[Billing, ...] = get_args(Billing)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuType:
    """A kind of GPU that can be rented (h)."""

    name: GpuName
    price: UsdPerHour = 1.0
    """Per GPU and hour, c^(h). With every price 1 a budget counts GPUs."""
    gpus_per_node: int = 1

    @property
    def node_price(self) -> UsdPerHour:
        """Price of a whole node."""
        return self.price * self.gpus_per_node


def cheapest_node(gpu_types: Iterable[GpuType]) -> UsdPerHour:
    """Price of the cheapest node; 0 where there are none."""
    return min((kind.node_price for kind in gpu_types), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """A stretch of training with one speedup curve per GPU type (class i, epoch j)."""

    work: Seconds
    """Mean inherent work E[X_ij]: seconds at speed 1."""
    speedups: Mapping[GpuName, Speedup]
    """s_ij^(h); a type left out cannot run this epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobClass:
    """Jobs that share model and data (i)."""

    name: str
    arrivals_per_hour: PerHour
    """λ_i, here per hour."""
    epochs: tuple[Epoch, ...]
    weight: float = 1.0
    rescale_s: Seconds = 0.0
    """r_i: mean time of one rescaling; the first start is one."""
    min_gpus: int | Mapping[GpuName, int] = 1
    max_gpus: int | Mapping[GpuName, int] = DEFAULT_MAX_GPUS
    max_jct_s: Seconds | None = None
    """A cap on the mean JCT of the class."""

    def base_on(self, gpu: GpuName, epoch: Epoch) -> int | None:
        """𝒦: the smallest width on which this epoch can run; None if it cannot run there."""
        curve = epoch.speedups.get(gpu)
        return None if curve is None else max(self.min_on(gpu), curve.base)

    def min_on(self, gpu: GpuName) -> int:
        return self.min_gpus if isinstance(self.min_gpus, int) else self.min_gpus.get(gpu, 1)

    def max_on(self, gpu: GpuName) -> int:
        if isinstance(self.max_gpus, int):
            return self.max_gpus
        return self.max_gpus.get(gpu, DEFAULT_MAX_GPUS)


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Workload:
    """All GPU types and job classes: the whole input of a plan."""

    gpu_types: Mapping[GpuName, GpuType]
    classes: tuple[JobClass, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Where the figures come from: kept as comments at the head of the file."""
    hopes: Mapping[str, JobClass] = field(default_factory=dict, compare=False)
    """Classes, by name, as trials of widths that were never run may find them: no slower than
    expected. Classes that all is known of are left out."""

    @property
    def arrivals_per_hour(self) -> PerHour:
        """λ = Σ λ_i."""
        return sum(c.arrivals_per_hour for c in self.classes)

    @property
    def weighted_arrivals_per_hour(self) -> PerHour:
        """Σ w_i λ_i, what the objective is normalised by."""
        return sum(c.weight * c.arrivals_per_hour for c in self.classes)
