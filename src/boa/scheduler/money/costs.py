"""Views of the ledger: by day, class and job, and what the month will come to. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

import numpy as np

from boa.model.cluster import JobId, NodeId
from boa.model.held import Floats, Held, HeldOnNodes
from boa.model.job import JobRecord
from boa.model.records import Hold, NodeRecord
from boa.scheduler.money.hold_columns import charged_spans, charged_sums
from boa.scheduler.money.ledger import (
    Bill,
    bill,
    charged_between,
    held_seconds,
    hold_cost,
    usable_between,
)
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

By: TypeAlias = Literal["day", "class", "job"]
DAY_S: Seconds = 86_400.0


def cost_rows(
    nodes: Sequence[NodeRecord],
    holds: Sequence[Hold],
    jobs: Mapping[JobId, JobRecord],
    by: By,
    since: Seconds,
    until: Seconds,
) -> list[dict[str, Any]]:
    """Charges between two moments, in rows that add up to the bill, GPU-hours too.

    By UTC day, in order; or by class or job, the dearest first. What no job held (idle and
    provisioning) is the last row then, with None for its class or job.
    """
    if by == "day":
        return _by_day(nodes, holds, since, until)
    return _by_holder(nodes, holds, jobs, by, since, until)


def bill_by_node(
    nodes: Sequence[NodeRecord],
    held: HeldOnNodes,
    apart: Callable[[Sequence[NodeId]], Held],
    since: Seconds,
    until: Seconds,
) -> Bill:
    """The same as `bill`, in less time still; `apart` as in `charged_sums`."""
    whole = bill(nodes, (), since, until)
    if not nodes:
        return whole
    prices = np.array([node.price for node in nodes])
    sums = charged_sums(nodes, held, apart, since, until)
    return _held_of(whole, float(prices @ sums) / SECONDS_PER_HOUR)


def _held_of(whole: Bill, jobs: Usd) -> Bill:
    """`whole`: as if jobs had held nothing."""
    jobs = min(jobs, whole.idle)
    idle = whole.idle - jobs
    return Bill(total=whole.total, jobs=jobs, idle=idle, provisioning=whole.provisioning)


def costs_by_class(
    nodes: Sequence[NodeRecord], held: Held, since: Seconds, until: Seconds
) -> tuple[Bill, list[dict[str, Any]]]:
    """The same as `bill` and `cost_rows` by class, in a fraction of the time."""
    whole = bill(nodes, (), since, until)
    if not nodes:
        return whole, []
    place, begin, end = charged_spans(nodes, held, since, until)
    hours = np.maximum(end - begin, 0.0) * held.gpus / SECONDS_PER_HOUR
    usd = hours * np.array([node.price for node in nodes])[place]
    rows = _class_rows(held.job_class, usd, hours)
    charged = _held_of(whole, float(usd.sum()))
    rented = sum(_gpu_hours(node, since, until) for node in nodes)
    if rented:
        apart = {"idle_usd": charged.idle, "provisioning_usd": whole.provisioning}
        left = max(rented - float(hours.sum()), 0.0)
        total = {"total_usd": charged.idle + whole.provisioning, "jobs_usd": 0.0, "gpu_hours": left}
        rows.append({"class": None, **total, **apart})
    return charged, rows


def _class_rows(classes: Sequence[str], usd: Floats, hours: Floats) -> list[dict[str, Any]]:
    """The dearest first."""
    names = sorted(set(classes))
    numbers = {name: number for number, name in enumerate(names)}
    which = np.array([numbers[name] for name in classes], dtype=np.int64)
    columns = (np.bincount(which, usd).tolist(), np.bincount(which, hours).tolist())
    rows: list[dict[str, Any]] = [
        {"class": name, **dict.fromkeys(_FIGURES, 0.0)}
        | {"total_usd": dollars, "jobs_usd": dollars, "gpu_hours": spent}
        for name, dollars, spent in zip(names, *columns, strict=True)
        if spent
    ]
    return sorted(rows, key=lambda row: -row["total_usd"])


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


def _by_day(
    nodes: Sequence[NodeRecord], holds: Sequence[Hold], since: Seconds, until: Seconds
) -> list[dict[str, Any]]:
    on_day: dict[int, tuple[list[NodeRecord], list[Hold]]] = {}
    for node in nodes:
        for day in _days(*charged_between(node, since, until)):
            on_day.setdefault(day, ([], []))[0].append(node)
    for hold in holds:
        end = until if hold.until is None else min(hold.until, until)
        for day in _days(max(hold.since, since), end):
            if day in on_day:
                on_day[day][1].append(hold)
    rows = []
    for day in sorted(on_day):
        window = max(day * DAY_S, since), min((day + 1) * DAY_S, until)
        rows.append({"day": _date(day), **_figures(*on_day[day], *window)})
    return rows


def _days(begin: Seconds, end: Seconds) -> range:
    """Every day that some of this lies in."""
    return range(int(begin // DAY_S), -int(-end // DAY_S)) if begin < end else range(0)


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()


def _figures(
    nodes: Sequence[NodeRecord], holds: Sequence[Hold], since: Seconds, until: Seconds
) -> dict[str, float]:
    found = bill(nodes, holds, since, until)
    return {
        "total_usd": found.total,
        "jobs_usd": found.jobs,
        "idle_usd": found.idle,
        "provisioning_usd": found.provisioning,
        "gpu_hours": sum(_gpu_hours(node, since, until) for node in nodes),
    }


def _gpu_hours(node: NodeRecord, since: Seconds, until: Seconds) -> float:
    begin, end = charged_between(node, since, until)
    return node.gpus * max(end - begin, 0.0) / SECONDS_PER_HOUR


def _by_holder(
    nodes: Sequence[NodeRecord],
    holds: Sequence[Hold],
    jobs: Mapping[JobId, JobRecord],
    by: Literal["class", "job"],
    since: Seconds,
    until: Seconds,
) -> list[dict[str, Any]]:
    usable: dict[NodeId, tuple[tuple[Seconds, Seconds], UsdPerHour]] = {
        node.id: (usable_between(node, since, until), node.price) for node in nodes
    }
    rows: dict[str, dict[str, Any]] = {}
    for hold in holds:
        window, price = usable.get(hold.node, ((until, until), 0.0))
        hours = hold.gpus * held_seconds(hold, window) / SECONDS_PER_HOUR
        if hours:
            key = hold.job_class if by == "class" else hold.job
            row = rows.setdefault(key, _empty_row(by, key, hold, jobs))
            row["total_usd"] += hours * price
            row["jobs_usd"] += hours * price
            row["gpu_hours"] += hours
    found = sorted(rows.values(), key=lambda row: -row["total_usd"])
    return [*found, *_not_held(nodes, holds, found, by, since, until)]


def _empty_row(
    by: Literal["class", "job"], key: str, hold: Hold, jobs: Mapping[JobId, JobRecord]
) -> dict[str, Any]:
    row: dict[str, Any] = {by: key}
    if by == "job":
        name = jobs[key].name if key in jobs else ""
        row |= {"name": name, "class": hold.job_class}
    return row | dict.fromkeys(_FIGURES, 0.0)


_FIGURES = ("total_usd", "jobs_usd", "idle_usd", "provisioning_usd", "gpu_hours")


def _not_held(
    nodes: Sequence[NodeRecord],
    holds: Sequence[Hold],
    held: Sequence[Mapping[str, Any]],
    by: Literal["class", "job"],
    since: Seconds,
    until: Seconds,
) -> list[dict[str, Any]]:
    """The row of GPUs that were rented and no job held; none if nothing was rented."""
    whole = _figures(nodes, holds, since, until)
    if not whole["gpu_hours"]:
        return []
    apart = whole["idle_usd"] + whole["provisioning_usd"]
    hours = max(whole["gpu_hours"] - sum(row["gpu_hours"] for row in held), 0.0)
    return [{by: None, **whole, "total_usd": apart, "jobs_usd": 0.0, "gpu_hours": hours}]
