"""Money at a moment: the budget, what was spent, and on what."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from boa.model.budgets import Budget
from boa.model.terms import Each
from boa.model.workload import Billing
from boa.scheduler.money.months import Months
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAtRunTime:
    """A budget or cap that somebody has set while the service ran; it outlives a restart."""

    configured: UsdPerHour | None
    """USD per hour that the configuration says instead; None: no cap."""
    at: Seconds | None
    """When it was set; None: nobody noted it down."""
    terms: str = ""
    """Terms that the configuration has for the budget, in words, where it is not by the hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StretchState:
    """Money for a month, a quarter, or until a date: what is left of it."""

    name: str
    """Such as 2026-11, 2026-Q4, until 2027-03-31."""
    each: Each
    usd: Usd
    """As configured …"""
    allowed: Usd
    """… and what there is of it in this stretch: with what an earlier one left, and only a part of
    the first."""
    rolled: Usd
    spent: Usd
    since: Seconds
    ends: Seconds
    rolls_over: bool
    used_up: bool

    @property
    def left(self) -> Usd:
        return max(self.allowed - self.spent, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """One of those who share the budget."""

    budget: Budget
    """Name, people and classes that it pays for, and limits, in the budget in force."""
    above: str | None
    """Name of the part that it is a part of; None: of the whole."""
    per_hour: UsdPerHour
    """USD per hour that it has by right …"""
    right_now: UsdPerHour
    """… and while loans are paid back."""
    lent: Usd
    """USD of its share that others have had; negative: it had theirs."""
    now_per_hour: UsdPerHour
    """USD per hour of what its jobs hold, and its part of what nobody does."""
    stretch: StretchState | None = None
    """Time that its money is for, where that is on terms; None: it is by the hour."""

    @property
    def name(self) -> str:
        return self.budget.name


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursOfWeek:
    """A stretch of the week in which one period holds."""

    period: str
    budget: UsdPerHour
    begins: int
    ends: int
    """Minutes of the week, from Monday on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarState:
    """A budget that changes by the hour, at a moment."""

    period: str | None
    """Name of the one that holds; None: the budget has ended."""
    next_at: Seconds | None
    """When another begins, or the budget ends; None: never."""
    next_period: str | None
    """None: there is none after it."""
    next_budget: UsdPerHour
    week: UsdPerHour
    """The budget of a week on average."""
    month_left: Usd
    """USD that it allows from now to the end of the month, UTC."""
    ends_at: Seconds | None
    """When the budget ends; None: never."""
    time_zone: str
    averages: Mapping[str, UsdPerHour] = field(default_factory=dict)
    """By period: what was spent per hour while it held, since the budget counts."""
    hours: tuple[HoursOfWeek, ...] = ()
    """The whole week, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyState:
    at: Seconds
    """Moment that all of it is of."""
    budget: UsdPerHour
    max_spend: UsdPerHour | None
    effective: UsdPerHour
    """USD per hour that is planned with, so that the average comes out at the budget."""
    since: Seconds
    """Beginning of averages: the first start of the service, or the last change of the budget."""
    spent: Usd
    """USD spent since then, everything included."""
    total: Usd
    """Ever; the three parts add up to it."""
    jobs: Usd
    idle: Usd
    provisioning: Usd
    """USD from the beginning of the charge until ready, and from release until gone."""
    now_per_hour: UsdPerHour
    """USD per hour of everything that is rented at this moment."""
    billing: Billing = "gpu"
    """Count that the budget is for: whole nodes, or GPUs that jobs hold."""
    budget_set: SetAtRunTime | None = None
    """Where the budget comes from, if not from the configuration …"""
    max_spend_set: SetAtRunTime | None = None
    """… and the cap."""
    parts: tuple[PartState, ...] = ()
    """Those who share it, if somebody does, from the top down."""
    sharing: Budget | None = None
    """The same as a tree that says who pays for which class, of the budget in force."""
    calendar: CalendarState | None = None
    """None: the budget is the same at all hours."""
    allowed: UsdPerHour | None = None
    """The budget on average from `since` until `at`, where it changes by the hour."""
    stretch: StretchState | None = None
    """Time that a budget on terms is for; None: it is by the hour."""
    months: Months = field(default_factory=dict)
    """Dollars that the budget has allowed in each, until `at`."""
    gain: float = 1.0
    """Dollars on the bill per dollar planned, as measured: nodes are idle and boot."""

    @property
    def usual(self) -> UsdPerHour:
        """USD per hour that is set: by a calendar on average over a week, not that of this hour."""
        return self.budget if self.calendar is None else self.calendar.week

    @property
    def average(self) -> UsdPerHour:
        """USD per hour from `since` until `at`."""
        hours = (self.at - self.since) / SECONDS_PER_HOUR
        return self.spent / hours if hours > 0 else 0.0

    def planned_with(self, budget: UsdPerHour) -> UsdPerHour:
        """USD per hour that plans would be made with if this became the budget now."""
        wanted = budget / self.gain
        return wanted if self.max_spend is None else min(wanted, self.max_spend)
