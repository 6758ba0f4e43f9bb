"""Results of a simulation: the figures of the contract, and the series behind the plots."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boa.model.calendar_prices import prices_by
from boa.model.prices import CONSTANT
from boa.model.priorities import Priority
from boa.model.workload import GpuType
from boa.sim.jobs import ActiveJob
from boa.sim.rental import Rental, price_of
from boa.sim.settings import Settings
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, UsdPerHour

ROUNDING_S: Seconds = 1e-6


@dataclass(slots=True)
class Tally:
    """Sums over ended jobs, in memory that grows by one number per job: its JCT."""

    jcts: "array[float]" = field(default_factory=lambda: array("d"))
    per_class: dict[str, list[float]] = field(default_factory=dict)
    """class -> [jobs, sum of JCTs]"""
    gpu_seconds: dict[GpuName, float] = field(default_factory=dict)
    class_usd: dict[str, float] = field(default_factory=dict)
    """Dollars of what each class's jobs held, where the service's own scheduler was turned."""
    queueing_s: float = 0.0
    paused_s: float = 0.0
    rescalings: int = 0
    """Changes of GPUs after the first starts."""
    last_end: Seconds = 0.0
    background_gpu_seconds: dict[GpuName, float] = field(default_factory=dict)
    """Held by jobs in the background, which are in no other figure but `priorities`."""
    priorities: dict[Priority, list[float]] = field(default_factory=dict)
    """priority -> [jobs, sum of JCTs]"""
    named: dict[str, Seconds] | None = None
    """JCT by job, if they are to be kept."""

    def ended(self, job: ActiveJob) -> None:
        jct = job.clock - job.arrival
        counted = self.priorities.setdefault(job.asked.priority, [0.0, 0.0])
        counted[0] += 1
        counted[1] += jct
        if job.asked.priority == "background":
            return
        self.jcts.append(jct)
        if self.named is not None:
            self.named[job.id] = jct
        sums = self.per_class.setdefault(job.truth.name, [0.0, 0.0])
        sums[0] += 1
        sums[1] += jct
        waited = jct - job.held_s
        self.queueing_s += waited if waited > ROUNDING_S else 0.0
        self.paused_s += job.paused_s
        self.rescalings += job.rescalings
        self.last_end = max(self.last_end, job.clock)

    def held(self, gpu: GpuName, gpu_seconds: float, *, background: bool = False) -> None:
        sums = self.background_gpu_seconds if background else self.gpu_seconds
        sums[gpu] = sums.get(gpu, 0.0) + gpu_seconds

    def paid(self, stream: str, usd: float) -> None:
        self.class_usd[stream] = self.class_usd.get(stream, 0.0) + usd


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """The cluster at one moment."""

    time: Seconds
    jobs: int
    waiting: int
    busy_gpus: int
    rented_gpus: int
    efficiency: float | None
    """Sum of normalised speedups over GPUs rented; None where none is."""


@dataclass(frozen=True, kw_only=True)
class SimulationReport:
    policy: str
    settings: Settings
    gpu_types: Mapping[GpuName, GpuType]
    jobs: int
    span_s: Seconds
    tally: Tally
    rental: Rental
    series: list[ClusterSample]
    wall_s: Seconds
    notes: Mapping[str, Any]
    """Facts that the policy wants told: its plan's promise, its target."""

    @property
    def average_jct(self) -> Seconds:
        return float(np.mean(self.tally.jcts)) if self.tally.jcts else 0.0

    def percentile(self, share: float) -> Seconds:
        return float(np.percentile(self.tally.jcts, share)) if self.tally.jcts else 0.0

    @property
    def gpu_hours(self) -> float:
        return sum(self.tally.gpu_seconds.values()) / SECONDS_PER_HOUR

    @property
    def average_gpus(self) -> float:
        return self.gpu_hours / self._hours

    @property
    def prices_change(self) -> bool:
        """Whether GPUs cost more at some hours than at others."""
        return prices_by(self.settings.calendar) is not CONSTANT

    @property
    def spend_per_hour(self) -> float:
        if self.prices_change:
            return sum(self.tally.class_usd.values()) / self._hours
        return self._per_hour(self.tally.gpu_seconds)

    @property
    def _rented(self) -> UsdPerHour:
        return self._node_usd("rented", self.rental.gpu_seconds)

    @property
    def _reclaiming(self) -> UsdPerHour:
        return self._node_usd("reclaiming", self.rental.reclaiming_gpu_seconds)

    @property
    def _booting(self) -> UsdPerHour:
        return self._node_usd("booting", self.rental.booting_gpu_seconds)

    @property
    def bill_per_hour(self) -> UsdPerHour:
        """Charged for whole nodes, from request to gone."""
        return self._rented + self._reclaiming

    @property
    def idle_per_hour(self) -> UsdPerHour:
        """GPUs of nodes that were ready, and that no job held but in the background: a part of the
        bill."""
        held = self.spend_per_hour - self._per_hour(self.rental.awaited_gpu_seconds)
        return max(self._rented - self._booting - held, 0.0)

    def _node_usd(self, part: str, gpu_seconds: Mapping[GpuName, float]) -> UsdPerHour:
        if self.prices_change:
            return self.rental.usd.get(part, 0.0) / self._hours
        return self._per_hour(gpu_seconds)

    @property
    def background_per_hour(self) -> UsdPerHour:
        """Dollars of `idle_per_hour` that jobs in the background made use of."""
        return self._per_hour(self.tally.background_gpu_seconds)

    def _per_hour(self, gpu_seconds: Mapping[GpuName, float]) -> UsdPerHour:
        return price_of(gpu_seconds, self.gpu_types) / self._hours

    @property
    def _hours(self) -> float:
        """The arrival span; a trace whose jobs all come at once is spread over its makespan."""
        return (self.span_s or self.tally.last_end or 1.0) / SECONDS_PER_HOUR

    @property
    def average_efficiency(self) -> float | None:
        known = [s.efficiency for s in self.series if s.efficiency is not None]
        return float(np.mean(known)) if known else None

    def _priorities(self) -> dict[str, Any]:
        """Only of traces that have any: all other figures leave the background out."""
        found = self.tally.priorities
        if found.keys() <= {"normal"}:
            return {}
        rows = [
            {"priority": name, "jobs": int(jobs), "average_jct_s": total / jobs}
            for name, (jobs, total) in sorted(found.items())
        ]
        return {"priorities": rows, "background_spend_per_hour": self.background_per_hour}

    def document(self) -> dict[str, Any]:
        """One JSON object: the contract's keys first."""
        ended = max(len(self.tally.jcts), 1)
        rented = self.rental.gpu_seconds
        reclaiming = self.rental.reclaiming_gpu_seconds
        return {
            "policy": self.policy,
            "jobs": self.jobs,
            "completed": len(self.tally.jcts),
            "average_jct_s": self.average_jct,
            "p50_jct_s": self.percentile(50),
            "p95_jct_s": self.percentile(95),
            "p99_jct_s": self.percentile(99),
            "makespan_s": self.tally.last_end,
            "gpu_hours": self.gpu_hours,
            "average_gpus": self.average_gpus,
            "spend_per_hour": self.spend_per_hour,
            "rented_gpus": sum(rented.values()) / SECONDS_PER_HOUR / self._hours,
            "rented_spend_per_hour": self._rented,
            "peak_rented_spend_per_hour": self.rental.peak,
            "reclaiming_gpus": sum(reclaiming.values()) / SECONDS_PER_HOUR / self._hours,
            "reclaiming_spend_per_hour": self._reclaiming,
            "booting_spend_per_hour": self._booting,
            "idle_spend_per_hour": self.idle_per_hour,
            "bill_per_hour": self.bill_per_hour,
            "rescalings_per_job": self.tally.rescalings / ended,
            "rescaling_s_per_job": self.tally.paused_s / ended,
            "average_efficiency": self.average_efficiency,
            "average_queueing_s": self.tally.queueing_s / ended,
            "wall_s": self.wall_s,
            "span_s": self.span_s,
            "classes": [
                {"name": name, "jobs": int(jobs), "average_jct_s": total / jobs}
                for name, (jobs, total) in sorted(self.tally.per_class.items())
            ],
            "gpu_hours_by_type": {
                gpu: seconds / SECONDS_PER_HOUR
                for gpu, seconds in sorted(self.tally.gpu_seconds.items())
            },
            **self._priorities(),
            "physics": self.settings.document(),
            **self.notes,
        }
