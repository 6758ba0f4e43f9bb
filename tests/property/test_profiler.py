"""Whatever jobs report, what is learned from it can be planned with."""

import json
import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.records import ClassRecord, Report
from boa.policy.boa import within_reach
from boa.scheduler.learn import rescaling
from boa.scheduler.learn.profiler import Profiler
from profiling import TYPES, job, packed, profiler, ran, times
from strategies import numbers

anything = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 1e6), st.just(0.0)
)


@dataclass(frozen=True)
class Told:
    """Two reports of a run on so many GPUs."""

    gpu: str
    width: int
    before: Report
    after: Report


@st.composite
def reports(draw: st.DrawFn) -> Report:
    return Report(
        job="1",
        attempt=draw(st.integers(1, 2)),
        uptime_s=draw(anything),
        epoch=draw(st.integers(-1, 5)),
        progress=draw(anything),
        units=draw(anything),
    )


@st.composite
def tellings(draw: st.DrawFn) -> Told:
    gpu = draw(st.sampled_from(sorted(TYPES)))
    return Told(gpu, draw(st.integers(1, 20)), draw(reports()), draw(reports()))


def told(of: Profiler, all_told: list[Told], epochs: int, least: int, most: int) -> None:
    of.arrived(job(epochs=epochs, min=least, max=most), 0.0)
    for n, one in enumerate(all_told):
        run = packed(TYPES[one.gpu], one.width)
        record = job(n + 1, run=run)
        of.reported(record, one.before, one.after)
        of.epoch_done(record, one.after.epoch, one.after.progress)
        begun = replace(one.after, units=0.0)
        of.rescaled(record, rescaling.told(run, begun, now=begun.uptime_s))
        ended = replace(record, state="succeeded", epoch=max(one.after.epoch, 0))
        if math.isfinite(one.after.progress):
            of.ended(replace(ended, progress=one.after.progress), 0.0)


@given(
    all_told=st.lists(tellings(), max_size=8),
    epochs=st.integers(1, 4),
    least=st.integers(1, 4),
    more=st.integers(0, 20),
)
def test_any_reports_leave_a_workload_that_a_plan_can_be_made_for(
    all_told: list[Told], epochs: int, least: int, more: int
) -> None:
    of = profiler()
    told(of, all_told, epochs, least, least + more)
    assert isinstance(of.version, int)
    workload = of.workload(60.0)
    assert workload is not None
    (net,) = workload.classes
    tried = of.tried("net")
    for gpu in TYPES:
        bound = min(max(tried.get(gpu, 0), least), least + more)
        assert (net.min_on(gpu), net.max_on(gpu) <= bound) == (least, True)
    if "net" in workload.hopes:
        hoped = workload.hopes["net"]
        for gpu in TYPES:
            bound = min(max(2 * tried.get(gpu, 0), least), least + more)
            assert hoped.max_on(gpu) <= bound
    json.dumps(of.document("net", 60.0), allow_nan=False)
    if len(net.epochs) < 50:
        solution, _ = within_reach(workload, 10.0)
        assert math.isfinite(solution.objective)


@given(all_told=st.lists(tellings(), max_size=8), epochs=st.integers(1, 4))
def test_what_is_stored_is_all_there_is(all_told: list[Told], epochs: int) -> None:
    of = profiler()
    told(of, all_told, epochs, 1, 16)
    cells, classes = of.drain()
    after = profiler()
    after.load(cells, [ClassRecord(name=c.name, document=_through_json(c)) for c in classes])
    assert after.workload(60.0) == of.workload(60.0)


def _through_json(record: ClassRecord) -> dict[str, object]:
    document: dict[str, object] = json.loads(json.dumps(record.document, allow_nan=False))
    return document


@given(
    rates=st.dictionaries(st.integers(1, 16), numbers(0.5, 50.0), min_size=1, max_size=5),
    unit=st.sampled_from([1e-6, 0.1, 32.0, 1e6]),
)
def test_in_which_units_jobs_report_does_not_matter(rates: dict[int, float], unit: float) -> None:
    seconds = []
    for factor in (1.0, unit):
        of = profiler()
        of.arrived(job(), 0.0)
        for width, rate in rates.items():
            ran(of, packed(TYPES["T4"], width), rate=rate * factor)
        of.epoch_done(job(), 0, 500.0 * factor)
        seconds.append(times(of))
    assert seconds[1] == pytest.approx(seconds[0], rel=1e-6)


@given(
    rates=st.dictionaries(st.integers(1, 16), numbers(0.5, 50.0), min_size=1, max_size=6),
    factors=st.lists(numbers(0.2, 5.0), min_size=1, max_size=4),
)
def test_what_was_measured_at_every_width_and_epoch_is_what_is_predicted(
    rates: dict[int, float], factors: list[float]
) -> None:
    of = profiler()
    of.arrived(job(epochs=len(factors)), 0.0)
    for width, rate in rates.items():
        for epoch, factor in enumerate(factors):
            run = packed(TYPES["T4"], width)
            ran(of, run, rate=rate * factor, epoch=epoch, seconds=1e6)
    for epoch, factor in enumerate(factors):
        found = of.prediction("net").rates("T4", epoch)
        assert found is not None
        for width, rate in rates.items():
            across = int(width > TYPES["T4"].gpus_per_node)
            assert found[across, width] == pytest.approx(rate * factor, rel=0.01)
