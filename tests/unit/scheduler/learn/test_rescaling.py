"""What rescalings take: by part, by class and engine; and the noise that classes have."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.cli.live import show
from boa.model.job import GpuLimits, JobRecord, Run
from boa.model.records import RESCALE_PARTS, ClassRecord, Report
from boa.scheduler.learn.class_knowledge import RESCALE_S
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.learn.rescaling import OTHER, TOTAL, UNKNOWN, Rescalings, Told, told
from boa.train import session
from live import Live, profile, spec
from profiling import TYPES, job, on, planned_class, profiler, report, took

PARTS = {"stop": 0.2, "save": 0.5, "start": 1.0, "load": 0.3, "first_step": 0.4}
seconds = st.floats(0, 100)


def moved(decided_at: float = 10.0, requested_at: float = 11.0, **fields: Any) -> Run:
    return replace(on("T4", 2), decided_at=decided_at, requested_at=requested_at, **fields)


def saying(rescale: dict[str, float], units: float = 0.0) -> Report:
    return replace(report(1.0, units), rescale=rescale)


def after(run: Run, what: Told) -> Run:
    return replace(run, rescale=what.on(run), reported_at=15.0)


def test_jobs_and_service_know_the_same_parts() -> None:
    assert session.PARTS == RESCALE_PARTS
    assert (*RESCALE_PARTS, OTHER) == show.PARTS


# One rescaling


def test_what_no_part_explains_is_other_and_a_slow_first_step_is_part_of_it_all() -> None:
    found = told(moved(), saying(PARTS), now=15.0)
    assert found == Told({**PARTS, OTHER: 3.0, TOTAL: 5.4})


def test_a_job_that_tells_no_parts_has_a_total_and_nothing_is_other() -> None:
    assert told(moved(), saying({}), now=15.0) == Told({TOTAL: 5.0})


def test_a_run_tells_every_part_once() -> None:
    run = after(moved(), told(moved(), saying(PARTS), now=15.0))
    more = dict.fromkeys(PARTS, 9.0)
    assert told(run, saying(more), now=99.0) == Told({})
    assert told(run, saying(more, units=7.0), now=99.0) == Told({})


def test_parts_that_come_after_the_first_report_count_as_if_they_had_come_with_it() -> None:
    run = after(moved(), told(moved(), saying({}), now=15.0))
    late = told(run, saying(PARTS, units=7.0), now=40.0)
    assert late == Told({**PARTS, OTHER: 3.0}, longer=0.4)
    assert late.on(run) == told(moved(), saying(PARTS), now=15.0).on(moved())


def test_without_a_report_before_the_first_progress_nobody_knows_what_it_took() -> None:
    found = told(moved(), saying(PARTS, units=1.0), now=15.0)
    assert found == Told(PARTS)
    assert Rescalings().add(found).total.count == 0


@given(
    took_s=st.floats(0.1, 1000.0),
    rate=st.floats(0.01, 100.0),
    first_s=st.floats(1.0, 60.0),
    then_s=st.floats(1.0, 60.0),
)
def test_a_first_report_with_progress_is_a_measurement_once_the_pace_is_known(
    took_s: float, rate: float, first_s: float, then_s: float
) -> None:
    run = moved(reported_at=10.0 + took_s + first_s)
    first, then = report(first_s, rate * first_s), report(first_s + then_s, 0.0)
    then = replace(then, units=rate * (first_s + then_s))
    found = told(run, then, 10.0 + took_s + first_s + then_s, first)
    assert found.parts[TOTAL] == pytest.approx(took_s, rel=1e-6)


def test_no_pace_is_made_of_a_report_that_came_before_the_service_was_away() -> None:
    run = moved(reported_at=15.0)
    found = told(run, report(400.0, 400.0), 1000.0, report(390.0, 390.0))
    assert found == Told({})


@given(
    usual=st.lists(st.floats(0.9, 1.1), min_size=2, max_size=11),
    outlier=st.floats(1.2, 10_000.0),
    at=st.integers(0, 11),
)
def test_no_single_outlier_dominates(usual: list[float], outlier: float, at: int) -> None:
    values = [30.0 * value for value in usual]
    values.insert(min(at, len(values)), 30.0 * outlier)
    found = Rescalings()
    for value in values:
        found = found.add(took(value))
    assert found.total.value <= 30.0 * 1.1 + 1e-6


def test_a_wrapped_class_that_once_waited_for_an_hour_keeps_its_rescaling_time() -> None:
    of = on_engine("local")
    for seconds_ in (37.0, 35.0, 2636.0, 39.0, 2636.0, 36.0, 38.0):
        of.rescaled(job(), took(seconds_))
    assert of.rescale_s("net") == pytest.approx(37.0, rel=0.1)


def test_a_new_level_is_learned_all_the_same() -> None:
    of = on_engine("local")
    for seconds_ in [2.0] * 40 + [20.0] * 9:
        of.rescaled(job(), took(seconds_))
    assert of.rescale_s("net") == 20.0


def test_the_means_of_an_older_version_are_read_and_overruled_by_the_next() -> None:
    old = Rescalings.from_document({TOTAL: [2636.0, 4.0, 5]})
    assert old.total.value == 2636.0
    assert old.add(took(37.0)).total.value == 37.0
    assert Rescalings.from_document(old.add(took(37.0)).as_document()) == old.add(took(37.0))


@pytest.mark.parametrize("lasted", [[5.0] * 8, [4.0, 60.0], [19.0, 11.0, 11.0]])
def test_no_rescaling_is_believed_to_take_longer_than_a_whole_job(lasted: list[float]) -> None:
    of = on_engine("local")
    for number, seconds_ in enumerate(lasted):
        done = job(number + 1, state="succeeded", attempts=1, ran_s=seconds_, held_gpu_s=seconds_)
        of.arrived(done, 0.0)
        of.ended(done, 100.0)
    assert of.rescale_s("net") <= min(lasted) / 2
    whole = sum(lasted) / len(lasted)
    takes = planned_class(of).rescale_s + of.units("net")[0]
    assert takes == pytest.approx(whole, rel=0.05)
    (record,) = of.drain()[1]
    later = profiler()
    later.load([], [record])
    assert later.rescale_s("net") == of.rescale_s("net")


def test_an_older_stop_is_not_believed_where_no_run_was_stopped() -> None:
    fresh = moved(decided_at=11.0)
    found = told(fresh, saying(PARTS), now=15.0)
    expected = {"start": 1.0, "load": 0.3, "first_step": 0.4, OTHER: 2.7, TOTAL: 4.4}
    assert found.parts == pytest.approx(expected)


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -1.0, 1e9])
def test_times_that_cannot_be_are_left_out(nonsense: float) -> None:
    found = told(moved(), saying({"start": nonsense, "tea": 1.0, "load": 1.0}), now=15.0)
    assert found == Told({"load": 1.0, OTHER: 4.0, TOTAL: 5.0})
    assert TOTAL not in told(moved(), saying({}), now=nonsense).parts


@given(
    parts=st.dictionaries(st.sampled_from(RESCALE_PARTS), seconds),
    waited=seconds,
    split=st.integers(0, 5),
)
def test_parts_and_other_add_up_to_no_less_than_the_total_however_they_come(
    parts: dict[str, float], waited: float, split: int
) -> None:
    run, names = moved(), list(parts)
    whole = Rescalings()
    for some in (names[:split], names[split:]):
        what = told(run, saying({name: parts[name] for name in some}), now=10.0 + waited)
        run, whole = after(run, what), whole.add(what)
    known = dict(run.rescale)
    total = known.pop(TOTAL)
    assert total == pytest.approx(waited + parts.get("first_step", 0.0))
    assert {name: known[name] for name in parts} == parts
    if parts.keys() - {"first_step"}:
        assert sum(known.values()) >= total - 1e-9
    assert whole.total.mean.value == pytest.approx(total)
    assert {timed.count for _, timed in whole.listed()} == {1}


# Those of a class


def on_engine(engine: str, before: Profiler | None = None) -> Profiler:
    of = Profiler(TYPES, {}, began=0.0, engine=engine)
    of.load(*(before.drain() if before is not None else ([], [])))
    if before is None:
        of.arrived(job(), 0.0)
    return of


def test_the_first_measurement_overrules_what_nobody_said() -> None:
    of = on_engine("local")
    assert of.rescale_s("net") == RESCALE_S
    of.rescaled(job(), took(0.5))
    assert of.rescale_s("net") == 0.5


def test_another_engine_s_times_stand_in_until_this_one_has_its_own() -> None:
    local = on_engine("local")
    for _ in range(200):
        local.rescaled(job(), took(2.0))
    ray = on_engine("ray", local)
    assert ray.rescale_s("net") == local.rescale_s("net") == pytest.approx(2.0, rel=0.01)
    ray.rescaled(job(), took(70.0))
    assert ray.rescale_s("net") == 70.0
    assert planned_class(ray).rescale_s == ray.rescale_s("net")
    again = on_engine("local", ray)
    assert again.rescale_s("net") == local.rescale_s("net"), "both are kept"


def test_records_of_before_engines_were_told_apart_are_read() -> None:
    of = on_engine("local")
    of.rescaled(job(), took(4.0))
    of.rescaled(job(), took(4.0))
    (record,) = of.drain()[1]
    assert "rescale" not in record.document, "what is written twice may differ"
    old = {k: v for k, v in record.document.items() if k not in ("rescalings", "noise")}
    old["rescale"] = [4.0, 1.95]
    later = profiler()
    later.load([], [ClassRecord(name="net", document=old)])
    assert later.rescale_s("net") == of.rescale_s("net")
    document = later.document("net", 0.0)
    assert document is not None
    assert document["rescaling"] == {UNKNOWN: {TOTAL: {"mean_s": 4.0, "count": 2}}}
    assert document["noise_scale"] == [None]
    later.load([], [ClassRecord(name="net", document={**old, "rescale": [0.0, 0.0]})])
    assert later.rescale_s("net") == RESCALE_S


def test_a_late_first_step_moves_the_plan_s_rescaling_time() -> None:
    of, other = on_engine("local"), on_engine("local")
    for _ in range(3):
        of.rescaled(job(), Told({TOTAL: 5.0}))
        of.rescaled(job(), Told({"first_step": 4.0}, longer=4.0))
        other.rescaled(job(), took(9.0))
    assert of.rescale_s("net") == pytest.approx(other.rescale_s("net"))


# What is part of a rescaling is part of no rate


def trained(live: Live, parts: dict[str, float], *, every_s: float) -> tuple[float, float]:
    """What is learned (r, units per second) of a job that is ready after 5 s, has a first step of
    21 s and others of 1 s. By how much the first was longer it says after five others, if it tells
    `parts` at all."""
    job_id = live.submit(spec("long", gpus=GpuLimits(max=1)))
    run = live.job(job_id).run
    assert run is not None
    live.advance(5.0)
    for n in range(round(150 / every_s)):
        steps = max(0.0, n * every_s - 20.0)
        late = {"first_step": 20.0} if parts and steps > 5 else {}
        said = replace(report(5.0 + n * every_s, steps, attempt=run.attempt), job=job_id)
        live.loop.report(replace(said, rescale={**parts, **late}))
        live.settle()
        live.advance(every_s)
    document = live.loop.class_document("long")
    assert document is not None
    (engine,) = document["rescaling"].values()
    (sample,) = document["gpu_types"][0]["samples"]
    return engine[TOTAL]["mean_s"], sample["rate"]


@pytest.fixture
def slow(lives: Any) -> Live:
    """Its engine says nothing by itself for longer than these tests take."""
    live: Live = lives(profile("long", work=(36_000.0,), rescale_s=1000.0), billing="gpu")
    return live


@pytest.mark.parametrize("every_s", [1.0, 10.0, 40.0])
def test_a_slow_first_step_is_in_the_rescaling_time_and_not_in_the_rate(
    slow: Live, every_s: float
) -> None:
    assert trained(slow, {"start": 2.0, "load": 2.0}, every_s=every_s) == pytest.approx((25.0, 1.0))


def test_of_a_job_that_tells_no_parts_it_is_in_the_rate_and_not_in_the_rescaling_time(
    slow: Live,
) -> None:
    r, rate = trained(slow, {}, every_s=10.0)
    assert (r, rate) == pytest.approx((5.0, 120 / 140), rel=0.01)


def test_epochs_that_end_before_rates_begin_still_show_their_work() -> None:
    of = profiler()
    told_by = job(epochs=3, run=replace(on("T4", 1), rescale={"start": 1.0}))
    of.arrived(told_by, 0.0)
    of.reported(told_by, report(5.0, 0.0), report(50.0, 30.0, 3, progress=0.0))
    document = of.document("net", 0.0)
    assert document is not None
    assert document["work"] == [10.0, 10.0, 10.0]
    assert not any(gpu["samples"] for gpu in document["gpu_types"])


# Noise


def noisy(epoch: int, noise_scale: float) -> Report:
    return replace(report(1.0, 0.0, epoch), metrics={"noise_scale": noise_scale})


def noise_of(of: Profiler) -> Any:
    document = of.document("net", 0.0)
    assert document is not None
    return document["noise_scale"]


def test_the_noise_scale_is_a_mean_by_epoch_and_outlives_a_restart() -> None:
    of = profiler()
    told_by: JobRecord = job(epochs=3, run=on("T4", 1))
    of.arrived(told_by, 0.0)
    of.drain()
    for epoch, value in ((0, 100.0), (0, 200.0), (2, 4000.0), (0, math.nan), (1, -5.0), (1, 0.0)):
        of.reported(told_by, None, noisy(epoch, value))
    assert noise_of(of) == [pytest.approx((0.95 * 100 + 200) / 1.95), None, 4000.0]
    assert noise_of(on_engine("local", of)) == noise_of(of)


def test_a_noise_scale_that_hardly_moves_is_not_stored_again() -> None:
    of = profiler()
    told_by = job(run=on("T4", 1))
    of.arrived(told_by, 0.0)
    of.reported(told_by, None, noisy(0, 100.0))
    assert len(of.drain()[1]) == 1
    for _ in range(50):
        of.reported(told_by, None, noisy(0, 104.0))
    assert of.drain()[1] == []
    for _ in range(50):
        of.reported(told_by, None, noisy(0, 110.0))
    assert len(of.drain()[1]) == 1


# In the loop


def reports(live: Live, job_id: str, units: float, **fields: Any) -> None:
    run = live.job(job_id).run
    assert run is not None
    live.loop.report(
        Report(
            job=job_id,
            attempt=run.attempt,
            uptime_s=10.0 + units,
            epoch=0,
            progress=units,
            units=units,
            **fields,
        )
    )
    live.settle()


def test_a_checkpoint_that_is_told_between_two_lines_is_no_pace(lives: Any) -> None:
    """A wrapped script prints every 5 s, and is up after 3 s: 5 steps of 1 s are no rescaling."""
    live: Live = lives(profile("long", work=(36_000.0,), rescale_s=1000.0), billing="gpu")
    job_id = live.submit(spec("long", gpus=GpuLimits(max=1)))
    began = live.loop.now()
    for at_s, steps in ((8.0, 5.0), (12.5, 5.0), (13.0, 10.0)):
        live.advance(began + at_s - live.loop.now(), tick=0.5)
        said = replace(report(at_s, steps, attempt=live.job(job_id).attempts), job=job_id)
        live.loop.report(said)
        live.settle()
    run = live.job(job_id).run
    assert run is not None
    assert run.rescale == {TOTAL: pytest.approx(3.0)}


def test_what_a_job_tells_is_kept_shown_and_counted_and_outlives_a_crash(lives: Any) -> None:
    live: Live = lives(profile("long", work=(36_000.0,), rescale_s=1000.0), billing="gpu")
    job_id = live.submit(spec("long"))
    live.advance(3.0)
    reports(live, job_id, 0.0, rescale={"start": 1.0, "load": 0.5, "stop": 9.0})
    reports(live, job_id, 1.0, metrics={"noise_scale": 300.0, "batch_size": 64.0})
    live.crash()
    reports(live, job_id, 2.0, metrics={"batch_size": 128.0}, rescale={"first_step": 0.25})
    reports(live, job_id, 3.0, rescale={"first_step": 7.0, "start": 1.0})
    kept = live.job(job_id)
    assert kept.metrics == {"noise_scale": 300.0, "batch_size": 128.0}
    assert kept.run is not None
    expected = {TOTAL: 3.25, "start": 1.0, "load": 0.5, "first_step": 0.25, OTHER: 1.5}
    assert kept.run.rescale == pytest.approx(expected)
    document = live.loop.class_document("long")
    assert document is not None
    (engine,) = document["rescaling"].values()
    assert list(engine) == [TOTAL, "start", "load", "first_step", OTHER]
    assert {name: part["mean_s"] for name, part in engine.items()} == pytest.approx(expected)
    assert document["noise_scale"] == [300.0]
    counted = live.loop.snapshot.counters
    assert (counted["rescaling_first_step"], counted["rescaling_first_step_s"]) == (1, 0.25)


def test_metrics_of_a_job_are_bounded(lives: Any) -> None:
    live: Live = lives(profile("long", work=(36_000.0,)))
    job_id = live.submit(spec("long"))
    for turn in range(3):
        reports(live, job_id, float(turn), metrics={f"{turn}-{n}": 1.0 for n in range(60)})
    assert list(live.job(job_id).metrics) == [f"2-{n}" for n in range(60)]
