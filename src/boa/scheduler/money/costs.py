"""Views of the ledger: by day, class and job, and what the month will come to. Pure.

Holds come by column: a month of a large cluster has a million of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

import numpy as np

from boa.model.cluster import JobId
from boa.model.held import Floats, Held, Ids
from boa.model.job import JobRecord
from boa.model.records import Hold, NodeRecord
from boa.model.streams import class_of, classes_of
from boa.scheduler.money.hold_columns import charged_spans, one_price_each
from boa.scheduler.money.ledger import Bill, bill, charged_between, hold_cost, usable_between
from boa.units import DAY_S, SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

By: TypeAlias = Literal["day", "class", "job"]
Rows: TypeAlias = list[dict[str, Any]]
_FIGURES = ("total_usd", "jobs_usd", "idle_usd", "provisioning_usd", "gpu_hours")


def costs(
    nodes: Sequence[NodeRecord],
    held: Held,
    since: Seconds,
    until: Seconds,
    by: By | None = None,
    names: Mapping[JobId, str] | None = None,
) -> tuple[Bill, Rows]:
    """The same as `bill`, and its rows: they add up to it, GPU-hours too.

    By UTC day, in order; or by class or job, the dearest first. What no job held (idle and
    provisioning) is the last row then, with None for its class or job. `names`: of jobs.
    """
    whole = bill(nodes, (), since, until)
    if not nodes:
        return whole, []
    place, begin, end = charged_spans(nodes, held, since, until)
    charged_at_all = begin < end
    place, begin, end = place[charged_at_all], begin[charged_at_all], end[charged_at_all]
    gpus = held.gpus[charged_at_all]
    whose, begin, end, price = one_price_each(nodes, place, begin, end)
    gpus = gpus[whose]
    hours = (end - begin) * gpus / SECONDS_PER_HOUR
    charged = _held_of(whole, float(price @ hours))
    if by is None:
        return charged, []
    if by == "day":
        return charged, _by_day(nodes, begin, end, gpus * price, since, until)
    which, job = held.which[charged_at_all][whose], held.job[charged_at_all][whose]
    if by == "class":
        rows = _class_rows(held.streams, which, price * hours, hours)
    else:
        rows = _job_rows(held.streams, which, job, price * hours, hours, names or {})
    return charged, [*rows, *_not_held(nodes, charged, by, float(hours.sum()), since, until)]


def spent_on_holds(
    nodes: Sequence[NodeRecord], held: Held, since: Seconds, until: Seconds
) -> tuple[Ids, Ids, Floats, Floats]:
    """By column, for every hold that was charged: the place of its stream, the number of its job,
    USD and GPU-hours. There is at least one node."""
    place, begin, end = charged_spans(nodes, held, since, until)
    real = np.flatnonzero(begin < end)
    whose, begin, end, price = one_price_each(nodes, place[real], begin[real], end[real])
    of = real[whose]
    hours = (end - begin) * held.gpus[of] / SECONDS_PER_HOUR
    return held.which[of], held.job[of], price * hours, hours


def _held_of(whole: Bill, jobs: Usd) -> Bill:
    """`whole`: as if jobs had held nothing."""
    jobs = min(jobs, whole.idle)
    idle = whole.idle - jobs
    return Bill(total=whole.total, jobs=jobs, idle=idle, provisioning=whole.provisioning)


def _class_rows(streams: Sequence[str], which: Ids, usd: Floats, hours: Floats) -> Rows:
    """Whoever pays for them."""
    classes = {name: place for place, name in enumerate(classes_of(streams))}
    whose = np.array([classes[class_of(name)] for name in streams], np.int64)[which]
    sums = [np.bincount(whose, weights, len(classes)).tolist() for weights in (usd, hours)]
    rows = [
        {"class": name, **_held_figures(dollars, spent)}
        for name, dollars, spent in sorted(zip(classes, *sums, strict=True))
        if spent
    ]
    return sorted(rows, key=lambda row: -row["total_usd"])


def _job_rows(
    streams: Sequence[str],
    which: Ids,
    job: Ids,
    usd: Floats,
    hours: Floats,
    names: Mapping[JobId, str],
) -> Rows:
    numbers, first, place = np.unique(job, return_index=True, return_inverse=True)
    dollars, spent = np.bincount(place, usd), np.bincount(place, hours)
    order = np.argsort(-dollars, kind="stable")
    columns = (numbers[order], which[first[order]], dollars[order], spent[order])
    return [
        {"job": str(number), "name": names.get(str(number), ""), "class": class_of(streams[of])}
        | _held_figures(cost, gpu_hours)
        for number, of, cost, gpu_hours in zip(*(c.tolist() for c in columns), strict=True)
    ]


def _held_figures(usd: Usd, hours: float) -> dict[str, float]:
    """Figures of a row of which jobs held all."""
    return dict(zip(_FIGURES, (usd, usd, 0.0, 0.0, hours), strict=True))


def _not_held(
    nodes: Sequence[NodeRecord],
    charged: Bill,
    by: By,
    held: float,
    since: Seconds,
    until: Seconds,
) -> Rows:
    """The row of GPUs that were rented and no job held; none if nothing was rented."""
    spans = np.array([charged_between(node, since, until) for node in nodes])
    gpus = np.array([node.gpus for node in nodes], dtype=float)
    rented = float(gpus @ np.maximum(spans[:, 1] - spans[:, 0], 0.0)) / SECONDS_PER_HOUR
    if not rented:
        return []
    apart = charged.idle + charged.provisioning
    figures = (apart, 0.0, charged.idle, charged.provisioning, max(rented - held, 0.0))
    return [{by: None, **dict(zip(_FIGURES, figures, strict=True))}]


def cost_of_job(record: JobRecord, open_holds: Iterable[Hold], now: Seconds) -> Usd:
    return record.cost_usd + sum(hold_cost(h, now) for h in open_holds if h.job == record.id)


def month_of(now: Seconds) -> tuple[Seconds, Seconds]:
    """The beginning and the end of the calendar month, UTC."""
    first = datetime.fromtimestamp(now, UTC).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    return first.timestamp(), (first + timedelta(days=31)).replace(day=1).timestamp()


def forecast_month(spent: Usd, average: UsdPerHour, now: Seconds) -> Usd:
    """At the month's end, if the rest of it costs `average` per hour; `spent`: since it began."""
    _, end = month_of(now)
    return spent + average * (end - now) / SECONDS_PER_HOUR


# Days


def _by_day(
    nodes: Sequence[NodeRecord],
    begin: Floats,
    end: Floats,
    rates: Floats,
    since: Seconds,
    until: Seconds,
) -> Rows:
    """`begin`, `end`, `rates`: when each hold was charged, and USD per hour then."""
    paid = np.array([charged_between(node, since, until) for node in nodes])
    there = paid[:, 0] < paid[:, 1]
    if not there.any():
        return []
    usable = np.array([usable_between(node, since, until) for node in nodes])[there]
    some = [node for node, is_there in zip(nodes, there.tolist(), strict=True) if is_there]
    paid, gpus = paid[there], np.array([node.gpus for node in some], dtype=float)
    first = int(paid[:, 0].min() // DAY_S)
    days = -int(-paid[:, 1].max() // DAY_S) - first

    def dollars(spans: Floats) -> Floats:
        places, real = np.arange(len(some)), spans[:, 0] < spans[:, 1]
        begin, end = spans[real].T
        whose, begin, end, price = one_price_each(some, places[real], begin, end)
        return _on_days(first, days, begin, end, gpus[real][whose] * price)

    hours = _on_days(first, days, paid[:, 0], paid[:, 1], gpus)
    total, could = dollars(paid), dollars(usable)
    could = np.minimum(could, total)
    jobs = np.minimum(_on_days(first, days, begin, end, rates), could)
    columns = (total, jobs, could - jobs, total - could, hours)
    return [
        {"day": _date(first + day), **dict(zip(_FIGURES, figures, strict=True))}
        for day, figures in enumerate(zip(*(column.tolist() for column in columns), strict=True))
        if figures[-1]
    ]


def _on_days(first: int, days: int, begin: Floats, end: Floats, weights: Floats) -> Floats:
    """Hours of each day, weighted: most spans lie in one day, the others are cut at midnights."""
    real = begin < end
    begin, end, weights = begin[real], end[real], weights[real]
    day = (begin // DAY_S).astype(np.int64)
    number = np.ceil(end / DAY_S).astype(np.int64) - day
    one = np.repeat(np.arange(len(day)), number)
    day = day[one] + np.arange(len(one)) - np.repeat(np.cumsum(number) - number, number)
    seconds = np.minimum(end[one], (day + 1) * DAY_S) - np.maximum(begin[one], day * DAY_S)
    found = np.bincount(day - first, seconds * weights[one], days).astype(np.float64)
    return found / SECONDS_PER_HOUR


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()
