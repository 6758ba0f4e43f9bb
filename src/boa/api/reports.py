"""Shapes of a month's reports: its statement, and what was saved in it."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

StatementFormat = Literal["json", "csv", "html"]
SavedState = Literal["none", "waiting", "running", "done", "failed", "stopped"]


class ExactAmounts(TypedDict):
    """USD before they were rounded to whole cents: less than a cent is shown by these."""

    total: float
    held: float
    idle: float
    booting: float


class StatementAmounts(TypedDict):
    """Money in whole cents, and what it bought."""

    total_usd: float
    held_usd: float
    """USD of GPUs that jobs held …"""
    idle_usd: float
    """… of GPUs that were paid for and empty …"""
    booting_usd: float
    """… and of nodes that booted, or had been given back and were still charged for."""
    gpu_hours: float
    """GPU-hours that jobs held; of a day, all that were rented."""
    jobs: int
    """Jobs that held GPUs; of a day, 0: nobody counts them."""
    exact_usd: NotRequired[ExactAmounts]


class StatementLine(StatementAmounts):
    """Jobs with the same payer, user, team and class; null or empty: nobody's that is known."""

    payer: str | None
    """The innermost part of the budget that pays for the class."""
    user: str | None
    """The owner, by the name of the token that the jobs were submitted with."""
    team: str | None
    job_class: str | None


class StatementGroup(StatementAmounts):
    """All lines of one payer, team, user or class."""

    name: str | None


class StatementPayer(StatementGroup):
    """A part of the budget: what it pays for itself, and with its parts."""

    above: str | None
    """The part that it is a part of; null: the whole, or not known."""
    with_parts_usd: float
    """`total_usd`, and that of all parts within it."""
    budget_usd: float | None
    """Money that it has by right in the month; null: nothing of its own."""


class StatementDay(StatementAmounts):
    """One UTC day."""

    day: str
    """YYYY-MM-DD."""


class StatementPreempted(TypedDict):
    """Stops by BOA's decision in the month; lost nodes are none."""

    times: int
    """Times that a job lost all its GPUs."""
    lost_s: float
    """Seconds of runs that ended in the month whose work no checkpoint held, at stops of BOA's."""
    lost_usd: float
    """Dollars that these seconds had cost."""


class Statement(StatementAmounts):
    """A calendar month (UTC): the bill, and who spent what on which class."""

    month: str
    """YYYY-MM."""
    since: float
    until: float
    """The month's end, or now while it is in progress."""
    days_in_month: int
    complete: bool
    """Whether the month is over."""
    budget_usd: float
    """Budget from `budget_since` to `budget_until`: as it was noted down, and the present one for
    the rest."""
    budget_since: NotRequired[float]
    """The month's begin, or when the service was first there in it."""
    budget_until: NotRequired[float]
    """The month's end."""
    rule: str
    """How what no job held is shared out."""
    lines: list[StatementLine]
    """They add up to the totals, and so does each of the lists below."""
    by_payer: list[StatementPayer]
    by_team: list[StatementGroup]
    by_user: list[StatementGroup]
    by_class: list[StatementGroup]
    by_day: list[StatementDay]
    tag_kinds: NotRequired[list[str]]
    """Kinds of tags that its jobs have, for `GET /cost?by=tag:KIND`."""
    alerts: NotRequired[list[float]]
    """Percents of the budget at which somebody is told, in order (`alerts` of `notify`)."""
    preempted: NotRequired[StatementPreempted]
    """Left out by older services."""
    now: float


class SavedRun(TypedDict):
    """The same jobs under a policy, simulated."""

    average_jct_s: float
    cost_usd: float
    """Bill of the whole simulation."""


class SavedResult(TypedDict):
    """BOA against the widths that people used before; all of it simulated."""

    before: SavedRun
    """Fixed widths, on nodes that come as they are needed."""
    boa: SavedRun
    """BOA at the budget in force."""
    jct_at_same_cost_s: float | None
    """BOA's average JCT for what fixed widths cost, at most: between two simulated budgets, or the
    least of them where all cost less; null: all cost more."""
    cost_at_same_jct_usd: float | None
    """Bill of BOA for the average JCT of fixed widths; at most; null: likewise."""
    saved_usd: float | None
    """Dollars at the same JCT: `before.cost_usd` − `cost_at_same_jct_usd`."""
    sooner_s: float | None
    """Seconds per job at the same dollars."""
    words: list[str]
    """The same in sentences."""


class Saved(TypedDict):
    """Dollars and seconds saved in a month, as far as a simulation can say."""

    month: str
    state: SavedState
    """`none`: nobody has asked for it yet (POST)."""
    jobs: int
    """Jobs that ended in the month and count."""
    left_out: int
    """Jobs that ended in it, of classes that too little is known of."""
    widths: dict[str, str]
    """By class: the GPU type and width that it is taken to have run at before."""
    assumes: list[str]
    """Things that the simulation takes to be so."""
    too_thin: str
    """Why nothing can be said; empty: it can."""
    error: str
    """Why the simulation failed; empty: it did not."""
    gpu_types: NotRequired[list[str]]
    """GPU types that jobs can be taken to have run on before."""
    result: NotRequired[SavedResult]
