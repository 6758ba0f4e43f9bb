"""Shapes of the estimate of a job before it is submitted."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from boa.api.of_class import OfClass
from boa.model.priorities import Priority


class EstimateRange(TypedDict):
    """Four of five jobs lie between these, by what the last of the class really took."""

    low: float
    high: float


class EstimateStage(TypedDict):
    """Epochs in a row on the same GPUs."""

    first_epoch: int
    """From 0."""
    last_epoch: int
    gpu_type: str
    width: int
    time_s: float
    """The rescaling at its beginning included."""
    cost_usd: float


class EstimateWay(TypedDict):
    """One way through training that the plan has for the class."""

    share: float
    """Part of its jobs that take it."""
    time_s: float
    cost_usd: float
    stages: list[EstimateStage]


class QueueAhead(TypedDict):
    """Jobs that wait for GPUs of the same type, before this one."""

    waiting: int
    gpus: int
    """GPUs that they wait for."""
    jobs: list[str]
    """The first ten of them."""
    wait_s: float | None
    """Seconds until there are GPUs for it, if no job is moved; null: unknown."""
    boot_s: float
    """Seconds of it that a new node takes to get ready."""


class PutOff(TypedDict):
    """Hours that it would wait for, in which money buys more."""

    until: float | None
    """Null: there is no plan yet to tell it by."""
    why: str


class ProbeOffer(TypedDict):
    """A short run that would show what nobody knows of the class."""

    gpu_type: str
    width: int
    seconds: float
    """At most."""
    cost_usd: float
    """At most."""


class PriorityCost(TypedDict):
    """One priority that the job could have, by the plan in force."""

    priority: Priority
    weight: float
    """Times a normal job's that a second of it counts."""
    jct_s: float | None
    """From its start to its end, if its GPUs are there; null: it takes what is paid for and empty,
    whenever that is."""
    cost_usd: float
    """Dollars that are paid for it, and would not be without it."""
    others_s: float
    """Seconds that all others end later by it, together, with the budget as it is."""
    class_others_s: float
    """Seconds of everybody's average JCT that the class costs, if all its jobs were so."""
    class_usd_per_hour: float
    """Dollars per hour that it then takes: so many more, and nobody else would be later."""
    note: NotRequired[str]
    """Why an urgent job takes as long as a normal one, where it does."""


class DisplacedJob(TypedDict):
    """A running job that would give up GPUs for another."""

    job: str
    gpus: int
    """GPUs that it would give up."""
    preempted: bool
    """Whether it would give up all it has, and wait."""
    seconds: float
    """Seconds that its stop costs it: rescaling and lost work."""
    lost_s: float
    """Seconds of work since its last checkpoint, which it would lose."""
    cost_usd: float
    """Dollars that its stop costs."""


class JobEstimate(OfClass):
    """Time, dollars and widths of a job that was not submitted, as a normal one; `priorities` has
    others."""

    basis: Literal["jobs", "profile", "measured"] | None
    """Jobs of the class that succeeded; a profile of it; reports of jobs under way. Null: the
    class is unknown."""
    succeeded: int
    """Jobs of the class that succeeded."""
    time_s: float | None
    """From its start to its end."""
    cost_usd: float | None
    time_range: EstimateRange | None
    """Null where the class is unknown."""
    jct_s: float | None
    """From its submission to its end, by the present queue; null: its wait is unknown."""
    jct_range: EstimateRange | None
    cost_range: EstimateRange | None
    spread_jobs: int
    """Jobs that the ranges are taken from."""
    ways: list[EstimateWay]
    """The widths by epoch, as the plan has them."""
    before: QueueAhead | None
    displaces: list[DisplacedJob]
    """Running jobs that would give up GPUs for it, if it came now."""
    blocked: NotRequired[str]
    """Why no running job would, where it needs that; empty otherwise."""
    put_off: PutOff | None
    """Where it would wait for other hours first; null: it would not."""
    probe: ProbeOffer | None
    """Where nobody knows the class."""
    priorities: list[PriorityCost]
    """From urgent to background; empty where it is not known."""
    plan: int | None
    """Number of the plan that the widths are from; null: it would get its least."""
    words: str
    """All of it in a sentence."""


class EstimateAnswer(TypedDict):
    estimate: JobEstimate
    now: float
