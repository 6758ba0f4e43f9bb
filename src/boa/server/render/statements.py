"""A month's statement, read from the store, and as a document."""

import calendar
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from boa.api import reports as answers
from boa.errors import InputError
from boa.model.budgets import Budget
from boa.model.notices import MonthSpent
from boa.model.streams import class_of
from boa.runtime.history import average_budget
from boa.scheduler.money.costs import month_of
from boa.scheduler.money.grouping import WHOLE, payer_of
from boa.scheduler.money.holders import Of
from boa.scheduler.money.money_state import MoneyState
from boa.scheduler.money.statement import RULE, Amounts, Statement, Whose, statement
from boa.server.render.charges import DAY_S, jobs_of
from boa.store.base import Store
from boa.units import SECONDS_PER_HOUR, Seconds, Usd

_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])", re.ASCII)
_EXPECTED = "a month that has begun, such as 2026-11"


def month_from(given: str | None, now: Seconds) -> tuple[Seconds, Seconds]:
    """Beginning and end of the month that was asked for, UTC; of the present one by default."""
    if given is None:
        return month_of(now)
    named = _MONTH.fullmatch(given)
    if named is None or int(named[1]) == 0:
        raise InputError("month", given[:60], _EXPECTED)
    first = datetime(int(named[1]), int(named[2]), 1, tzinfo=UTC).timestamp()
    if first > now:
        raise InputError("month", given, _EXPECTED, "has not begun")
    return month_of(first)


def month_name(first: Seconds) -> str:
    return datetime.fromtimestamp(first, UTC).strftime("%Y-%m")


def read_statement(
    store: Store, money: MoneyState, first: Seconds, end: Seconds, now: Seconds
) -> answers.Statement:
    """Blocks on the store. Up to now, of a month in progress."""
    until = min(end, now)
    nodes, held = store.nodes_between(first, until), store.held_between(first, until)
    records = jobs_of(store, held.job.tolist())
    pays = payer_of(money.sharing)

    def whose(of: Of) -> Whose:
        record = records.get(of[0])
        user, team = ("", "") if record is None else (record.owner, record.team)
        return Whose(pays(of[1]), user, team, class_of(of[1]))

    found = statement(nodes, held, first, until, whose)
    budget = month_budget(store, money, first, end, now)
    kinds = sorted({kind for record in records.values() for kind in record.spec.tags})
    return document(found, money, budget, end, now, kinds)


def month_budget(
    store: Store, money: MoneyState, first: Seconds, end: Seconds, now: Seconds
) -> Usd:
    """As it was noted down, the present one where nobody did, and for what is to come what is in
    force: the calendar's hours, or what there is for this month."""
    until = min(end, now)
    if until < end and money.stretch is not None and money.stretch.each == "month":
        return money.stretch.allowed
    samples = store.sampled_between(first - DAY_S, until)
    noted = average_budget(samples, first, until)
    so_far = money.budget if noted is None else noted
    to_come = money.budget * (end - until) / SECONDS_PER_HOUR
    if until < end and money.calendar is not None:
        to_come = money.calendar.month_left
    return so_far * (until - first) / SECONDS_PER_HOUR + to_come


def _right(part: Budget, money: MoneyState, hours: float, budget: Usd) -> Usd:
    """Dollars that a part has by right in a month of so many hours; `budget`: that of the whole."""
    stretch = next((one.stretch for one in money.parts if one.name == part.name), None)
    if stretch is not None and stretch.each == "month":
        return stretch.allowed
    if money.calendar is not None and money.budget:
        return part.per_hour / money.budget * budget
    return part.per_hour * hours


def month_spent(store: Store, money: MoneyState, now: Seconds) -> list[MonthSpent]:
    """The present month so far: of the whole, and of all parts that have a right of their own, with
    their share of what nobody held."""
    first, end = month_of(now)
    nodes, held = store.nodes_between(first, now), store.held_between(first, now)
    pays = payer_of(money.sharing)
    found = statement(nodes, held, first, now, lambda of: Whose(pays(of[1]), "", "", None))
    by_payer = found.added_up(lambda whose: whose.payer)
    budget = month_budget(store, money, first, end, now)
    hours = (end - first) / SECONDS_PER_HOUR
    spent = [MonthSpent(month=first, part="", spent=found.bill.total / 100, allowed=budget)]
    for part in [] if money.sharing is None else list(money.sharing.every)[1:]:
        within = sum(by_payer.get(inner.name, Amounts()).total for inner in part.every)
        allowed = _right(part, money, hours, budget)
        if allowed > 0:
            one = MonthSpent(month=first, part=part.name, spent=within / 100, allowed=allowed)
            spent.append(one)
    return spent


def document(
    found: Statement,
    money: MoneyState,
    budget: Usd,
    end: Seconds,
    now: Seconds,
    tag_kinds: Sequence[str] = (),
) -> answers.Statement:
    first = datetime.fromtimestamp(found.since, UTC)
    return {
        **_amounts(found.bill),
        "month": month_name(found.since),
        "since": found.since,
        "until": found.until,
        "days_in_month": calendar.monthrange(first.year, first.month)[1],
        "complete": now >= end,
        "budget_usd": budget,
        "rule": RULE,
        "lines": [
            {
                "payer": whose.payer,
                "user": whose.user,
                "team": whose.team,
                "job_class": whose.job_class,
                **_amounts(amounts),
            }
            for whose, amounts in sorted(found.lines.items(), key=lambda one: -one[1].total)
        ],
        "by_payer": _payers(found, money, (end - found.since) / SECONDS_PER_HOUR, budget),
        "by_team": _groups(found, lambda whose: whose.team),
        "by_user": _groups(found, lambda whose: whose.user),
        "by_class": _groups(found, lambda whose: whose.job_class),
        "by_day": [{"day": day, **_amounts(amounts)} for day, amounts in found.days.items()],
        "tag_kinds": list(tag_kinds),
        "now": now,
    }


def _amounts(amounts: Amounts) -> answers.StatementAmounts:
    return {
        "total_usd": amounts.total / 100,
        "held_usd": amounts.held / 100,
        "idle_usd": amounts.idle / 100,
        "booting_usd": amounts.booting / 100,
        "gpu_hours": amounts.gpu_hours,
        "jobs": amounts.jobs,
    }


def _groups(found: Statement, name: Callable[[Whose], str | None]) -> list[answers.StatementGroup]:
    return [{"name": named, **_amounts(amounts)} for named, amounts in found.added_up(name).items()]


def _payers(
    found: Statement, money: MoneyState, hours: float, budget: Usd
) -> list[answers.StatementPayer]:
    """All parts of the budget from the top down, then whoever paid and is no part of it."""
    spent = found.added_up(lambda whose: whose.payer)
    tree = money.sharing or Budget(name=WHOLE)
    above = {part.name: inner.name for inner in tree.every for part in inner.parts}
    rows = []
    for part in tree.every:
        within = sum(spent.get(inner.name, Amounts()).total for inner in part.every)
        right = budget if part is tree else _right(part, money, hours, budget)
        rows.append(_payer(part.name, spent, above, within, right or None))
    known = {part.name for part in tree.every}
    others = [name for name in spent if name not in known]
    return rows + [_payer(name, spent, above, spent[name].total, None) for name in others]


def _payer(
    name: str | None,
    spent: Mapping[str | None, Amounts],
    above: Mapping[str, str],
    within: int,
    right: Usd | None,
) -> answers.StatementPayer:
    return {
        "name": name,
        "above": None if name is None else above.get(name),
        **_amounts(spent.get(name, Amounts())),
        "with_parts_usd": within / 100,
        "budget_usd": right,
    }
