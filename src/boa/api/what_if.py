"""Shapes of answers on simulations that run beside the service."""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class TraceChoice(TypedDict):
    """A trace that can be picked."""

    name: str
    about: str
    jobs: int
    hours: float
    """From the first arrival to the last."""
    gpu_types: list[str]
    """That its jobs can be simulated on."""
    budgets: list[float]
    """Sensible ones to start with, in USD per hour."""


class PolicyChoice(TypedDict):
    """A policy that can be picked."""

    name: str
    about: str
    """One line: what every job gets, and on which cluster."""
    knob: str | None
    """Knob that it is swept over: budget, target_efficiency, nodes (a fixed cluster about as large
    as each budget buys) or width; null: nothing."""
    several_gpu_types: bool
    """Whether it uses more than one."""
    follows_calendar: NotRequired[bool]
    """Whether it can be asked about with a calendar."""


class TraceChoices(TypedDict):
    traces: list[TraceChoice]
    policies: list[str]
    """Their names."""
    policy_choices: list[PolicyChoice]
    """The same, with what tells them apart."""
    billing: Literal["gpu", "node"]
    """Money that budgets count unless a question says otherwise: as the service's own does."""
    calendar: NotRequired[list[str]]
    """Names of the periods of the service's own calendar; empty: it follows none."""


class Knob(TypedDict):
    """Knob of a policy and its value: a budget, a target efficiency, a cluster, a width."""

    policy: str
    knob: str | None
    """Null: the policy has none."""
    value: int | float | str | None


class ClassResult(TypedDict):
    """Outcome of a class in a simulation."""

    name: str
    jobs: int
    average_jct_s: float


class SimulatedType(TypedDict):
    """A GPU type as it was simulated."""

    name: str
    price: float
    """Per GPU and hour."""
    gpus_per_node: int


class ComparisonPoint(Knob):
    """Outcome of one policy at one value of its knob. A policy may add what it wants told."""

    jobs: int
    completed: int
    average_jct_s: float
    p50_jct_s: float
    p95_jct_s: float
    p99_jct_s: float
    makespan_s: float
    gpu_hours: float
    average_gpus: float
    """Held by jobs, over the arrival span."""
    spend_per_hour: float
    """Cost of these."""
    rented_gpus: float
    """Whole nodes, provisioning included."""
    rented_spend_per_hour: float
    reclaiming_gpus: NotRequired[float]
    """Given back, and still charged."""
    reclaiming_spend_per_hour: NotRequired[float]
    peak_rented_spend_per_hour: NotRequired[float]
    booting_spend_per_hour: NotRequired[float]
    """Nodes from request until jobs could start on them."""
    idle_spend_per_hour: NotRequired[float]
    """Nodes that were ready, where no job held them."""
    bill_per_hour: NotRequired[float]
    """Whole nodes from request to gone: rented and reclaiming."""
    bound_jct_s: NotRequired[float | None]
    """JCT of the exact plan by the GPU, without boots, for that bill; null below the cheapest."""
    jct_over_bound: NotRequired[float | None]
    rescalings_per_job: float
    rescaling_s_per_job: NotRequired[float]
    average_efficiency: float | None
    average_queueing_s: float
    wall_s: float
    """Seconds that the simulation itself took."""
    span_s: NotRequired[float]
    """From the first arrival to the last."""
    classes: NotRequired[list[ClassResult]]
    gpu_hours_by_type: NotRequired[dict[str, float]]
    physics: NotRequired[dict[str, Any]]
    """Settings of the simulator: the parts of the world that were switched on."""
    gpu_types: NotRequired[list[SimulatedType]]


class RivalPoint(Knob):
    """A rival's point against BOA's line at the same average spend, or the same bill."""

    at_spend_per_hour: NotRequired[float]
    at_gpus: NotRequired[float]
    """Instead of `at_spend_per_hour` where every GPU costs 1."""
    jct_ratio: float
    """The rival's average JCT ÷ BOA's."""
    p95_ratio: float
    boa_jct_s: NotRequired[float]
    boa_p95_jct_s: NotRequired[float]


class LeftOut(Knob):
    """A point that could not be simulated."""

    why: str


class Comparison(TypedDict):
    """Policies against each other on one trace: what `boa compare --json` prints."""

    points: list[ComparisonPoint]
    billing: NotRequired[Literal["gpu", "node"]]
    """Money that they are compared at: node: the bill. Without it, what jobs held."""
    comparisons: list[RivalPoint]
    left_out: list[LeftOut]


class Simulation(TypedDict):
    """One question: policies × budgets on one trace."""

    id: str
    state: Literal["waiting", "running", "done", "failed", "stopped"]
    trace: str
    policies: list[str]
    budgets: list[float]
    gpu_types: list[str]
    billing: NotRequired[Literal["gpu", "node"]]
    """Money that its budgets count, and policies are compared at; node: the bill."""
    boot_s: NotRequired[float]
    """Seconds that its nodes take to boot."""
    calendar: NotRequired[list[str]]
    """Names of the periods of the calendar that it was simulated by; empty: the same at all hours.
    """
    asked_at: float
    """Unix seconds, by the wall's clock."""
    points_done: int
    points: int
    error: str
    """Empty unless it failed."""
    result: NotRequired[Comparison]
    """Where it is done, and one simulation was asked for."""


class SimulationAnswer(TypedDict):
    simulation: Simulation


class SimulationList(TypedDict):
    simulations: list[Simulation]
    """Newest first, without results."""
