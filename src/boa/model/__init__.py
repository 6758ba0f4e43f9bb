"""Frozen values: what the rest of BOA speaks about.

Names are imported when they are first used: a job and its states need no NumPy, and who submits
one should not wait for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boa.model.plan import ClassPlan, Plan, Route, Variant
    from boa.model.speedup import Amdahl, Power, Speedup, Table
    from boa.model.workload import Epoch, GpuType, JobClass, Workload

_HOMES = {
    "boa.model.plan": ("ClassPlan", "Plan", "Route", "Variant"),
    "boa.model.speedup": ("Amdahl", "Power", "Speedup", "Table"),
    "boa.model.workload": ("Epoch", "GpuType", "JobClass", "Workload"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'boa.model' has no attribute {name!r}")
    return getattr(import_module(home), name)
