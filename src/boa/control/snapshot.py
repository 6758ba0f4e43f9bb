"""What the control loop shows to others, and what it can be asked: the server's side of it."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from boa.errors import BoaError
from boa.model.cluster import JobId, NodeId
from boa.model.job import JobRecord, JobSpec
from boa.model.live import Hold, NodeRecord, Report
from boa.model.profile import ClassProfile
from boa.model.workload import Workload
from boa.solver.solution import Solution
from boa.units import Seconds, Usd, UsdPerHour


class NoSuchJob(BoaError):
    exit_code = 2

    def __init__(self, job: JobId) -> None:
        self.job = job
        super().__init__(f"job: got {job!r}; expected the id of a job (boa ps --all lists them)")


class NotNow(BoaError):
    """The service could not write it down (database locked, disk full): nothing has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyState:
    budget: UsdPerHour
    max_spend: UsdPerHour | None
    effective: UsdPerHour
    """What is planned with, so that the average comes out at the budget."""
    since: Seconds
    """What averages are over: the first start of the service, or the last change of the budget."""
    spent: Usd
    """Since then, everything included."""
    total: Usd
    """Ever; the three parts add up to it."""
    jobs: Usd
    idle: Usd
    provisioning: Usd
    """From the beginning of the charge until ready, and from release until gone."""
    now_per_hour: UsdPerHour
    """What is rented at this moment costs so much."""
    gain: float = 1.0
    """Dollars on the bill per dollar planned, as measured: nodes are idle and boot."""

    def average(self, now: Seconds) -> UsdPerHour:
        hours = (now - self.since) / 3600
        return self.spent / hours if hours > 0 else 0.0

    def planned_with(self, budget: UsdPerHour) -> UsdPerHour:
        """What plans would be made with if this became the budget now."""
        wanted = budget / self.gain
        return wanted if self.max_spend is None else min(wanted, self.max_spend)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanState:
    """The plan in force."""

    number: int
    at: Seconds
    solution: Solution
    workload: Workload
    wall_s: float
    """How long the solver took, of the wall."""
    too_small: UsdPerHour | None = None
    """Where the budget cannot keep up: the least that could."""
    units: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Units of progress of every epoch, by class, as they were known when it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state after a step; never changes. Active jobs and nodes only: the rest is stored."""

    now: Seconds
    jobs: Mapping[JobId, JobRecord]
    nodes: Mapping[NodeId, NodeRecord]
    holds: Mapping[tuple[JobId, NodeId, Seconds], Hold]
    """Open ones."""
    charged: Callable[[], MoneyState]
    """Added up when asked for: every node and hold counts, and most steps nobody looks."""
    plan: PlanState | None
    last_event: int
    """Number of the newest stored event."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """steps, step_s (the last), slowest_step_s, late_steps, submitted, succeeded, failed,
    stopped, rescalings, restarts, jct_s (sum over succeeded), queueing_s (sum until first start),
    store_trouble, cloud_trouble, plans, rescaling_stop, rescaling_stop_s (how many told of it, and
    their sum; likewise the other parts), …: of this process's life."""

    @property
    def money(self) -> MoneyState:
        return self.charged()


class Control(Protocol):
    """Thread-safe. Futures end when the change has been stored, or raise a BoaError."""

    @property
    def snapshot(self) -> Snapshot: ...

    def submit(self, spec: JobSpec) -> "Future[JobRecord]": ...

    def stop(self, job: JobId) -> "Future[JobRecord]":
        """Of a job that has ended, nothing; NoSuchJob of one that never was."""
        ...

    def set_budget(
        self, budget: UsdPerHour | None, max_spend: UsdPerHour | None = None
    ) -> "Future[MoneyState]":
        """None: as it is; `max_spend` infinity: none."""
        ...

    def report(self, report: Report) -> None:
        """Never blocks; of a job or attempt that is not running, nothing."""
        ...

    def class_document(self, job_class: str) -> Mapping[str, Any] | None:
        """What was learned of a class, as `boa show CLASS` prints it; None if unknown."""
        ...

    def classes(self) -> list[str]: ...

    def profiles(self) -> Mapping[str, ClassProfile]:
        """What is believed of the classes that something was measured or said of."""
        ...

    def now(self) -> Seconds: ...
