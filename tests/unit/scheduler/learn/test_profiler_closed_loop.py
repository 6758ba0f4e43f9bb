"""Learning and planning together, from nothing: jobs run at the widths that plans give them."""

from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from boa.model.cluster import ClusterView, JobView, Share
from boa.model.job import JobRecord
from boa.model.records import Report
from boa.policy.boa import Boa, Planned, planned_of, within_reach
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.plan.calculator import InlineCalculator, PlanQuestion, due
from boa.solver.planner import evaluate
from profiling import HOUR, T4, job, packed, took

TICK_S = 30.0
RESCALE_S = 20.0
HOURS, PER_HOUR = 24.0, 4.0
EPOCH_UNITS = 12000.0
EPOCH_FACTORS = (1.0, 0.7, 1.3)
LIMITS = {"min": 1, "max": 24}


def true_rate(width: int, epoch: int) -> float:
    """Amdahl's law, and a step down where a second node is needed."""
    across = 0.85 if width > T4.gpus_per_node else 1.0
    return 5.0 / (0.04 + 0.96 / width) * across * EPOCH_FACTORS[epoch]


@dataclass
class Running:
    record: JobRecord
    share: Share | None = None
    attempt: int = 0
    began: float = 0.0
    units: float = 0.0
    last: Report | None = None


@dataclass
class Lab:
    """A cluster in which everything that is asked for is there at once."""

    budget: float
    seed: int
    profiler: Profiler = field(default_factory=lambda: Profiler({"T4": T4}, {}, began=0.0))
    calculator: InlineCalculator = field(default_factory=InlineCalculator)
    planned: Planned | None = None
    now: float = 0.0
    asked: tuple[float | None, int, int] = (None, -1, 0)
    jobs: dict[str, Running] = field(default_factory=dict)
    seconds_at: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    widest_offered: list[tuple[int, int]] = field(default_factory=list)
    """At every plan: widest width tried, widest offered."""
    done: int = 0

    def run(self, hours: float, per_hour: float) -> None:
        rng = np.random.default_rng(self.seed)
        arrivals = np.cumsum(rng.exponential(HOUR / per_hour, int(hours * per_hour * 2)))
        coming = [t for t in arrivals.tolist() if t < hours * HOUR]
        number = 0
        while self.now < hours * HOUR:
            while coming and coming[0] <= self.now:
                coming.pop(0)
                number += 1
                record = job(number, epochs=len(EPOCH_FACTORS), **LIMITS)
                self.jobs[record.id] = Running(record)
                self.profiler.arrived(record, self.now)
            self._plan()
            self._give()
            self.now += TICK_S
            for one in list(self.jobs.values()):
                self._train(one, rng)

    def _plan(self) -> None:
        at, version, number = self.asked
        now = self.profiler.version
        why = due(self.now, at, version, now, self.budget, self.budget, 900.0)
        workload = self.profiler.workload(self.now) if why else None
        if workload is None:
            return
        self.asked = (self.now, now, number + 1)
        self.calculator.request(PlanQuestion(workload, self.budget, number + 1))
        answer = self.calculator.poll()
        assert answer is not None
        assert answer.solution is not None, answer.error
        self.planned = planned_of(answer.solution, now, self.now, number + 1, answer.trials)
        tried = self.profiler.tried("net").get("T4", 0)
        self.widest_offered.append((tried, workload.classes[0].max_on("T4")))

    def _give(self) -> None:
        views = [self._view(one) for one in self.jobs.values()]
        view = ClusterView(
            now=self.now, jobs=views, nodes=(), gpu_types={"T4": T4}, memory=self.planned
        )
        for name, share in Boa().decide(view).shares.items():
            one = self.jobs[name]
            before, one.share = one.share, share
            if before is None or before.width != share.width:
                one.attempt += 1
                one.began, one.units, one.last = self.now, 0.0, None
                run = packed(T4, share.width, one.attempt)
                one.record = replace(one.record, run=run, allocation=run.allocation)

    def _view(self, one: Running) -> JobView:
        record = one.record
        return JobView(
            id=record.id,
            job_class="net",
            arrival=0.0,
            serial=record.serial,
            epoch=record.epoch,
            prediction=self.profiler.prediction("net"),
            allocation=record.allocation,
            service=float(one.attempt),
            note=None if one.share is None else one.share.note,
        )

    def _train(self, one: Running, rng: np.random.Generator) -> None:
        """One tick, and its report: rates differ by 5 % from tick to tick."""
        if one.share is None:
            return
        width, record = one.share.width, one.record
        assert LIMITS["min"] <= width <= LIMITS["max"]
        if self.now - one.began <= RESCALE_S:
            return
        first = one.last is None
        seconds = min(TICK_S, self.now - one.began - RESCALE_S)
        self.seconds_at[width] += seconds
        made = true_rate(width, record.epoch) * seconds * float(np.exp(rng.normal(0.0, 0.05)))
        epoch, progress = record.epoch, record.progress + made
        if progress >= EPOCH_UNITS:
            self.profiler.epoch_done(record, epoch, EPOCH_UNITS)
            epoch, progress = epoch + 1, progress - EPOCH_UNITS
        one.units += made
        report = Report(
            job=record.id,
            attempt=one.attempt,
            uptime_s=self.now - one.began,
            epoch=epoch,
            progress=progress,
            units=one.units,
        )
        if first:
            self.profiler.rescaled(record, took(RESCALE_S))
        self.profiler.reported(record, one.last, report)
        one.last, one.record = report, replace(record, epoch=epoch, progress=progress)
        if epoch == len(EPOCH_FACTORS):
            self.profiler.ended(replace(one.record, state="succeeded", progress=0.0), self.now)
            del self.jobs[record.id]
            self.done += 1


@pytest.fixture(scope="module", params=[(9.0, 1), (14.0, 2), (40.0, 3)], ids=lambda p: f"${p[0]}/h")
def lab(request: pytest.FixtureRequest) -> Lab:
    budget, seed = request.param
    lab = Lab(budget=budget, seed=seed)
    lab.run(hours=HOURS, per_hour=PER_HOUR)
    return lab


def test_at_the_widths_in_use_what_is_learned_is_within_ten_percent_of_the_truth(lab: Lab) -> None:
    used = [width for width, seconds in lab.seconds_at.items() if seconds > 900.0]
    assert used
    for epoch in range(len(EPOCH_FACTORS)):
        rates = lab.profiler.prediction("net").rates("T4", epoch)
        assert rates is not None
        for width in used:
            learned = float(rates[int(width > T4.gpus_per_node), width])
            assert learned == pytest.approx(true_rate(width, epoch), rel=0.1)


def test_the_widths_that_the_last_plan_gives_are_those_that_were_measured(lab: Lab) -> None:
    assert lab.planned is not None
    widths = {int(w) for v in lab.planned.by_class["net"] for w in v.widths}
    assert widths <= {width for width, seconds in lab.seconds_at.items() if seconds > 0}


def test_exploration_never_exceeds_its_bounds(lab: Lab) -> None:
    assert lab.widest_offered[0] == (0, 1)
    for tried, offered in lab.widest_offered:
        assert LIMITS["min"] <= offered <= min(max(2 * tried, LIMITS["min"]), LIMITS["max"])


def test_everything_else_is_learned_too(lab: Lab) -> None:
    found = lab.profiler.workload(lab.now)
    assert found is not None
    (net,) = found.classes
    assert lab.done > 0.7 * HOURS * PER_HOUR
    assert net.arrivals_per_hour == pytest.approx(PER_HOUR, rel=0.25)
    assert net.rescale_s == pytest.approx(RESCALE_S, rel=0.05)
    assert lab.profiler.remaining(job()) == pytest.approx([EPOCH_UNITS] * 3, rel=0.01)


def test_planning_settles_down(lab: Lab) -> None:
    """A plan every quarter of an hour, and those that exploring takes: not one at every report."""
    assert lab.planned is not None
    assert lab.planned.plans < 2.5 * HOURS * 4


def test_the_plan_that_learning_ends_with_is_nearly_that_of_the_truth(lab: Lab) -> None:
    """Only what was never tried can be missed."""
    known = Profiler({"T4": T4}, {}, began=0.0)
    known.arrived(job(epochs=3, total_work=3 * EPOCH_UNITS, **LIMITS), 0.0)
    widest = max(lab.seconds_at)
    assert lab.planned is not None
    for width in range(1, widest + 1):
        for epoch in range(3):
            told = job(run=packed(T4, width))
            rate = true_rate(width, epoch) * 1e5
            start = Report(job="1", attempt=1, uptime_s=0.0, epoch=epoch, progress=0.0, units=0.0)
            end = replace(start, uptime_s=1e5, units=rate, progress=rate)
            known.reported(told, start, end)
    workload = known.workload(0.0)
    assert workload is not None
    mine = replace(
        lab.planned.solution.workload.classes[0], epochs=workload.classes[0].epochs, max_gpus=widest
    )
    true = replace(workload, classes=(mine,))
    best, _ = within_reach(true, lab.budget)
    got = evaluate(true, lab.planned.solution.plan)
    assert got.spend <= best.spend * 1.1
    assert got.objective <= best.objective * 1.1
