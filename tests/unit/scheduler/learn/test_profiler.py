"""What the service believes of a class before its jobs have shown anything, and after."""

import math
from dataclasses import replace

import pytest

from boa.goodput.belief import SERIAL
from boa.scheduler.learn.class_knowledge import RESCALE_S
from profiling import (
    HOUR,
    TYPES,
    job,
    on,
    packed,
    planned_class,
    profiler,
    ran,
    report,
    times,
    took,
    widest_hoped,
)

# Before anything is measured


def test_nothing_is_planned_while_no_class_is_known() -> None:
    empty = profiler()
    assert empty.workload(0.0) is None
    assert empty.classes() == []
    assert empty.document("net", 0.0) is None
    assert empty.prediction("net").rates("T4", 0) is None
    assert (empty.epochs("net"), empty.tried("net"), empty.remaining(job())) == (1, {}, ())


def test_a_new_class_is_an_hour_on_one_gpu_and_comes_once_an_hour() -> None:
    of = profiler()
    of.arrived(job(), 1000.0)
    found = planned_class(of, 1000.0)
    assert found.arrivals_per_hour == pytest.approx(1.0)
    assert found.rescale_s == RESCALE_S
    assert times(of, now=1000.0) == {1: pytest.approx(HOUR)}
    assert times(of, "A100", now=1000.0) == {1: pytest.approx(HOUR)}


def test_the_work_that_a_user_states_is_spread_over_the_epochs() -> None:
    of = profiler()
    of.arrived(job(epochs=4, total_work=1000.0), 0.0)
    assert of.remaining(job(epochs=4, total_work=1000.0)) == pytest.approx((250.0,) * 4)
    assert len(planned_class(of).epochs) == of.epochs("net") == 4
    assert sum(times(of, epoch=j)[1] for j in range(4)) == pytest.approx(HOUR)


def test_limits_and_weight_are_those_of_the_newest_job() -> None:
    of = profiler()
    of.arrived(job(1), 0.0)
    of.arrived(job(2, min=2, max=4, types=("A100",), weight=3.0), 60.0)
    found = planned_class(of)
    assert list(found.epochs[0].speedups) == ["A100"]
    assert (found.min_gpus, found.max_gpus, found.weight) == (2, 2, 3.0)


def test_a_class_that_nothing_rentable_runs_is_left_out() -> None:
    of = profiler()
    of.arrived(job(types=("H100",)), 0.0)
    assert of.workload(0.0) is None
    of.arrived(job(2, job_class="other"), 0.0)
    assert [c.name for c in of.workload(0.0).classes] == ["other"]  # type: ignore[union-attr]
    assert of.classes() == ["net", "other"]


# Widths


def test_no_more_than_what_is_settled_is_offered_and_twice_that_hoped_for() -> None:
    of = profiler()
    of.arrived(job(max=12), 0.0)
    assert (max(times(of)), widest_hoped(of)) == (1, None)
    seen = []
    for width in (1, 2, 4, 8, 12):
        ran(of, packed(TYPES["T4"], width), rate=float(width))
        seen.append((max(times(of)), widest_hoped(of)))
    assert seen == [(1, 2), (2, 4), (4, 8), (8, 12), (12, None)]
    assert of.tried("net") == {"T4": 12}


def test_a_width_is_settled_by_ten_rescalings_of_training_not_by_a_report() -> None:
    of = profiler()
    of.arrived(job(max=8), 0.0)
    of.rescaled(job(), took(20.0))
    ran(of, on("T4", 1), rate=1.0, seconds=199.0)
    assert (max(times(of)), widest_hoped(of)) == (1, None)
    ran(of, on("T4", 1), rate=1.0, seconds=2.0)
    assert (max(times(of)), widest_hoped(of)) == (1, 2)
    ran(of, on("T4", 2), rate=2.0, seconds=150.0)
    assert max(times(of)) == 1, "it runs there, but nobody follows yet"
    ran(of, on("T4", 2), rate=2.0, seconds=60.0)
    assert max(times(of)) == 2


def test_what_does_not_gain_five_percent_by_doubling_is_neither_offered_nor_hoped_for() -> None:
    of = profiler()
    of.arrived(job(max=16), 0.0)
    ran(of, on("T4", 1), rate=10.0)
    ran(of, on("T4", 2), rate=10.2)
    assert (max(times(of)), widest_hoped(of)) == (1, None)
    ran(of, on("T4", 4), rate=10.4)
    assert (max(times(of)), widest_hoped(of)) == (1, None)


def test_a_hope_goes_no_further_than_the_last_gpus_went() -> None:
    of = profiler()
    of.arrived(job(max=16), 0.0)
    ran(of, on("T4", 1), rate=10.0)
    ran(of, on("T4", 2), rate=15.0)
    workload = of.workload(0.0)
    assert workload is not None
    (epoch,) = workload.hopes["net"].epochs
    assert epoch.speedups["T4"](4) / epoch.speedups["T4"](2) == pytest.approx(25.0 / 15.0)


def test_a_new_class_is_taken_to_scale_as_others_did() -> None:
    shares = []
    for rates in ((10.0, 19.9, 39.0), (10.0, 11.0, 12.0)):
        of = profiler()
        of.arrived(job(job_class="old"), 0.0)
        for width, rate in zip((1, 2, 4), rates, strict=True):
            ran(of, on("T4", width), rate=rate, job_class="old")
        of.arrived(job(), 0.0)
        ran(of, on("T4", 1), rate=3.0)
        found = of.prediction("net").rates("T4", 0)
        assert found is not None
        shares.append(found[0, 4] / found[0, 1])
    assert shares[0] > 3.6
    assert shares[1] < 3.0


def test_a_type_that_was_never_tried_is_as_fast_as_those_that_were_but_begins_small() -> None:
    of = profiler()
    of.arrived(job(), 0.0)
    ran(of, on("T4", 1), rate=5.0)
    ran(of, on("T4", 4), rate=10.0)
    one = of.document("net", 0.0)
    assert one is not None
    t4, a100 = one["gpu_types"]
    assert a100["curve"]["speedup"] == pytest.approx(t4["curve"]["speedup"])
    assert (t4["offered"], a100["offered"]) == (8, 1)
    assert of.prediction("net").rates("A100", 0) is None, "a prediction is not a guess"


def test_scaling_is_as_usual_beyond_what_was_seen() -> None:
    of = profiler()
    of.arrived(job(), 0.0)
    ran(of, on("T4", 1), rate=10.0)
    ran(of, on("T4", 4), rate=30.0)
    rates = of.prediction("net").rates("T4", 0)
    assert rates is not None
    assert rates[0, 4] == pytest.approx(30.0)
    usual = 8 / (1 + 7 * SERIAL) / (4 / (1 + 3 * SERIAL))
    assert rates[1, 8] / rates[0, 4] == pytest.approx(usual), "and never on to infinity"


def test_between_widths_the_correction_is_linear_in_log_width() -> None:
    of = profiler()
    of.arrived(job(), 0.0)
    ran(of, on("T4", 1), rate=10.0)
    ran(of, on("T4", 4), rate=20.0)
    seconds = times(of)
    usual = {k: k / (1 + (k - 1) * SERIAL) for k in (2, 4)}
    assert seconds[1] / seconds[2] == pytest.approx(usual[2] * math.sqrt(2.0 / usual[4]))


def test_across_nodes_is_another_curve_once_it_was_run() -> None:
    of = profiler()
    of.arrived(job(), 0.0)
    for width, rate in ((1, 10.0), (4, 32.0)):
        ran(of, on("T4", width), rate=rate)
    assert times(of)[1] / times(of)[4] == pytest.approx(3.2)
    ran(of, on("T4", 4, 4), rate=40.0)
    seconds = times(of)
    assert seconds[1] / seconds[4] == pytest.approx(3.2), "on one node nothing has changed"
    assert seconds[1] / seconds[8] == pytest.approx(4.0)
    rates = of.prediction("net").rates("T4", 0)
    assert rates is not None
    usual = 8 / (1 + 7 * SERIAL) / (4 / (1 + 3 * SERIAL))
    assert rates[1, 4] == pytest.approx(40.0 / usual), "split over nodes it errs as eight do"


def test_outside_of_its_limits_and_on_too_small_a_node_a_class_has_no_rate() -> None:
    of = profiler()
    of.arrived(job(min=2, max=6), 0.0)
    ran(of, on("T4", 2), rate=2.0)
    rates = of.prediction("net").rates("T4", 7)
    assert rates is not None
    assert rates.shape == (2, 7)
    assert [k for k in range(7) if rates[0, k] > 0] == [2, 3, 4]
    assert [k for k in range(7) if rates[1, k] > 0] == [2, 3, 4, 5, 6]


# What a report says


def test_a_rate_is_a_difference_of_two_reports() -> None:
    of = profiler()
    told = job(run=on("T4", 1))
    of.arrived(told, 0.0)
    of.reported(told, None, report(100.0, 900.0))
    assert of.drain()[0] == [], "the first report: who knows when its training began"
    of.reported(told, report(100.0, 900.0), report(110.0, 920.0))
    (cell,) = of.drain()[0]
    assert (cell.seconds, cell.units, cell.reports) == (10.0, 20.0, 1)
    assert (cell.key.gpu, cell.key.across, cell.key.width, cell.key.epoch) == ("T4", False, 1, 0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (report(100.0, 10.0), report(100.0, 20.0)),
        (report(100.0, 10.0), report(90.0, 20.0)),
        (report(100.0, 10.0), report(110.0, 5.0)),
        (report(100.0, 10.0, epoch=3), report(110.0, 20.0, epoch=2)),
        (report(100.0, 10.0), report(110.0, math.nan)),
        (report(100.0, 10.0), report(math.inf, 20.0)),
        (report(100.0, 10.0, attempt=2), report(110.0, 20.0)),
        (report(100.0, 10.0, attempt=2), report(110.0, 20.0, attempt=2)),
    ],
    ids=["still", "backwards", "falling", "epochs back", "nan", "inf", "another's", "stale"],
)
def test_reports_that_make_no_sense_are_passed_over(before: object, after: object) -> None:
    of = profiler()
    told = job(run=on("T4", 1))
    of.arrived(told, 0.0)
    of.reported(told, before, after)  # type: ignore[arg-type]
    of.reported(replace(told, run=None), report(0.0, 0.0), report(1.0, 1.0))
    of.reported(job(job_class="unknown", run=told.run), report(0.0, 0.0), report(1.0, 1.0))
    assert of.drain()[0] == []


def test_an_epoch_that_ends_between_two_reports_gets_its_part() -> None:
    of = profiler()
    told = job(run=on("T4", 1), epochs=3)
    of.arrived(told, 0.0)
    of.reported(told, report(0.0, 80.0, 0), report(10.0, 120.0, 1, progress=10.0))
    cells = {cell.key.epoch: cell for cell in of.drain()[0]}
    assert {e: (c.seconds, c.units) for e, c in cells.items()} == {0: (7.5, 30.0), 1: (2.5, 10.0)}


def test_epochs_shorter_than_the_time_between_reports_are_told_apart_too() -> None:
    of = profiler()
    told = job(run=on("T4", 1), epochs=5)
    of.arrived(told, 0.0)
    of.reported(told, report(0.0, 5.0, 0, progress=5.0), report(10.0, 40.0, 3, progress=5.0))
    cells = {cell.key.epoch: cell for cell in of.drain()[0]}
    assert {e: c.units for e, c in cells.items()} == {0: 10.0, 1: 10.0, 2: 10.0, 3: 5.0}
    assert of.remaining(told)[:3] == pytest.approx((15.0, 10.0, 10.0))


def test_a_job_that_counts_its_epochs_wildly_does_no_harm() -> None:
    of = profiler()
    told = job(run=on("T4", 1), epochs=2)
    of.arrived(told, 0.0)
    of.reported(told, report(0.0, 0.0, 0), report(10.0, 10.0, 10**12, progress=10.0))
    of.epoch_done(told, 10**12, 5.0)
    of.ended(replace(told, state="succeeded", epoch=10**12, progress=5.0), 0.0)
    assert len(of.drain()[0]) == 1
    assert of.epochs("net") == 1000


def test_old_measurements_fade() -> None:
    of = profiler()
    of.arrived(job(total_work=HOUR), 0.0)
    ran(of, on("T4", 1), rate=1.0, seconds=24 * HOUR, reports=1000)
    ran(of, on("T4", 1), rate=2.0, seconds=2 * HOUR, reports=100)
    assert times(of)[1] == pytest.approx(HOUR / 1.5, rel=0.01), "half of it, after two hours"
    ran(of, on("T4", 1), rate=2.0, seconds=20 * HOUR, reports=1000)
    assert times(of)[1] == pytest.approx(HOUR / 2, rel=0.01)


# Epochs


def test_epochs_that_run_faster_are_seen_at_widths_they_were_never_run_at() -> None:
    of = profiler()
    of.arrived(job(epochs=3, total_work=300.0), 0.0)
    for epoch, factor in enumerate((1.0, 2.0, 4.0)):
        ran(of, on("T4", 2), rate=10.0 * factor, seconds=1e5, epoch=epoch)
    ran(of, on("T4", 4), rate=15.0, seconds=1e5, epoch=0)
    seconds = [times(of, epoch=j) for j in range(3)]
    assert [s[2] for s in seconds] == pytest.approx([10.0, 5.0, 2.5], rel=0.01)
    assert [s[4] for s in seconds] == pytest.approx([100 / 15, 50 / 15, 25 / 15], rel=0.01)


def test_an_epoch_that_nobody_has_reached_runs_like_the_others() -> None:
    of = profiler()
    of.arrived(job(epochs=3, total_work=300.0), 0.0)
    for epoch in range(2):
        ran(of, on("T4", 1), rate=10.0, epoch=epoch)
    assert times(of, epoch=2)[1] == pytest.approx(10.0)


def test_a_job_that_had_more_epochs_than_it_said_teaches_its_class() -> None:
    of = profiler()
    told = job(epochs=1, run=on("T4", 1))
    of.arrived(told, 0.0)
    for epoch in range(4):
        of.epoch_done(told, epoch, 100.0 + epoch)
    assert of.epochs("net") == 1
    of.ended(replace(told, state="succeeded", epoch=4, progress=50.0), 10.0)
    assert of.epochs("net") == 5
    assert of.remaining(told) == pytest.approx((100.0, 101.0, 102.0, 103.0, 50.0))


# What is material


def test_reports_that_say_the_same_again_are_no_reason_to_plan_anew() -> None:
    of = profiler()
    of.arrived(job(epochs=4), 0.0)
    assert of.version == 1
    for epoch in range(4):
        ran(of, on("T4", 1), rate=10.0, epoch=epoch)
    seen = of.version
    assert seen > 1, "a second GPU may be tried now"
    for n in range(200):
        ran(of, on("T4", 1), rate=10.0 + 0.3 * (-1) ** n, epoch=n % 4)
    of.epoch_done(job(), 0, 9000.0)
    assert of.version == seen


@pytest.mark.parametrize("what", ["class", "rate", "width", "work", "arrivals", "rescaling"])
def test_what_would_change_a_plan_is_noticed(what: str) -> None:
    of = profiler()
    of.arrived(job(total_work=HOUR), 0.0)
    ran(of, on("T4", 1), rate=1.0)
    seen = of.version
    if what == "class":
        of.arrived(job(2, job_class="other"), 1.0)
    elif what == "rate":
        ran(of, on("T4", 1), rate=1.3)
    elif what == "width":
        ran(of, on("T4", 2), rate=2.0)
    elif what == "work":
        of.epoch_done(job(), 0, 1.3 * HOUR)
    elif what == "arrivals":
        of.arrived(job(2, total_work=HOUR), 60.0)
    else:
        of.rescaled(job(), took(60.0))
    assert of.version > seen


def test_a_rescaling_never_measured_is_no_longer_than_the_quickest_start() -> None:
    of = profiler()
    of.arrived(job(), 0.0)
    assert of.rescale_s("net") == RESCALE_S
    run = replace(packed(TYPES["T4"], 1), requested_at=100.0, decided_at=100.0, started_at=102.0)
    of.reported(job(run=run), None, report(7.0, 5.0))
    assert of.rescale_s("net") == pytest.approx(9.0)
    (cells, classes), again = of.drain(), profiler()
    again.load(cells, classes)
    assert again.rescale_s("net") == pytest.approx(9.0)
    of.rescaled(job(), took(12.0))
    assert of.rescale_s("net") == pytest.approx(12.0), "one that was measured counts"
