"""A job as the service keeps it: frozen values, beside what its user described."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from boa.model.cluster import Allocation, JobId, NodeId, Share
from boa.model.events import StopCode as StopCode
from boa.model.job_spec import ENDED as ENDED
from boa.model.job_spec import After as After
from boa.model.job_spec import GpuLimits as GpuLimits
from boa.model.job_spec import JobSpec as JobSpec
from boa.model.job_spec import Launcher as Launcher
from boa.model.job_spec import SecretUse as SecretUse
from boa.model.job_spec import State as State
from boa.model.placements import FailedPlacement, Placement
from boa.model.streams import stream_of
from boa.units import Seconds, Usd

RunState: TypeAlias = Literal["requested", "running", "stopping"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One stretch of a job on one allocation: what the engine starts and stops."""

    attempt: int
    """1, 2, …: never used twice within a job."""
    allocation: Allocation
    slots: Mapping[NodeId, tuple[int, ...]]
    """Which GPUs of each node, by index."""
    state: RunState = "requested"
    requested_at: Seconds
    decided_at: Seconds
    """Start of the rescaling, as if the job had not waited between its two runs: `requested_at`
    less the seconds that the stop of the run before took."""
    started_at: Seconds | None = None
    """When the engine had its processes up."""
    reported_at: Seconds | None = None
    """Its first report: the rescaling was over by then."""
    rescale: Mapping[str, Seconds] = field(default_factory=dict)
    """Seconds of the rescaling it began with: total, other, and the parts that its job told."""
    stopping_at: Seconds | None = None
    moved: bool = False
    """It began with a rescaling that BOA decided on …"""
    resumed: bool = False
    """… or after a pause, by its user or its sweep: that is no rescaling."""
    done: bool = False
    """Its job's newest report said that its work was finished."""
    preempted: bool = False
    """It was told that it loses all its GPUs."""
    trained_at: Seconds | None = None
    """It still trained then, though it had been asked to stop, by its reports of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """All that the service keeps of a job; replaced as a whole at every change."""

    id: JobId
    spec: JobSpec
    serial: int
    """How many of its class arrived before it."""
    owner: str = ""
    """Who submitted it, by the name of the token; empty where there was none."""
    team: str = ""
    """The owner's, at that moment."""
    payer: str = ""
    """Part of the budget that pays for it because of who submitted it; empty: its class says."""
    state: State = "waiting"
    submitted_at: Seconds
    started_at: Seconds | None = None
    """First start of its first run."""
    ended_at: Seconds | None = None
    epoch: int = 0
    progress: float = 0.0
    """Units done of the current epoch."""
    total: float | None = None
    """Units of the whole job, as its script reports them."""
    loss: float | None = None
    step: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The newest of each that it reported."""
    share: Share | None = None
    """GPUs that the policy wants for it."""
    allocation: Allocation | None = None
    """GPUs it was given: fewer than its share where they are short. Its run may be elsewhere
    yet."""
    run: Run | None = None
    """The run that is really there, until the engine has said that it ended."""
    why: Mapping[str, Any] = field(default_factory=dict)
    """Why it was given that, until its run there begins: what is then told (`decide/reasons`)."""
    moved_at: Seconds | None = None
    """The moment at which the last run was told to stop; set between two runs …"""
    stopped_s: Seconds = 0.0
    """… and the seconds from then until that run had ended, without what it still trained."""
    resumes: bool = False
    """The last run was stopped because its job was held back: the next start is no rescaling."""
    attempts: int = 0
    """Starts so far: the first, rescalings and restarts."""
    rescalings: int = 0
    """Changes of GPUs by decision, after the first start."""
    restarts: int = 0
    """Starts after a failure of its own, a lost node or a lost worker."""
    best_epoch: int = 0
    best_progress: float = 0.0
    """How far it ever was: a job that only does again what it had done has not got further."""
    saves: bool | None = None
    """Whether it saves a checkpoint when it is asked to stop, as it said; None: unknown."""
    starts_over: bool = False
    """A stop has shown that it begins again from zero, whatever it said or wrote."""
    saved_at: Seconds | None = None
    """When its newest complete checkpoint was taken; None: it is not known to have one."""
    preempted_by: JobId = ""
    """Job that its GPUs went to, while it waits to have some again."""
    stops: Mapping[str, tuple[int, Seconds, Usd]] = field(default_factory=dict)
    """By month (UTC, such as 2026-11): times that BOA's decisions took all its GPUs, seconds of
    work that were lost to its decisions, moves and resizes included, and their price."""
    failed_at: tuple[Seconds, ...] = ()
    """Moments of its newest failures: retries back off by how many there were of late."""
    worked: tuple[Placement, ...] = ()
    """Placements at which it made progress, or at least did not fail for a while …"""
    unfit: tuple[FailedPlacement, ...] = ()
    """… and those at which it failed, and is not to be again for a while."""
    code: str = ""
    """Fingerprint of the files that it runs, as they were when it was submitted; empty: unknown."""
    failures: int = 0
    """Ends in a row that count against `retries`: getting further forgives them."""
    losses: int = 0
    """Runs in a row that were lost soon after their start, without getting further."""
    asked: int = 0
    """Ends in a row that asked for another start, likewise."""
    retry_at: Seconds | None = None
    """Not to be started before (back-off)."""
    stop_requested: bool = False
    stop_why: StopCode = "requested"
    """By whom or what, where it was …"""
    stop_detail: str = ""
    """… and more of that, in words."""
    paused: bool = False
    """By its user: it holds nothing until it is resumed …"""
    parked: bool = False
    """… or by its sweep, until it is known whether it goes on."""
    awaits: tuple[After, ...] = ()
    """Others that it starts after and that have not ended yet."""
    waits_until: Seconds | None = None
    """Its start is put off until then, as money buys more from then on; None: it is not."""
    deadline: Seconds | None = None
    """When it is to have ended."""
    urgency: float = 1.0
    """Times its class's weight that a second of it counts now."""
    told: tuple[str, ...] = ()
    """Limits that its user was warned of."""
    amended: Mapping[str, Any] = field(default_factory=dict)
    """Fields of its spec that were changed since it was submitted; `spec` has them."""
    sweep: str = ""
    """The sweep that it is of …"""
    drawn: Mapping[str, str] = field(default_factory=dict)
    """… and its parameters there."""
    ran_s: Seconds = 0.0
    """Seconds of runs that are over."""
    exit_code: int | None = None
    reason: str = ""
    """Why it is in the state it is in, in plain words."""
    said: str = ""
    """Line of its log that tells most of why its last run failed: for who may read the log."""
    cost_usd: Usd = 0.0
    """USD of closed holds; open ones are added when shown."""
    held_gpu_s: float = 0.0
    """GPU-seconds of closed holds."""

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def on_gpus_s(self, now: Seconds) -> Seconds:
        """Return how long it has held GPUs: runs that are over, and its open one until now."""
        return self.ran_s + (0.0 if self.run is None else max(now - self.run.requested_at, 0.0))

    def since_submission_s(self, now: Seconds) -> Seconds:
        """Return its age, which stands still when it ends: then it is its JCT."""
        return max((now if self.ended_at is None else self.ended_at) - self.submitted_at, 0.0)

    @property
    def preemptions(self) -> int:
        """Times that it lost all its GPUs by a decision of BOA's."""
        return sum(times for times, _, _ in self.stops.values())

    @property
    def lost_s(self) -> Seconds:
        """Seconds of its runs that were lost to BOA's decisions."""
        return sum(lost for _, lost, _ in self.stops.values())

    @property
    def lost_usd(self) -> Usd:
        """Price of the GPUs during those seconds."""
        return sum(usd for _, _, usd in self.stops.values())

    @property
    def background(self) -> bool:
        """Whether it lives on GPUs that are paid for and empty, and nobody rents any for it."""
        return self.spec.priority == "background"

    @property
    def held_back(self) -> bool:
        """Whether it is not to have GPUs for now, whatever there are."""
        put_off = self.waits_until is not None
        return self.paused or self.parked or put_off or bool(self.awaits)

    @property
    def total_work(self) -> float | None:
        """Units of the whole job: what its script reports overrules its spec."""
        return self.spec.total_work if self.total is None else self.total

    @property
    def job_class(self) -> str:
        return self.spec.job_class

    @property
    def stream(self) -> str:
        """Its class, as it is planned and paid for."""
        return stream_of(self.spec.job_class, self.payer)

    @property
    def name(self) -> str:
        return self.spec.name or self.spec.job_class
