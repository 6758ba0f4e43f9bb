"""Frozen values: what the rest of BOA speaks about."""

from boa.model.plan import ClassPlan, Plan, Route, Variant
from boa.model.speedup import Amdahl, Power, Speedup, Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.model.workload_file import dump_workload, load_workload, parse_workload

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
    "dump_workload",
    "load_workload",
    "parse_workload",
]
