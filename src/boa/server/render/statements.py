"""A month's statement, read from the store, and as a document."""

import calendar
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from boa.api import reports as answers
from boa.errors import InputError
from boa.model.budgets import WHOLE, Budget
from boa.model.notices import MonthSpent, NotifyTarget, alerts_of
from boa.model.streams import class_of
from boa.runtime.history import BEFORE_S, average_budget
from boa.scheduler.money import rights
from boa.scheduler.money.cents import in_usd
from boa.scheduler.money.costs import month_of
from boa.scheduler.money.grouping import payer_of
from boa.scheduler.money.holders import Of
from boa.scheduler.money.money_state import MoneyState
from boa.scheduler.money.months import Allowed, month_name
from boa.scheduler.money.rights import Month
from boa.scheduler.money.statement import RULE, Amounts, Statement, Whose, statement
from boa.server.render.charges import jobs_of
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


def read_statement(
    store: Store,
    money: MoneyState,
    first: Seconds,
    end: Seconds,
    now: Seconds,
    targets: Sequence[NotifyTarget] = (),
) -> answers.Statement:
    """Blocks on the store. Up to now, of a month in progress. `targets`: who is told of money."""
    until = min(end, now)
    nodes, held = store.nodes_between(first, until), store.held_between(first, until)
    records = jobs_of(store, held.job.tolist())
    pays = payer_of(money.sharing)

    def whose(of: Of) -> Whose:
        record = records.get(of[0])
        user, team = ("", "") if record is None else (record.owner, record.team)
        return Whose(pays(of[1]), user, team, class_of(of[1]))

    found = statement(nodes, held, first, until, whose)
    tags = sorted({kind for record in records.values() for kind in record.spec.tags})
    month = month_of_budget(store, money, first, end, now)
    stops = [record.stops.get(month_name(first)) for record in records.values()]
    times, lost_s, lost_usd = map(sum, zip((0, 0.0, 0.0), *filter(None, stops), strict=True))
    preempted: answers.StatementPreempted = {"times": times, "lost_s": lost_s, "lost_usd": lost_usd}
    return document(found, money, month, tags, alerts_of(targets), preempted)


def month_of_budget(
    store: Store, money: MoneyState, first: Seconds, end: Seconds, now: Seconds
) -> Month:
    """With what its budget has allowed: as counted, and before that, by versions that did not, as
    it was noted down from time to time."""
    counted = money.months.get(month_name(first))
    until = min(end, now) if counted is None else counted.since
    samples = store.sampled_between(first - BEFORE_S, until)
    noted = average_budget(samples, first, until)
    if noted is None:
        return Month(first, end, now, counted)
    since = max(float(samples.at[0]), first)
    usd = noted * (until - since) / SECONDS_PER_HOUR
    return Month(first, end, now, Allowed(since, usd + (counted.usd if counted else 0.0)))


def month_spent(store: Store, money: MoneyState, now: Seconds) -> list[MonthSpent]:
    """The present month so far: of the whole, and of all parts that have a right of their own, with
    their share of what nobody held."""
    first, end = month_of(now)
    nodes, held = store.nodes_between(first, now), store.held_between(first, now)
    pays = payer_of(money.sharing)
    found = statement(nodes, held, first, now, lambda of: Whose(pays(of[1]), "", "", None))
    by_payer = found.added_up(lambda whose: whose.payer)
    month = month_of_budget(store, money, first, end, now)
    budget = rights.of_whole(money, month)
    spent = [MonthSpent(month=first, part="", spent=in_usd(found.bill.total), allowed=budget)]
    for part in [] if money.sharing is None else list(money.sharing.every)[1:]:
        within = sum(by_payer.get(inner.name, Amounts()).total for inner in part.every)
        allowed = rights.of_part(part, money, month, budget)
        if allowed > 0:
            one = MonthSpent(month=first, part=part.name, spent=in_usd(within), allowed=allowed)
            spent.append(one)
    return spent


def document(
    found: Statement,
    money: MoneyState,
    month: Month,
    tag_kinds: list[str],
    alerts: list[float],
    preempted: answers.StatementPreempted,
) -> answers.Statement:
    first = datetime.fromtimestamp(found.since, UTC)
    return {
        **_amounts(found.bill),
        "month": month_name(found.since),
        "since": found.since,
        "until": found.until,
        "days_in_month": calendar.monthrange(first.year, first.month)[1],
        "complete": month.over,
        "budget_usd": rights.of_whole(money, month),
        "budget_since": month.begun,
        "budget_until": month.end,
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
        "by_payer": _payers(found, money, month),
        "by_team": _groups(found, lambda whose: whose.team),
        "by_user": _groups(found, lambda whose: whose.user),
        "by_class": _groups(found, lambda whose: whose.job_class),
        "by_day": [{"day": day, **_amounts(amounts)} for day, amounts in found.days.items()],
        "tag_kinds": tag_kinds,
        "alerts": alerts,
        "preempted": preempted,
        "now": month.now,
    }


def _amounts(amounts: Amounts) -> answers.StatementAmounts:
    return {
        "total_usd": in_usd(amounts.total),
        "held_usd": in_usd(amounts.held),
        "idle_usd": in_usd(amounts.idle),
        "booting_usd": in_usd(amounts.booting),
        "gpu_hours": amounts.gpu_hours,
        "jobs": amounts.jobs,
        "exact_usd": {
            "total": sum(amounts.exact),
            "held": amounts.exact.held,
            "idle": amounts.exact.idle,
            "booting": amounts.exact.booting,
        },
    }


def _groups(found: Statement, name: Callable[[Whose], str | None]) -> list[answers.StatementGroup]:
    return [{"name": named, **_amounts(amounts)} for named, amounts in found.added_up(name).items()]


def _payers(found: Statement, money: MoneyState, month: Month) -> list[answers.StatementPayer]:
    """All parts of the budget from the top down, then whoever paid and is no part of it."""
    spent = found.added_up(lambda whose: whose.payer)
    tree = money.sharing or Budget(name=WHOLE)
    above = {part.name: inner.name for inner in tree.every for part in inner.parts}
    rows, whole = [], rights.of_whole(money, month)
    for part in tree.every:
        within = sum(spent.get(inner.name, Amounts()).total for inner in part.every)
        right = whole if part is tree else rights.of_part(part, money, month, whole)
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
        "with_parts_usd": in_usd(within),
        "budget_usd": right,
    }
