"""Settings: the parts of the world that a simulation switches on; the report repeats them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boa.model.budgets import Budget
from boa.model.calendar import Calendar
from boa.model.workload import Billing
from boa.policy.registry import ROUND_S, Learning
from boa.units import GpuName, Seconds, UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    interval_s: Seconds | None = ROUND_S
    """Every so often the policy sees all jobs. None: it acts at once, job by job."""
    provision_s: Seconds = 0.0
    """Seconds from renting a node until a job can start on it."""
    reclaim_s: Seconds = 0.0
    """Seconds from giving a node back until the cloud stops charging for it; reported apart."""
    cold_s: Seconds = 0.0
    """Added to a start on a node that no job has run on."""
    interference: float = 0.0
    """Share of its speed that a job across nodes loses beside another such job on a node."""
    learning: Learning = "class"
    """class: jobs of a class share what they learn; job: each learns alone; perfect: the truth;
    service: the profiler of the live service learns from what jobs report."""
    noise: float = 0.0
    """With perfect knowledge: standard deviation of its logarithmic error."""
    retune: bool = False
    """Batch sizes are chosen again at every round, as by jobs that learn alone."""
    seed: int = 0
    cluster: Mapping[GpuName, int] | None = None
    """Nodes of a fixed cluster; None: nodes come and go."""
    max_spend: UsdPerHour | None = None
    """Never rent more than this costs at any moment."""
    max_nodes: Mapping[GpuName, int] = field(default_factory=dict)
    """At most so many nodes of a type; types left out have no limit."""
    keep_warm_s: Seconds = 0.0
    """How long an empty node is kept before it is given back."""
    pacing_h: float | None = None
    """Over how many hours an overspent or underspent dollar is made good; None: never."""
    billing: Billing = "gpu"
    """Count that the budget is held against: GPUs that jobs hold, or whole nodes from request to
    gone."""
    sharing: Budget | None = None
    """Those who share the budget, by the classes that they pay for; None: it is one pot."""
    calendar: Calendar | None = None
    """Hours of the week in which the budget is another; None: it is the same at all hours."""
    samples: int = 5000
    """Points of the time series until the last arrival, at most."""

    @property
    def scheduled(self) -> bool:
        """Whether it takes the service's own scheduler: its limits, its pacing, its profiler."""
        limited = self.max_spend is not None or bool(self.max_nodes) or self.keep_warm_s > 0
        paced = self.pacing_h is not None or self.learning == "service"
        shared = self.sharing is not None or self.calendar is not None
        return limited or paced or shared

    def document(self) -> dict[str, Any]:
        return {
            "interval_s": self.interval_s,
            "provision_s": self.provision_s,
            "reclaim_s": self.reclaim_s,
            "cold_s": self.cold_s,
            "interference": self.interference,
            "learning": self.learning,
            "noise": self.noise,
            "seed": self.seed,
            "nodes": None if self.cluster is None else dict(self.cluster),
            "max_spend_per_hour": self.max_spend,
            "max_nodes": dict(self.max_nodes) or None,
            "keep_warm_s": self.keep_warm_s,
            "pacing_h": self.pacing_h,
            "billing": self.billing,
        }
