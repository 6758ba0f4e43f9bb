"""Shapes of plans, and of what money would buy: the frontier, another budget's plan, and why."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict


class ClusterSize(TypedDict):
    """GPUs of one type that are paid for at a random moment, if jobs arrive by Poisson."""

    mean: float
    std: float
    p95: int


class PlanVariant(TypedDict):
    """One way for a class's jobs to go."""

    share: float
    """Part of the class's jobs, 0 to 1."""
    gpu_type: NotRequired[str]
    gpu_types: NotRequired[list[str]]
    """Instead of `gpu_type` where a job may change its type: one for each epoch."""
    widths: list[int | float]
    """One for each epoch."""


class PlanRoute(TypedDict):
    """Where a part of the jobs spends an epoch."""

    share: float
    gpu_type: str
    width: int | float


class PlanClass(TypedDict):
    """A class in a plan."""

    name: str
    average_jct_s: float
    spend_per_hour: float
    cost_per_job: float
    rescalings: float
    """Per job, the start included."""
    cheapest_jct_s: float
    """If the class ran as cheaply as it can."""
    cheapest_cost_per_job: float
    variants: NotRequired[list[PlanVariant]]
    epochs: NotRequired[list[list[PlanRoute]]]
    """Instead of `variants` where every epoch is routed by itself."""


class PlanBudget(TypedDict):
    """A budget that is shared, or a part of it, under a plan."""

    name: str
    above: str | None
    """Name of the budget that it is a part of; null: it is the whole."""
    budget_per_hour: float
    """Average spend: of the whole the most, of a part what it has by right."""
    max_per_hour: float | None
    """Null: what there is."""
    spend_per_hour: float
    wanted_per_hour: float
    """Spend of its fastest plan: more buys it nothing."""
    average_jct_s: float | None
    """Mean over its jobs; null where none come."""
    alone_jct_s: float | None
    """The same if it had its share and nobody else's; null: that cannot keep up."""
    shadow_price_s: float
    """Seconds of the plan's objective that one more dollar per hour of its own buys."""


class Plan(TypedDict):
    """A plan with its proof: what `boa plan --json` prints (`boa schema plan`)."""

    version: Literal[1]
    solver: str
    rescaling: bool
    routing: Literal["class", "epoch", "migrate"]
    billing: Literal["gpu", "node"]
    budget_per_hour: float
    spend_per_hour: float
    average_jct_s: float
    objective_s: float
    """Weighted average JCT: what is minimised."""
    lower_bound_s: float
    """No plan within the budget has a lower objective."""
    gap: float
    """objective_s ÷ lower_bound_s − 1."""
    proven_optimal: bool
    shadow_price_s: float
    """Seconds of the objective that one more dollar per hour would buy."""
    cheapest_per_hour: float
    """The least spend that keeps up with the jobs."""
    solve_time_s: float
    cluster: dict[str, ClusterSize]
    """By GPU type."""
    budgets: NotRequired[list[PlanBudget]]
    """Where a budget is shared: the whole and all parts, from the top down."""
    classes: list[PlanClass]


class FrontierPoint(TypedDict):
    budget_per_hour: float
    average_jct_s: float


class Frontier(TypedDict):
    """The best average JCT for every budget, for the workload of the plan in force.

    Budgets are dollars of the bill: what plans promise, times `gain`.
    """

    plan: int
    """Number of that plan."""
    gain: float
    """Dollars on the bill per dollar planned, as measured: idle and booting nodes cost, too."""
    points: list[FrontierPoint]
    """By rising budget, from the cheapest that keeps up to the one after which more buys nothing.
    In between, the optimum lies on straight lines."""
    cheapest_per_hour: float
    fastest_per_hour: float
    fastest_jct_s: float
    now: float


class ClassChange(TypedDict):
    """A class under the plan in force, and under the other one."""

    name: str
    arrivals_per_hour: float
    active_jobs: int
    """That a change would reach."""
    before: PlanClass | None
    """Null: the plan in force does not know the class."""
    after: PlanClass
    changed: bool
    """Whether any width, type or share differs from the plan in force."""
    unchanged: PlanClass
    """The class at the unchanged budget, planned as `after` is: the two are compared."""
    differs: bool
    """Whether any width, type or share differs from that."""


class Preview(TypedDict):
    """Plan for another budget, or for a wished JCT. Nothing is changed."""

    plan: int
    """Number of the plan in force, which it is held against."""
    gain: float
    """Dollars on the bill per dollar planned, as measured. All dollars here are the bill's, but for
    those of single classes: these are what jobs hold, without idle and booting nodes."""
    planned_per_hour: float
    """Spend that the plan is made with: the budget ÷ gain, or the cap if that is less."""
    budget_per_hour: float
    """As asked for; for a wished JCT: the least that reaches it."""
    average_jct_s: float
    p95_jct_s: float | None
    """Where known: of every class at least 20 jobs have ended, whose spread around their mean is
    taken to stay as it is."""
    spend_per_hour: float
    too_small_per_hour: float | None
    """Where the budget cannot keep up: the least that could. The plan shown is the one for that."""
    left_over_per_hour: float
    """Part of the budget that even the fastest plan has no use for."""
    shadow_price_s: float
    """Seconds of average JCT that one more dollar per hour would buy."""
    before: FrontierPoint
    """Average bill and JCT of the plan in force. It was made earlier, with the
    budget that was planned with then."""
    before_p95_jct_s: float | None
    unchanged: FrontierPoint
    """The unchanged budget, predicted as this one is: at that budget nothing differs. Average bill,
    and average JCT."""
    unchanged_p95_jct_s: float | None
    classes: list[ClassChange]
    cluster: dict[str, ClusterSize]
    """GPUs in use, by type."""
    solve_time_s: float
    now: float


class WidthChoice(TypedDict):
    """One width that an epoch could have."""

    width: int
    time_s: float
    cost_usd: float
    saves_s: float | None
    """Against the next narrower width; null for the narrowest."""
    extra_usd: float | None
    """Additional cost; negative: it is cheaper as well as faster."""


class EpochChoice(TypedDict):
    first_epoch: int
    """Counted from 0."""
    last_epoch: int
    """Epochs in a row with the same width in the plan."""
    width: int
    """As planned."""
    choices: list[WidthChoice]


class VariantChoice(TypedDict):
    share: float
    gpu_type: str
    """GPU type of the variant's first epochs."""
    epochs: list[EpochChoice]


class Why(TypedDict):
    """Why a class has the widths that it has: time against money."""

    name: str
    plan: int
    seconds_per_usd: float
    """Seconds that one dollar must save at least for this class: it saves as much elsewhere. 0: the
    budget is no limit."""
    words: list[str]
    """The same in plain sentences, one per stretch of epochs."""
    variants: list[VariantChoice]
    now: float
