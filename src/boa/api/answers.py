"""Answers of the service: one shape per kind of document, for server and client alike.

Times are the server's, in Unix seconds; money is USD.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from boa.api import PATIENCE_S as PATIENCE_S
from boa.api.money import (
    BudgetPart,
    BudgetStretch,
    Enough,
    FollowsCalendar,
    LimitsSet,
    MonthForecast,
)
from boa.api.plans import Plan
from boa.model.events import EventKind
from boa.model.priorities import Priority
from boa.model.workload import Billing

Grouping = Literal["day", "class", "job", "team", "user", "payer"]
"""Ways to list money by; beside them there is tag:KIND, by a tag of jobs."""


class Health(TypedDict):
    """The service is up."""

    status: Literal["ok"]
    version: str
    now: float
    """The server's time. With `speed` ≠ 1 it runs faster than the wall's."""
    stepped_at: float
    """When the control loop last looked at everything."""
    page: NotRequired[bool]
    """Whether the dashboard is there: that of job 17 is /#/jobs/17."""


# `class` is a word of Python's: such a key can only be spelled this way.
_OfClass = TypedDict("_OfClass", {"class": str})


class Job(_OfClass):
    """A job in a list."""

    id: str
    name: str
    state: Literal["waiting", "starting", "running", "rescaling", "succeeded", "failed", "stopped"]
    gpu_type: str | None
    """Type of the GPUs that it holds now."""
    width: int
    """How many GPUs it holds now; 0 while it waits and after it ended."""
    epoch: int
    """Counted from 0."""
    submitted_at: float
    started_at: float | None
    """First start of its first run."""
    ended_at: float | None
    rescalings: int
    """Changes of GPUs by decision, after the first start."""
    restarts: int
    """Starts after a failure of its own, a lost node or a lost worker."""
    exit_code: int | None
    """A signal n: -n. Null while it runs, or if nobody knows."""
    cost_usd: float
    """Up to now."""
    owner: str
    """Who submitted it, by the name of the token; empty where none was wanted."""
    team: str
    """The owner's, at that moment."""
    payer: str | None
    """Part of the budget that pays because of who submitted it; null: its class says who."""
    priority: Priority
    """How much it counts; `background`: it lives on GPUs that are paid for and empty."""


class JobRow(Job):
    """A job in a list that somebody watches: with what is believed of its end."""

    epochs: int
    """How many there are; one more than the last that was seen, at least."""
    done: float | None
    """Part of the whole training, 0 to 1; null where nothing is known of its work."""
    left_s: float | None
    """Until its end, as planned; null where that cannot be told."""
    left_usd: float | None
    """Cost of that, in USD."""
    stop_requested: bool
    reason: str
    """Why it is in this state."""
    paused: bool
    """By its user, until it is resumed."""
    sweep: str
    """Id of the sweep that it is of; empty: none."""


class Share(TypedDict):
    """GPUs of one type."""

    gpu_type: str
    width: int


class Part(TypedDict):
    """GPUs of one node that a job holds."""

    job: str
    node: int
    gpus: int


class JobDetails(JobRow):
    """All there is to say of a job."""

    progress: float
    """Units done of the current epoch."""
    step: int | None
    loss: float | None
    metrics: dict[str, float]
    """The newest of each that it reported. Of `boa.train.torch`: `batch_size` (of all ranks),
    `accumulation` (passes before the one that ends in a step), `noise_scale` (samples), `gain`,
    `lr_factor`."""
    attempt: int | None
    """Number of the run that is there now."""
    rescale_s: dict[str, float]
    """Seconds until that run trained: `total`, and by part as far as it told (`stop`, `save`,
    `start`, `load`, `first_step`); `other`: what these do not explain."""
    attempts: int
    failures: int
    """Ends that count against `retries`."""
    said: str
    """Line of its log that tells most of why its last run failed; empty where it began again, or
    for who may not read the log."""
    retry_at: float | None
    wanted: Share | None
    """GPUs that the plan has for it; less may be there where GPUs are short."""
    held: list[Part]
    awaits: list[str]
    """Ids of jobs and sweeps that it starts after and that have not ended."""
    deadline: float | None
    """When it is to have ended."""
    urgency: float
    """Times its class's weight that a second of it counts now: for its deadline, or by a weight
    that was set for it."""
    ran_s: float
    """Seconds of its runs, of which `max_time_s` is the most."""
    parameters: dict[str, str]
    """Those that its sweep drew for it."""
    spec: dict[str, Any]
    """As it was submitted (`boa schema job`), or changed since."""


class Live(TypedDict):
    """Everything that is watched: all of it at first, then what has changed."""

    now: float
    """The server's time."""
    complete: bool
    """Whether all active jobs and nodes have been sent by now."""
    speed: NotRequired[float]
    """Seconds of the server's time in one of the wall's; in the first message."""
    version: NotRequired[str]
    """Version of the service; in the first message."""
    budget: NotRequired["Budget"]
    plan: NotRequired[int | None]
    """Number of the plan in force."""
    last_event: NotRequired[int]
    """Number of the newest event."""
    counts: NotRequired[dict[str, int]]
    """Active jobs by state."""
    jobs: NotRequired[list[JobRow]]
    """New or changed. One whose state is succeeded, failed or stopped has left."""
    nodes: NotRequired[list["Node"]]
    """New or changed."""
    gone: NotRequired[list[int]]
    """Nodes that are no longer there."""


class JobAnswer(TypedDict):
    job: JobDetails


class Submitted(TypedDict):
    """Jobs that were submitted together."""

    ids: list[str]
    """Ids of all of them, in the order given."""


class JobList(TypedDict):
    """Newest first."""

    jobs: list[JobRow]
    now: float
    before: int | None
    """Where the list goes on: the next request's `before`. Null: it was all."""


class Node(TypedDict):
    """A node that is paid for, or about to be."""

    id: int
    gpu_type: str
    gpus: int
    used_gpus: int
    state: Literal["requested", "ready", "releasing", "gone"]
    price: float
    """Per GPU and hour."""
    price_per_hour: float
    """Price of the whole node."""
    requested_at: float
    billed_from: float | None
    """Null while the cloud has not said that it rents the node."""
    ready_at: float | None
    released_at: float | None
    empty_since: float | None
    address: str
    reason: str
    worth_per_hour: float | None
    """Worth of the whole node to the jobs that are there, to two digits, when it was last weighed
    (`billing: node`); null: it was not, or money is not short."""
    draining: bool
    """Whether it goes as soon as it is empty."""
    why: str
    """Why it is paid for, in money where that is known."""
    held: list[Part]


class NodeList(TypedDict):
    nodes: list[Node]
    now: float


_PerhapsOfClass = TypedDict("_PerhapsOfClass", {"class": NotRequired[str | None]})


class CostRow(_PerhapsOfClass):
    """Cost of one day, class, job, team, user, payer (a part of the budget) or value of a tag;
    null: of what no job held. An empty name: of jobs without a team, a user or such a tag."""

    day: NotRequired[str]
    """UTC, YYYY-MM-DD."""
    job: NotRequired[str | None]
    name: NotRequired[str]
    team: NotRequired[str | None]
    user: NotRequired[str | None]
    payer: NotRequired[str | None]
    tag: NotRequired[str | None]
    """Value of the tag that was asked for."""
    total_usd: float
    jobs_usd: float
    idle_usd: float
    provisioning_usd: float
    gpu_hours: float


UnusedCode = Literal["booting", "idle", "draining", "leaving"]
"""Why GPUs are paid for that no job holds: their nodes boot; are kept; go as soon as they are
empty; were given back and are not gone yet."""


class Unused(TypedDict):
    """GPUs that are paid for now, and that no job holds."""

    why: UnusedCode
    nodes: int
    """Nodes that they are on."""
    gpus: int
    per_hour: float
    """Price of these GPUs."""
    nodes_per_hour: float
    """Price of the whole nodes …"""
    nodes_worth_per_hour: float | None
    """… and their worth to jobs, where all of them were weighed."""


class Cost(LimitsSet, MonthForecast, FollowsCalendar):
    """Money: spent, being spent, and to come."""

    budget_per_hour: float
    max_spend_per_hour: float | None
    effective_budget_per_hour: float
    """Budget that is planned with, so that the average comes out at the one that was set."""
    billing: NotRequired[Billing]
    """Count that the budget is for: whole nodes, or GPUs that jobs hold."""
    allowed_per_hour: float
    """The budget that was in force, on average over the same time as the spend; today's where it
    was not noted down."""
    average_spend_per_hour: float
    """From `since` until `until`."""
    spend_now_per_hour: float
    """Price of everything that is rented at this moment."""
    since: float
    """As asked for; else the first start of the service, or the last change of the budget."""
    until: float
    now: float
    total_usd: float
    """The sum of jobs, idle and provisioning: ever, or between `since` and `until` if asked for."""
    jobs_usd: float
    idle_usd: float
    """GPUs that were ready and that no job held."""
    provisioning_usd: float
    """From the beginning of the charge until ready, and from release until gone."""
    unused: NotRequired[list[Unused]]
    """Money of this moment that no job uses, by why."""
    rows: NotRequired[list[CostRow]]
    """Where `by` was asked for."""


class Budget(LimitsSet, Enough, FollowsCalendar):
    """Budget that the service steers to, and what it spends."""

    budget_per_hour: float
    """Average spend per hour."""
    max_spend_per_hour: float | None
    """Never more than this at any moment."""
    effective_budget_per_hour: float
    """Budget that is planned with, so that the average comes out at the one that was set."""
    billing: NotRequired[Billing]
    """Count that the budget is for: whole nodes, or GPUs that jobs hold."""
    average_spend_per_hour: float
    spend_now_per_hour: float
    stretch: NotRequired[BudgetStretch]
    """Months, quarter or time until a date that the budget is for: `budget_per_hour` is what is
    left of it, by the hour. Left out: it is by the hour."""
    parts: NotRequired[list[BudgetPart]]
    """Those who share it, from the top down; left out where nobody does."""
    since: float
    """Beginning of the average: the first start, or the last change of the budget."""
    now: float


class LivePlan(TypedDict):
    """The plan in force."""

    number: int
    at: float
    plan: Plan
    workload: str
    """Workload that it was made for, as a file (YAML, `boa schema workload`)."""
    wall_s: float
    """How long the solver took."""
    too_small_per_hour: float | None
    """Where the budget cannot keep up: the least that could."""
    now: float


class ClassList(TypedDict):
    classes: list[str]


class EventPart(TypedDict):
    """A piece of a sentence, and what it names."""

    text: str
    job: NotRequired[str]
    node: NotRequired[int]
    seconds: NotRequired[float]
    """A time, before it was rounded."""


class Event(TypedDict):
    """Something a person may want to know."""

    number: int
    """Rises by time."""
    at: float
    kind: EventKind
    text: str
    """Sentence that says what happened."""
    parts: list[EventPart]
    """The same sentence in pieces."""
    job: str | None
    node: int | None
    data: dict[str, Any]
    """The fields of its kind (docs/api.md); `why`, where there is one, is a code."""


class EventList(TypedDict):
    events: list[Event]
    """By rising number."""
    last: int
    """Number of the newest event there is."""


class Received(TypedDict):
    """A report was taken."""

    ok: Literal[True]
    token: NotRequired[str]
    """The run's next token, once half of the time of the one it has is over."""


class Problem(TypedDict):
    message: str
    """One clear sentence."""
    exit_code: int
    """Exit code that the command line ends with."""
    field: NotRequired[str]
    expected: NotRequired[str]


class ErrorAnswer(TypedDict):
    """Every error has this shape."""

    error: Problem
