"""Settings: the parts of the world that a simulation switches on; the report repeats them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boa.policy.registry import ROUND_S, Learning
from boa.units import GpuName, Seconds


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
    """class: jobs of a class share what they learn; job: each learns alone; perfect: the truth."""
    noise: float = 0.0
    """With perfect knowledge: standard deviation of its logarithmic error."""
    retune: bool = False
    """Batch sizes are chosen again at every round, as by jobs that learn alone."""
    seed: int = 0
    cluster: Mapping[GpuName, int] | None = None
    """Nodes of a fixed cluster; None: nodes come and go."""
    samples: int = 5000
    """Points of the time series until the last arrival, at most."""

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
        }
