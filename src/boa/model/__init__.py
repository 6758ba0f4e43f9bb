"""Frozen values: what the rest of BOA speaks about."""

from boa.model.plan import ClassPlan, Plan, Route, Variant
from boa.model.speedup import Amdahl, Power, Speedup, Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload

__all__ = [
    "Amdahl",
    "ClassPlan",
    "Epoch",
    "GpuType",
    "JobClass",
    "Plan",
    "Power",
    "Route",
    "Speedup",
    "Table",
    "Variant",
    "Workload",
]
