"""Prometheus metrics: read off the snapshot when asked, nothing kept."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from boa.model.job import ENDED, State
from boa.runtime.snapshot import Snapshot
from boa.scheduler.learn.rescaling import ORDER
from boa.scheduler.money.forecast import Forecast
from boa.scheduler.money.money_state import PartState
from boa.scheduler.observe.histogram import up_to
from boa.scheduler.observe.sampling import wanted

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ACTIVE: tuple[State, ...] = ("waiting", "starting", "running", "rescaling", "preempted")
_COUNTED = (
    ("boa_jobs_submitted", "submitted", "Jobs submitted."),
    ("boa_rescalings", "rescalings", "Changes of GPUs by decision, after jobs' first starts."),
    ("boa_restarts", "restarts", "Starts after a failure or loss."),
    ("boa_plans", "plans", "Plans made."),
    ("boa_steps", "steps", "Steps of the control loop."),
    ("boa_late_steps", "late_steps", "Steps that took too long."),
    ("boa_store_trouble", "store_trouble", "Steps that could not be stored."),
    ("boa_cloud_trouble", "cloud_trouble", "Times that the cloud could not be asked."),
    ("boa_engine_trouble", "engine_trouble", "Times that the engine could not be asked."),
    ("boa_crashes", "crashes", "Steps ended by a bug."),
)
"""Counters of this process's life: metric, counter, help."""


class SnapshotCollector(Collector):
    def __init__(self, snapshot: Snapshot, month: Forecast | None) -> None:
        self._snapshot, self._month = snapshot, month

    def collect(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        yield from _jobs(snapshot)
        yield from _training(snapshot)
        yield from _money(snapshot)
        if self._month is not None:
            yield from _forecast(self._month)
        yield from _cluster(snapshot)
        yield from _plan(snapshot)
        yield from _loop(snapshot)


def exposition(snapshot: Snapshot, month: Forecast | None = None) -> bytes:
    """`month`: None where the store cannot be read: the rest is told all the same."""
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(snapshot, month))
    return generate_latest(registry)


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(name, about, value=value)


def _jobs(snapshot: Snapshot) -> Iterator[Metric]:
    count = snapshot.counters.get
    active = GaugeMetricFamily("boa_jobs", "Active jobs by state.", labels=["state"])
    states = Counter(record.state for record in snapshot.jobs.values())
    for state in ACTIVE:
        active.add_metric([state], states[state])
    yield active
    ended = CounterMetricFamily("boa_jobs_ended", "Jobs that ended, by how.", labels=["state"])
    for state in sorted(ENDED):
        ended.add_metric([state], count(state, 0.0))
    yield ended
    classes = GaugeMetricFamily("boa_jobs_by_class", "Active jobs by class.", labels=["class"])
    for name, number in sorted(Counter(r.job_class for r in snapshot.jobs.values()).items()):
        classes.add_metric([name], number)
    yield classes
    yield _durations(
        snapshot,
        "jct",
        "succeeded",
        "Job completion times, submission to end, of jobs that succeeded.",
    )
    yield _durations(snapshot, "queueing", "started", "Times from submission to the first start.")


def _durations(snapshot: Snapshot, what: str, counted: str, about: str) -> Metric:
    count = snapshot.counters.get
    bounds = [(str(bound), number) for bound, number in up_to(what, snapshot.counters)]
    return HistogramMetricFamily(
        f"boa_{what}_seconds",
        about,
        buckets=[*bounds, ("+Inf", count(counted, 0.0))],
        sum_value=count(f"{what}_s", 0.0),
    )


def _training(snapshot: Snapshot) -> Iterator[Metric]:
    count = snapshot.counters.get
    rescaling = SummaryMetricFamily(
        "boa_rescaling_seconds",
        "What rescalings and other starts took: as a whole, and by part as far as jobs tell.",
        labels=["part"],
    )
    for part in ORDER:
        rescaling.add_metric(
            [part],
            count_value=int(count(f"rescaling_{part}", 0)),
            sum_value=count(f"rescaling_{part}_s", 0.0),
        )
    yield rescaling
    told: dict[str, list[float]] = defaultdict(list)
    for record in snapshot.jobs.values():
        if "noise_scale" in record.metrics:
            told[record.job_class].append(record.metrics["noise_scale"])
    noise = GaugeMetricFamily(
        "boa_noise_scale_samples",
        "Gradient noise scale of a class: mean of what its active jobs told last.",
        labels=["class"],
    )
    for name, values in sorted(told.items()):
        noise.add_metric([name], sum(values) / len(values))
    yield noise


_OfPart: TypeAlias = Callable[[PartState], float | None]
_now: _OfPart = attrgetter("now_per_hour")
_right: _OfPart = attrgetter("right_now")
_lent: _OfPart = attrgetter("lent")


def _left(part: PartState) -> float | None:
    return None if part.stretch is None else part.stretch.left


def _money(snapshot: Snapshot) -> Iterator[Metric]:
    money = snapshot.money
    for name, about, value in (
        ("boa_budget_usd_per_hour", "Average spend that is steered to.", money.budget),
        ("boa_effective_budget_usd_per_hour", "What is planned with.", money.effective),
        ("boa_spend_usd_per_hour", "What is rented now costs so much.", money.now_per_hour),
        ("boa_average_spend_usd_per_hour", "Since the budget was set.", money.average),
    ):
        yield _gauge(name, about, value)
    if money.calendar is not None:
        about = "On average over a week, where it changes by the hour."
        yield _gauge("boa_week_budget_usd_per_hour", about, money.calendar.week)
    if money.max_spend is not None:
        yield _gauge("boa_max_spend_usd_per_hour", "Never crossed.", money.max_spend)
    parts = CounterMetricFamily("boa_spent_usd", "Spent ever, by what for.", labels=["part"])
    for part, amount in (
        ("jobs", money.jobs),
        ("idle", money.idle),
        ("provisioning", money.provisioning),
    ):
        parts.add_metric([part], amount)
    yield parts
    yield from _sharers(money.parts)


def _sharers(parts: Sequence[PartState]) -> Iterator[Metric]:
    """Those who share the budget, if somebody does."""
    for name, about, value in (
        ("spend_usd_per_hour", "What its jobs hold, and its part of the rest.", _now),
        ("right_usd_per_hour", "What it has by right now.", _right),
        ("lent_usd", "Of its money, by others; negative: it owes.", _lent),
        ("left_usd", "Of its money for a month, a quarter or a project.", _left),
    ):
        family = GaugeMetricFamily(f"boa_budget_part_{name}", about, labels=["part"])
        for part in parts:
            if (amount := value(part)) is not None:
                family.add_metric([part.name], amount)
        if family.samples:
            yield family


def _forecast(month: Forecast) -> Iterator[Metric]:
    about = "This month (UTC) at its end, at the pace of its history; absent below an hour of it."
    if month.amount is not None:
        yield _gauge("boa_forecast_month_usd", about, month.amount)


def _cluster(snapshot: Snapshot) -> Iterator[Metric]:
    nodes = GaugeMetricFamily(
        "boa_nodes", "Nodes by GPU type and state.", labels=["gpu_type", "state"]
    )
    count = Counter((node.gpu, node.state) for node in snapshot.nodes.values())
    for (gpu, state), number in sorted(count.items()):
        nodes.add_metric([gpu, state], number)
    yield nodes
    rented: dict[str, int] = defaultdict(int)
    used: dict[str, int] = defaultdict(int)
    for node in snapshot.nodes.values():
        rented[node.gpu] += node.gpus if node.billed_from is not None else 0
    for hold in snapshot.holds.values():
        if hold.node in snapshot.nodes:
            used[snapshot.nodes[hold.node].gpu] += hold.gpus
    planned = wanted(snapshot.jobs.values())
    for name, about, counted in (
        ("boa_gpus_rented", "GPUs that are paid for.", rented),
        ("boa_gpus_used", "GPUs that jobs hold.", used),
        ("boa_gpus_wanted", "GPUs that the plan has for all active jobs.", planned),
    ):
        family = GaugeMetricFamily(name, about, labels=["gpu_type"])
        for gpu in sorted(rented.keys() | planned.keys()):
            family.add_metric([gpu], counted.get(gpu, 0))
        yield family


def _plan(snapshot: Snapshot) -> Iterator[Metric]:
    plan = snapshot.plan
    if plan is None:
        return
    solution = plan.solution
    for name, about, value in (
        ("boa_solver_gap", "Of the plan in force: objective / lower bound − 1.", solution.gap),
        ("boa_solver_seconds", "How long the solver took for it.", plan.wall_s),
        ("boa_planned_jct_seconds", "Average JCT that it expects.", solution.average_jct),
        ("boa_planned_spend_usd_per_hour", "Spend that it expects.", solution.spend),
        ("boa_plan_age_seconds", "Since it is in force.", snapshot.now - plan.at),
        ("boa_budget_too_small", "1: no plan keeps up.", float(plan.too_small is not None)),
    ):
        yield _gauge(name, about, value)


def _loop(snapshot: Snapshot) -> Iterator[Metric]:
    count = snapshot.counters.get
    for name, key, about in _COUNTED:
        yield CounterMetricFamily(name, about, value=count(key, 0.0))
    yield _gauge("boa_step_seconds", "The last step of the control loop.", count("step_s", 0.0))
    yield _gauge("boa_slowest_step_seconds", "The slowest one.", count("slowest_step_s", 0.0))
    yield _gauge("boa_last_event", "Number of the newest event.", snapshot.last_event)
