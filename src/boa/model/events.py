"""Events: kinds of them, the fields that each kind has, and the codes for why something happened.

An event is data. The sentence that people read is made from it in `scheduler/words/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypeAlias, get_args

from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from boa.model.terms import Each
from boa.units import GpuName, Seconds, Usd, UsdPerHour

EventKind: TypeAlias = Literal[
    "submitted",
    "started",
    "rescaled",
    "restarted",
    "preempted",
    "stop",
    "stopped",
    "succeeded",
    "failed",
    "retry",
    "paused",
    "resumed",
    "changed",
    "limit",
    "deadline",
    "node_rented",
    "node_ready",
    "node_released",
    "node_leaving",
    "node_gone",
    "node_lost",
    "orphan",
    "shortage",
    "planned",
    "budget",
    "period",
    "used_up",
    "clock",
    "trouble",
    "other",
]
"""`preempted`: BOA took all of a running job's GPUs. `stop`: a user or a limit of the job's asks
for the end of the job; `stopped`: it has ended that way. `limit`: a limit is near. `orphan`: a node
that no job needs. `other`: a kind of another version."""
KINDS: tuple[EventKind, ...] = get_args(EventKind)

Cause: TypeAlias = Literal[
    "first",
    "epoch",
    "plan",
    "short",
    "room",
    "nodes",
    "again",
    "round",
    "widened",
    "squeezed",
    "moved",
    "returned",
]
"""Why a job starts on its GPUs: its first start; an epoch begins that is planned on other GPUs; a
new plan; fewer GPUs than planned; no longer so; other nodes; after a failure, a lost node or a
pause; a policy that shares GPUs out in rounds; where whole nodes are paid for: more GPUs, fewer
GPUs, another GPU type; the job had none for a while."""
FailureCode: TypeAlias = Literal["exit_code", "processes_lost", "engine"]
"""Why a run failed: a process of it ended so; its processes were lost; the engine could not run it,
and says why."""
PreemptionCode: TypeAlias = Literal["job", "room", "node", "cap", "ended"]
"""Why a running job loses all its GPUs: a job of higher priority takes them; jobs that pay for them
need them, or they are given back; the cloud takes the node; a hard cap on the spend was lowered, or
prices rose under it; the budget has ended."""
LossCode: TypeAlias = Literal["taken_back", "unlisted", "never_came"]
"""Why a node is gone: the cloud said so, no longer lists it, or never did."""
ReleaseCode: TypeAlias = Literal["empty", "unwanted", "leaving", "not_ready"]
"""Why a node is given back: no job had it for long enough; the policy, or a limit, wants it gone;
the cloud takes it anyway; it did not come up."""
ShortageCode: TypeAlias = Literal[
    "no_such_type", "max_nodes", "no_capacity", "spend_cap", "part_cap"
]
"""Why a job has less than planned: the type is not on offer; no more nodes are allowed; the cloud
has no more, or had none; the cap on the spend leaves too little; the cap of the part of the budget
that pays for it does, or that part's money is used up."""
TroubleCode: TypeAlias = Literal[
    "engine", "cloud", "store", "no_plan", "one_process", "exit_code", "not_over", "unit"
]
"""Kind of trouble: engine or cloud do not do as asked; the store has lost something, and was opened
all the same; the solver failed; a job of one process may get several nodes; a job ended badly when
told to stop; processes of a job's run cannot be ended, and it is not started again before they are
gone; `total_work` and what the job itself counts are in different units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Why a job has less than was wanted."""

    gpu_type: GpuName
    width: int
    """GPUs wanted."""
    given: tuple[GpuName, int] | None
    """GPUs that it has instead; None: it waits."""
    why: ShortageCode
    most_nodes: int | None = None
    """Nodes of the type that there can be, for `max_nodes` and `no_capacity`."""
    detail: str = ""
    """Words of the cloud, for `no_capacity`; for `spend_cap` the cap and where it came from; for
    `part_cap` whose it is, and what it leaves."""


# Fields by kind


class OfJob(TypedDict):
    name: str
    """The job's."""


class Submitted(OfJob):
    job_class: str


class Start(OfJob):
    """A job starts on these GPUs."""

    job_class: str
    attempt: int
    gpu_type: str
    width: int
    nodes: NotRequired[list[int]]
    """Nodes that these GPUs are on."""
    epoch: int
    """Counted from 0, as are all."""
    epochs: int
    why: NotRequired[Cause]
    for_epoch: NotRequired[int]
    """The epoch that it was decided for."""
    saves_s: NotRequired[Seconds]
    """Seconds saved compared with staying on the GPUs that it had; negative: it takes longer."""
    extra_usd: NotRequired[Usd]
    """Additional cost; negative: it costs less."""
    left_s: NotRequired[Seconds]
    """Seconds that it still had to go on the GPUs that it had, until the next planned change or its
    end. `saves_s` is never more."""
    left_usd: NotRequired[Usd]
    """Dollars that these seconds would have cost. It never saves more."""
    planned_gpu_type: NotRequired[str]
    """Where it has fewer GPUs than planned."""
    planned_width: NotRequired[int]
    before_gpu_type: NotRequired[str]
    """GPUs of its last run, unless that failed or was lost."""
    before_width: NotRequired[int]
    before_nodes: NotRequired[list[int]]
    """Nodes that they were on."""
    for_job: NotRequired[str]
    """A job that starts on GPUs which this one gives up, for `squeezed`."""
    wait_s: NotRequired[Seconds]
    """Seconds that `for_job` would otherwise have waited for a node; left out: no node boots, and
    none may be rented."""
    pause_s: NotRequired[Seconds]
    """Seconds that the change itself takes."""
    lost_s: NotRequired[Seconds]
    """Seconds of work that the last run did after its last checkpoint, where BOA stopped it: they
    are done again."""


class PreemptedFields(OfJob):
    """A running job loses all its GPUs by a decision of BOA's."""

    why: PreemptionCode
    by_job: NotRequired[str]
    """Job that its GPUs go to, for `job`."""
    gpu_type: str
    """GPUs that it gives up."""
    width: int
    saves: bool
    """It saves a checkpoint when it is asked to stop."""
    lost_s: Seconds
    """Seconds of its run that no checkpoint holds."""


class Ended(OfJob):
    jct_s: Seconds
    """Since its submission."""
    on_gpus_s: NotRequired[Seconds]
    """Seconds that it held GPUs; left out by older versions."""
    cost_usd: Usd
    exit_code: int | None


StopCode: TypeAlias = Literal["requested", "max_cost", "max_time", "dependency", "halving"]
"""Why a job ends before it is done: somebody asked for it; a limit of its own is reached; a job
that it was to start after did not end as it should; others of its sweep do better."""
DeadlineCode: TypeAlias = Literal["nears", "out_of_reach", "missed"]
"""A job gets more GPUs for its deadline; none would be enough; it has passed."""


class StopFields(OfJob):
    why: NotRequired[StopCode]
    """Left out: somebody asked for it."""
    detail: NotRequired[str]


class StoppedFields(Ended):
    why: StopCode
    detail: NotRequired[str]
    """Which job did not end as it should, or which others do better."""


class Paused(OfJob):
    why: NotRequired[Literal["sweep"]]
    """By its sweep, until others have got as far; left out: by its user."""
    lost_s: NotRequired[Seconds]
    """Seconds of its run that no checkpoint holds."""


class Changed(OfJob):
    """Fields of a job's spec were changed."""

    fields: dict[str, str | float | None]
    """Those, as they are now; of `gpus` each by itself (`gpus.max`)."""


class Limited(OfJob):
    """A limit of the job's own is near."""

    why: Literal["max_cost", "max_time"]
    used: float
    """USD, or seconds …"""
    most: float
    """… and how many it may take."""
    in_s: NotRequired[Seconds]
    """Until it is stopped, at the pace of now."""


class DeadlineFields(OfJob):
    why: DeadlineCode
    in_s: Seconds
    """Until the deadline; negative: it has passed."""
    takes_s: NotRequired[Seconds]
    """To its end, as is believed …"""
    boot_s: NotRequired[Seconds]
    """Seconds more if a node has to boot for it."""
    urgency: NotRequired[float]
    """… when a second of it counts so many times as much as its class's."""


class FailedFields(Ended):
    why: FailureCode
    failures: int
    """Ends in a row without progress in between."""
    detail: NotRequired[str]
    """The engine's words, where they say more than the code."""
    said: NotRequired[str]
    """The line of the run's output that tells most of why: for who may read its log."""


class Retry(OfJob):
    """A run failed, was lost or lost a node, and the job is tried again."""

    why: FailureCode | Literal["node_lost", "run_lost", "not_ready", "width_failed", "asked"]
    """`width_failed`: where it was put, nobody got anywhere, but elsewhere. `asked`: it asked for
    it, by exit code 75: it knows what to do better."""
    exit_code: int | None
    wait_s: Seconds
    failures: NotRequired[int]
    """In a row; a lost node is none, nor is a run lost with its machine or its files, nor one that
    could not begin for want of a secret, nor one that failed for where it was."""
    retries: NotRequired[int]
    detail: NotRequired[str]
    said: NotRequired[str]
    """The line of the run's output that tells most of why."""
    gpu_type: NotRequired[str]
    """GPUs that it failed on, for `width_failed` …"""
    width: NotRequired[int]
    across_nodes: NotRequired[bool]
    back_gpu_type: NotRequired[str]
    """… and those that it goes back to."""
    back_width: NotRequired[int]


class OfNode(TypedDict):
    gpu_type: str
    """The node's."""


class NodeRented(OfNode):
    gpus: int
    price_per_hour: UsdPerHour
    """Price of the whole node."""
    worth_per_hour: NotRequired[UsdPerHour]
    """Dollars per hour that jobs gain by it, at the price of money."""
    saves_s: NotRequired[Seconds]
    """Seconds that jobs finish sooner by it, all together; left out: the work of some of them is
    unknown."""
    over_s: NotRequired[Seconds]
    """Seconds for which the node is taken to stay, in `saves_s`."""
    left_s: NotRequired[Seconds]
    """Seconds that the jobs present still have to go, all together: `saves_s` is never more."""
    waiting: NotRequired[int]
    """Jobs that waited for GPUs then."""


class NodeLeaving(OfNode):
    in_s: Seconds


class NodeLost(OfNode):
    why: LossCode


class NodeReleased(OfNode):
    why: ReleaseCode
    after_s: NotRequired[Seconds]
    """Seconds that it was waited for, for `not_ready`."""
    price_per_hour: NotRequired[UsdPerHour]
    """Price of the whole node …"""
    worth_per_hour: NotRequired[UsdPerHour]
    """… and dollars per hour that jobs would still have gained by it, for `unwanted`."""
    moved: NotRequired[list[str]]
    """Jobs that had to move for it …"""
    pause_s: NotRequired[Seconds]
    """… and the seconds that they paused, all together."""


class Short(TypedDict):
    """Lack of GPUs: a job's, as in `Shortage`, or a node that the cloud refused (`refused`)."""

    why: ShortageCode | Literal["refused"]
    gpu_type: str
    """The one that was wanted."""
    detail: NotRequired[str]
    again_s: NotRequired[Seconds]
    """Seconds until it is asked for again, for `refused`."""
    name: NotRequired[str]
    """The job's, as are all that follow."""
    width: NotRequired[int]
    given_gpu_type: NotRequired[str]
    """GPU type that it has instead; left out: it waits."""
    given_width: NotRequired[int]
    most_nodes: NotRequired[int]


class PlannedFields(TypedDict):
    number: int
    average_jct_s: Seconds
    spend_per_hour: UsdPerHour
    gap: float
    """Above the best that there can be, as a part of it."""
    wall_s: float
    """Seconds that the solver took."""
    too_small_per_hour: UsdPerHour | None
    """Where the budget cannot keep up: the least that could."""
    unknown: NotRequired[bool]
    """How long a job takes is unknown of all classes: the other figures are suppositions."""


class BudgetSet(TypedDict):
    budget: UsdPerHour
    before: NotRequired[UsdPerHour]
    """The budget that was; left out: only the cap was set."""
    max_spend: NotRequired[UsdPerHour | None]
    """The cap, where it has changed; None: there is none any more."""


class PeriodBegan(TypedDict):
    """Another period of the calendar, or its end."""

    budget: UsdPerHour
    """From now on; 0: it has ended."""
    period: str | None
    """None: the budget has ended."""


class UsedUp(TypedDict):
    """Money for a month, a quarter, or a project: there is nothing left of it."""

    part: NotRequired[str]
    """Who has it, of those who share the budget; left out: it is the budget."""
    each: Each
    usd: Usd
    """Spent of it."""
    last_day: str
    """That it was meant to last through; the next month or quarter has money again."""


class ClockSet(TypedDict):
    by_s: Seconds


class TroubleFields(TypedDict):
    why: TroubleCode
    detail: NotRequired[str]
    """Words of engine, cloud, store or solver."""
    name: NotRequired[str]
    """The job's, of `exit_code`, `not_over` and `unit`."""
    exit_code: NotRequired[int]


class Anything(TypedDict):
    """Nothing is known of it."""


FIELDS: Mapping[EventKind, type[Any]] = {
    "submitted": Submitted,
    "started": Start,
    "rescaled": Start,
    "restarted": Start,
    "preempted": PreemptedFields,
    "stop": StopFields,
    "stopped": StoppedFields,
    "succeeded": Ended,
    "failed": FailedFields,
    "retry": Retry,
    "paused": Paused,
    "resumed": OfJob,
    "changed": Changed,
    "limit": Limited,
    "deadline": DeadlineFields,
    "node_rented": NodeRented,
    "node_ready": OfNode,
    "node_released": NodeReleased,
    "node_leaving": NodeLeaving,
    "node_gone": OfNode,
    "node_lost": NodeLost,
    "orphan": OfNode,
    "shortage": Short,
    "planned": PlannedFields,
    "budget": BudgetSet,
    "period": PeriodBegan,
    "used_up": UsedUp,
    "clock": ClockSet,
    "trouble": TroubleFields,
    "other": Anything,
}
"""Shape of the data of every kind."""


def has_its_fields(kind: EventKind, data: Mapping[str, Any]) -> bool:
    """Whether all of the kind's fields that must be there are, and no others."""
    shape = FIELDS[kind]
    required: frozenset[str] = shape.__required_keys__
    optional: frozenset[str] = shape.__optional_keys__
    return required <= data.keys() <= required | optional
