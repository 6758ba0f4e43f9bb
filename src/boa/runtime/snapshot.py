"""The control loop as the server sees it: what it shows, and what it can be asked."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from boa.api.classes import ClassDocument
from boa.formats.sweep import SweepSpec
from boa.model.access import NOBODY, AuditEntry, Caller, TokenRecord
from boa.model.cluster import JobId, NodeId, NodeReason
from boa.model.job import JobRecord, JobSpec
from boa.model.notices import MonthSpent, Notice
from boa.model.placements import FailedPlacement
from boa.model.profile import ClassProfile
from boa.model.records import Hold, NodeRecord, Report
from boa.model.sweep import Sweep
from boa.model.workload import GpuType
from boa.runtime.estimating import JobEstimate
from boa.runtime.vault import Secret, Vault
from boa.scheduler.money.money_state import MoneyState
from boa.scheduler.notices import Notices
from boa.scheduler.plan.plan_in_force import PlanState
from boa.units import GpuName, Seconds, Usd, UsdPerHour


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
    weighed: Mapping[NodeId, NodeReason] = field(default_factory=dict)
    """Worth of nodes when the policy last looked at them, where it weighs them."""
    draining: frozenset[NodeId] = frozenset()
    """Nodes that go as soon as they are empty."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """steps, step_s (the last), slowest_step_s, late_steps, submitted, succeeded, failed,
    stopped, rescalings, restarts, jct_s (sum over succeeded), queueing_s (sum until first start),
    store_trouble, cloud_trouble, plans, rescaling_stop, rescaling_stop_s (how many told of it, and
    their sum; likewise the other parts), …: of this process's life."""

    gpu_types: Mapping[GpuName, GpuType] = field(default_factory=dict)
    """All that can be rented."""

    tokens: Mapping[str, TokenRecord] = field(default_factory=dict)
    """By name; the same object as long as none of them changes."""

    sweeps: Mapping[str, Sweep] = field(default_factory=dict)
    """All that there ever were, by id."""

    @property
    def money(self) -> MoneyState:
        return self.charged()


class Control(Protocol):
    """Thread-safe. Futures end when the change has been stored, or raise a BoaError."""

    @property
    def snapshot(self) -> Snapshot: ...

    def submit(
        self, spec: JobSpec, *, owner: str = "", team: str = "", by: Caller | None = None
    ) -> "Future[JobRecord]":
        """`by`: who is written into the audit log, here and below; None: no line."""
        ...

    def submit_many(
        self,
        specs: Sequence[JobSpec],
        *,
        owner: str = "",
        team: str = "",
        by: Caller | None = None,
    ) -> "Future[list[JobRecord]]":
        """All of them in one transaction, or none; in the order given."""
        ...

    @property
    def vault(self) -> Vault:
        """The secrets of jobs, as they are stored."""
        ...

    def set_secret(self, name: str, value: str, *, by: Caller | None = None) -> "Future[Secret]":
        """New, or in place of another value: runs that begin from now on get it."""
        ...

    def remove_secret(
        self, name: str, *, force: bool = False, by: Caller | None = None
    ) -> "Future[Secret]":
        """Raises NoSuchSecret. `force`: though jobs that have not ended use it."""
        ...

    def stop(self, job: JobId, *, by: Caller | None = None) -> "Future[JobRecord]":
        """Stop a job; one that has ended stays as it is. Raises NoSuchJob of one that never was."""
        ...

    def pause(
        self, job: JobId, *, force: bool = False, by: Caller | None = None
    ) -> "Future[JobRecord]":
        """Have it give its GPUs up until it is resumed. Of one that is paused, nothing."""
        ...

    def resume(self, job: JobId, *, by: Caller | None = None) -> "Future[JobRecord]": ...

    def change(
        self, job: JobId, changes: Any, *, force: bool = False, by: Caller | None = None
    ) -> "Future[JobRecord]":
        """Other limits and weights, as a job file has them; null takes a limit away. `force`:
        make it a background job although a stop would lose its work."""
        ...

    def resubmit(
        self,
        job: JobId,
        spec: JobSpec,
        *,
        continued: bool = False,
        owner: str = "",
        team: str = "",
        by: Caller | None = None,
    ) -> "Future[JobRecord]":
        """`continued`: from the checkpoints of the first, which must have ended."""
        ...

    def submit_sweep(
        self, spec: SweepSpec, *, owner: str = "", team: str = "", by: Caller | None = None
    ) -> "Future[Sweep]":
        """All of its jobs in one transaction, or none."""
        ...

    def stop_sweep(self, name: str, *, by: Caller | None = None) -> "Future[Sweep]":
        """Stop all of its jobs. Raises NoSuchSweep."""
        ...

    def set_budget(
        self,
        budget: UsdPerHour | None,
        max_spend: UsdPerHour | None = None,
        *,
        by: Caller | None = None,
    ) -> "Future[MoneyState]":
        """None: as it is; `max_spend` infinity: none."""
        ...

    def add_token(
        self, token: TokenRecord, *, by: Caller | None = None
    ) -> "Future[TokenRecord]": ...

    def revoke_token(self, name: str, *, by: Caller | None = None) -> "Future[TokenRecord]":
        """Raises NoSuchToken."""
        ...

    def note(self, lines: Sequence[AuditEntry]) -> "Future[None]":
        """Lines for the audit log, of what the loop itself does not change."""
        ...

    @property
    def notices(self) -> Notices:
        """Whom notices go to."""
        ...

    def settle_notices(self, notices: Sequence[Notice]) -> "Future[None]":
        """Write down how far these have come."""
        ...

    def foretell_month(self, forecast: Usd) -> "Future[None]":
        """This much the month costs at its end, if it goes on so: told to who wants to know."""
        ...

    def tell_spent(self, spent: Sequence[MonthSpent]) -> "Future[None]":
        """So much of the month's budget is gone: told at the percentages that targets name."""
        ...

    def retry_class(
        self,
        job_class: str,
        gpu: GpuName | None = None,
        width: int | None = None,
        *,
        by: Caller | None = None,
    ) -> "Future[list[FailedPlacement]]":
        """Forget where jobs of a class failed, on this type and width or any; gives what was."""
        ...

    def report(self, report: Report) -> None:
        """Never blocks; of a job or attempt that is not running, nothing."""
        ...

    def class_document(self, job_class: str) -> ClassDocument | None:
        """All that was learned of a class, as `boa show CLASS` prints it; None if unknown."""
        ...

    def classes(self) -> list[str]: ...

    def estimate(self, spec: JobSpec, by: Caller = NOBODY) -> JobEstimate:
        """Time, dollars and widths of a job that is not submitted. Blocks."""
        ...

    def profiles(self) -> Mapping[str, ClassProfile]:
        """Profiles of the classes that something was measured or said of."""
        ...

    def now(self) -> Seconds: ...
