"""Money: what was spent and on what, the budget, and what answers about both share."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from boa.api.of_class import PerhapsOfClass
from boa.model.workload import Billing


class LimitSet(TypedDict):
    """A budget or cap that was set at run time, where the configuration says otherwise."""

    configured_per_hour: float | None
    """Null: no cap."""
    at: float | None
    """When it was set; null: by a version that did not note it down."""
    words: str
    """All of it in a sentence, with the command that goes back."""


class LimitsSet(TypedDict):
    """Where budget and cap come from; left out: from the configuration."""

    budget_set: NotRequired[LimitSet]
    max_spend_set: NotRequired[LimitSet]


class MonthForecast(TypedDict):
    """This calendar month (UTC) at its end."""

    forecast_month_usd: float | None
    """USD spent in it, and `forecast_pace_per_hour` for the rest of it; null: less than an hour of
    history, from which no month is forecast."""
    forecast_basis: NotRequired[Literal["none", "short", "spend"]]
    """Ground of the forecast: nothing was spent yet, or for less than an hour, so that there is
    none; the pace of an hour or more. It is never the budget."""
    forecast_over_s: NotRequired[float]
    """Seconds up to now that the pace is of: since the month's first charge, or of the last day
    while the month is younger."""
    forecast_pace_per_hour: NotRequired[float]
    """The average bill over `forecast_over_s`: USD per hour."""
    forecast_allowed_per_hour: NotRequired[float]
    """The budget in force over the same seconds, on average; today's where it was not noted
    down."""
    forecast_low_usd: NotRequired[float | None]
    """With `forecast_high_usd`: the month ends between the two in 80 % of all cases, as far as one
    can tell from how much the spend has varied of late; null while there is too little history."""
    forecast_high_usd: NotRequired[float | None]
    forecast_band_basis: NotRequired[str]
    """Ground of the band, in words."""


class Enough(TypedDict):
    """Whether the money is enough for the jobs that are there."""

    needed_per_hour: NotRequired[float | None]
    """USD per hour, on the bill, of the cheapest plan for them; null: there is no plan yet."""
    warnings: NotRequired[list[str]]
    """A sentence for each limit that is too small: what is needed, and what will happen."""


class BudgetStretch(TypedDict):
    """Money for a month, a quarter, or for a project until a date: what is left of it."""

    name: str
    """The stretch of time that is now, such as 2026-11, 2026-Q4, until 2027-03-31."""
    each: Literal["month", "quarter", "once"]
    usd: float
    """As configured …"""
    allowed_usd: float
    """… and for this stretch: with what an earlier one left, and of the first only a part, if it
    began in its middle."""
    rolled_usd: float
    """Left by the stretch before; negative: owed."""
    spent_usd: float
    left_usd: float
    """0 where more is spent than was allowed."""
    since: float
    ends: float
    rolls_over: bool
    """Whether what is left, or owed, at its end goes into the next."""
    used_up: bool


class BudgetPart(TypedDict):
    """One of those who share the budget."""

    name: str
    above: str | None
    """Name of the part that it is a part of; null: of the whole."""
    budget_per_hour: float
    """Average spend that it has by right …"""
    right_now_per_hour: float
    """… and while loans are paid back."""
    max_per_hour: float | None
    lent_usd: float
    """Part of its share that others have had; negative: it had theirs."""
    spend_now_per_hour: float
    """Cost of what its jobs hold, and its part of what nobody does."""
    lends: bool
    """Whether others may have what it does not want."""
    classes: list[str]
    """Job classes that it pays for itself, not through a part. The whole pays for those that none
    names."""
    users: list[str]
    """Users whose jobs it is for …"""
    teams: list[str]
    """… and teams; none of both: everybody's."""
    max_spend_per_hour: float | None
    """Hard cap: the most that its jobs hold at any moment. Null: none."""
    borrows: bool
    """Whether it may have what others do not want, beyond its own."""
    stretch: NotRequired[BudgetStretch]
    """Month, quarter or time until a date that its money is for. Left out: it is by the hour."""


class BudgetHours(TypedDict):
    """A stretch of the week, by the clocks of the calendar's time zone."""

    period: str
    budget_per_hour: float
    begins_minute: int
    """Minutes since Monday, 00:00 …"""
    ends_minute: int
    """… and that of its end; 10080 is that of the week."""


class BudgetCalendar(TypedDict):
    """A budget that changes by the hour. `budget_per_hour` beside it is the one in force now."""

    period: str | None
    """Name of the one that holds; null: the budget has ended."""
    next_at: float | None
    """When another begins, or the budget ends; null: never."""
    next_period: str | None
    next_budget_per_hour: float
    week_budget_per_hour: float
    """On average over a week."""
    month_left_usd: float
    """USD that it allows from now to the end of the month, UTC."""
    ends_at: float | None
    """When the budget ends; null: never."""
    time_zone: str
    allowed_per_hour: float
    """The budget on average from `since` until now."""
    average_per_hour: dict[str, float]
    """By period: what was spent per hour while it held, since the budget was set."""
    words: str
    """The period and the next one, in a sentence."""
    week: list[BudgetHours]
    """The whole week, from Monday on."""


class FollowsCalendar(TypedDict):
    calendar: NotRequired[BudgetCalendar]
    """Left out where the budget is the same at all hours."""


class CostRow(PerhapsOfClass):
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
    """From `average_since` until `until`."""
    average_since: NotRequired[float]
    """`since`, but not before anything was rented."""
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
