"""Answers of the service: one shape per kind of document, for server and client alike.

Times are the server's, in Unix seconds; money is USD.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from boa.api import PATIENCE_S as PATIENCE_S
from boa.api.money import Budget
from boa.api.of_class import OfClass
from boa.api.plans import Plan
from boa.model.events import EventKind
from boa.model.priorities import Priority


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


class Job(OfClass):
    """A job in a list."""

    id: str
    name: str
    state: Literal[
        "waiting", "starting", "running", "rescaling", "preempted", "succeeded", "failed", "stopped"
    ]
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
    on_gpus_s: NotRequired[float]
    """Seconds for which it has held GPUs, up to now: all its runs, starts and rescalings
    included."""
    waiting_s: NotRequired[float]
    """Seconds since its submission without GPUs: in the queue, paused, or between two tries."""
    since_submission_s: NotRequired[float]
    """`on_gpus_s` + `waiting_s`: from its submission to its end, or until now."""
    holds_gpus: NotRequired[bool]
    """Whether `on_gpus_s` grows now; otherwise `waiting_s` does, until it ends."""
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
    waits_until: float | None
    """Its start is put off until then, as money buys more from then on; null: it is not."""
    deadline: float | None
    """When it is to have ended."""
    urgency: float
    """Times its class's weight that a second of it counts now: for its deadline, or by a weight
    that was set for it."""
    ran_s: float
    """Equals `on_gpus_s`, of which `max_time_s` is the most."""
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
    budget: NotRequired[Budget]
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
