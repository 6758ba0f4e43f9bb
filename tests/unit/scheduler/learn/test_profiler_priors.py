"""Priors: how what was believed gives way to what was seen."""

import math
from dataclasses import replace

import pytest

from boa.model.service import ClassPrior
from boa.scheduler.learn.fading_means import RAREST, Arrivals, Mean
from profiling import (
    HOUR,
    job,
    on,
    planned_class,
    profile,
    profiler,
    ran,
    times,
    took,
)

LINEAR = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


# Work


def test_work_is_a_mean_in_which_what_was_stated_counts_as_one_job() -> None:
    of = profiler()
    of.arrived(job(total_work=100.0), 0.0)
    of.epoch_done(job(1, total_work=100.0), 0, 300.0)
    (left,) = of.remaining(job())
    assert left == pytest.approx(200.0, rel=0.05)
    for n in range(2, 200):
        of.epoch_done(job(n), 0, 300.0)
    assert of.remaining(job())[0] == pytest.approx(300.0, rel=0.001)


def test_what_nobody_stated_is_overruled_by_the_first_job() -> None:
    of = profiler()
    of.arrived(job(epochs=2), 0.0)
    ran(of, on("T4", 1), rate=10.0)
    assert sum(times(of, epoch=j)[1] for j in range(2)) == pytest.approx(HOUR)
    of.epoch_done(job(), 0, 500.0)
    assert of.remaining(job()) == pytest.approx((500.0, 500.0)), "the other epoch is like it"


def test_an_epoch_of_a_job_counts_once() -> None:
    of = profiler()
    of.arrived(job(), 0.0)
    for units in (100.0, 900.0, math.nan, -1.0):
        of.epoch_done(job(), 0, units)
    assert of.remaining(job()) == (100.0,)


def test_a_job_that_never_reported_shows_by_its_end_how_long_it_takes() -> None:
    of = profiler()
    silent = job(held_gpu_s=900.0)
    of.arrived(silent, 0.0)
    of.ended(replace(silent, state="failed"), 500.0)
    assert times(of)[1] == pytest.approx(HOUR)
    of.ended(replace(silent, state="succeeded"), 500.0)
    assert times(of)[1] == pytest.approx(900.0)


def test_what_is_left_of_a_job_begins_in_its_epoch() -> None:
    of = profiler()
    told = job(epochs=3, total_work=300.0)
    of.arrived(told, 0.0)
    assert of.remaining(replace(told, epoch=1, progress=30.0)) == pytest.approx((70.0, 100.0))
    assert of.remaining(replace(told, epoch=2, progress=130.0)) == (0.0,)
    assert of.remaining(replace(told, epoch=9)) == pytest.approx((100.0,))
    larger = replace(told, spec=replace(told.spec, total_work=600.0))
    assert of.remaining(larger) == pytest.approx((200.0,) * 3)


# Rescaling


def test_the_rescaling_time_is_a_mean_that_begins_with_what_was_believed() -> None:
    of = profiler(ClassPrior(name="net", profile=profile({"T4": LINEAR}, rescale_s=100.0)))
    of.arrived(job(), 0.0)
    assert of.rescale_s("net") == 100.0
    of.rescaled(job(), took(50.0))
    assert of.rescale_s("net") == pytest.approx(75.0, rel=0.02)
    for _ in range(100):
        of.rescaled(job(), took(50.0))
    assert of.rescale_s("net") == pytest.approx(50.0, rel=0.01)
    assert planned_class(of).rescale_s == of.rescale_s("net")


def test_values_fade_by_five_percent_each() -> None:
    mean = Mean()
    for value in (1.0, 2.0, 3.0):
        mean = mean.add(value)
    weights = (0.95**2, 0.95, 1.0)
    expected = (weights[0] + 2 * weights[1] + 3 * weights[2]) / sum(weights)
    assert mean.value == pytest.approx(expected)
    before = (0.95**3 * 10 + expected * sum(weights)) / (0.95**3 + sum(weights))
    assert mean.after(10.0) == pytest.approx(before)
    assert Mean().after(10.0) == 10.0


# Arrivals


def test_arrivals_are_counted_from_the_first_job_on_and_it_does_not_count() -> None:
    of = profiler()
    of.arrived(job(1), 10 * HOUR)
    assert planned_class(of, 10 * HOUR).arrivals_per_hour == pytest.approx(1.0)
    for n in range(2, 22):
        of.arrived(job(n), 10 * HOUR + 0.1 * HOUR * (n - 1))
    rate = planned_class(of, 12 * HOUR).arrivals_per_hour
    assert rate == pytest.approx(21 / 3, rel=0.05), "one in an hour before, twenty in two"


def test_a_class_whose_rate_is_stated_was_watched_for_all_along() -> None:
    of = profiler(ClassPrior(name="net", arrivals_per_hour=6.0, arrivals_weight_h=2.0))
    assert of.workload(0.0) is None, "its jobs have yet to say what they are"
    of.arrived(job(), 2 * HOUR)
    rate = planned_class(of, 2 * HOUR).arrivals_per_hour
    assert rate == pytest.approx(13 / 4, rel=0.05)


def test_a_class_that_a_prior_says_all_about_is_planned_for_before_its_first_job() -> None:
    known = profile({"T4": LINEAR}, work=(100.0, 200.0))
    of = profiler(ClassPrior(name="net", profile=known, arrivals_per_hour=4.0))
    found = planned_class(of)
    assert (found.arrivals_per_hour, found.max_gpus, len(found.epochs)) == (4.0, 8, 2)
    assert of.version == 1


def test_whoever_stops_coming_is_forgotten() -> None:
    of = profiler()
    for n in range(50):
        of.arrived(job(n + 1), n * 0.1 * HOUR)
    busy = planned_class(of, 5 * HOUR).arrivals_per_hour
    rates = [planned_class(of, (5 + 24 * days) * HOUR).arrivals_per_hour for days in range(60)]
    assert rates == sorted(rates, reverse=True)
    assert rates[1] < 0.3 * busy
    assert rates[10] / rates[11] == pytest.approx(2.0, rel=0.01), "by half a day"
    assert rates[-1] == RAREST


def test_steady_arrivals_are_found_and_followed() -> None:
    belief = Arrivals.prior(1.0, 1.0, 0.0)
    for n in range(480):
        belief = belief.arrived(n * 0.1 * HOUR)
    assert belief.per_hour(48 * HOUR) == pytest.approx(10.0, rel=0.02)
    for n in range(240):
        belief = belief.arrived((48 + 0.2 * n) * HOUR)
    assert belief.per_hour(96 * HOUR) == pytest.approx(6.0, rel=0.1)


def test_a_clock_that_is_set_back_forgets_nothing() -> None:
    belief = Arrivals.prior(2.0, 3.0, 100 * HOUR)
    assert belief.per_hour(50 * HOUR) == 2.0
    assert belief.arrived(50 * HOUR).at == 100 * HOUR
    assert Arrivals.prior(0.0, 0.0, 0.0).arrived(0.0).per_hour(0.0) == 60.0


# With a profile


def test_a_profile_is_believed_until_it_is_measured() -> None:
    of = profiler(ClassPrior(name="net", profile=profile({"T4": LINEAR}, work=(3600.0,))))
    of.arrived(job(), 0.0)
    assert times(of) == {k: pytest.approx(3600 / k) for k in range(1, 9)}
    assert list(planned_class(of).epochs[0].speedups) == ["T4"], "of the other it tells nothing"
    ran(of, on("T4", 2), rate=1.0)
    ran(of, on("T4", 4), rate=3.0)
    seconds = times(of)
    assert seconds[1] == pytest.approx(7200.0), "flat below"
    assert seconds[2] == pytest.approx(3600.0)
    assert seconds[4] == pytest.approx(1200.0)
    assert seconds[8] == pytest.approx(600.0), "flat beyond"
    assert seconds[3] == pytest.approx(3600 / 3 / 0.5 / 1.5 ** math.log2(1.5))


def test_a_profile_can_be_worth_some_reports() -> None:
    prior = ClassPrior(name="net", profile=profile({"T4": LINEAR}), measured_weight=10.0)
    of = profiler(prior)
    of.arrived(job(), 0.0)
    ran(of, on("T4", 1), rate=0.25, reports=10)
    assert times(of)[1] == pytest.approx(7200.0), "half of the way, in logarithms"
    ran(of, on("T4", 1), rate=0.25, reports=10_000, seconds=3600.0)
    assert times(of)[1] == pytest.approx(4 * 3600.0, rel=0.01)


def test_a_type_that_was_never_tried_keeps_the_ratio_that_its_profile_gives_it() -> None:
    known = profile({"T4": LINEAR, "A100": [4 * r for r in LINEAR]})
    of = profiler(ClassPrior(name="net", profile=known))
    of.arrived(job(), 0.0)
    ran(of, on("T4", 1), rate=0.5)
    assert times(of, "T4")[1] / times(of, "A100")[1] == pytest.approx(4.0)


def test_a_profile_keeps_the_shape_of_its_epochs() -> None:
    known = profile({"T4": LINEAR}, work=(100.0, 100.0), per_epoch=(1.0, 3.0))
    of = profiler(ClassPrior(name="net", profile=known))
    of.arrived(job(epochs=2), 0.0)
    ran(of, on("T4", 1), rate=2.0, epoch=0)
    assert times(of, epoch=0)[1] == pytest.approx(50.0)
    assert times(of, epoch=1)[1] == pytest.approx(100 / 6)


@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 8])
def test_a_profile_of_other_epochs_is_merged_or_divided(epochs: int) -> None:
    known = profile(
        {"T4": LINEAR}, work=(100.0, 300.0, 200.0, 600.0), per_epoch=(1.0, 2.0, 4.0, 1.5)
    )
    of = profiler(ClassPrior(name="net", profile=known))
    of.arrived(job(epochs=epochs), 0.0)
    assert len(planned_class(of).epochs) == epochs
    assert sum(of.remaining(job(epochs=epochs))) == pytest.approx(1200.0)
    whole = sum(times(of, epoch=j)[2] for j in range(epochs))
    assert whole == pytest.approx((100 / 1 + 300 / 2 + 200 / 4 + 600 / 1.5) / 2)


def test_stated_work_is_spread_like_the_profiles() -> None:
    of = profiler(ClassPrior(name="net", profile=profile({"T4": LINEAR}, work=(100.0, 300.0))))
    told = job(epochs=2, total_work=800.0)
    of.arrived(told, 0.0)
    assert of.remaining(told) == pytest.approx((200.0, 600.0))


def test_widths_that_a_profile_leaves_out_are_not_offered() -> None:
    rates = [0.0, 0.0, 2.0, 3.0, 4.0]
    of = profiler(ClassPrior(name="net", profile=profile({"T4": rates})))
    of.arrived(job(max=3), 0.0)
    assert list(times(of)) == [2, 3]


def test_a_profile_of_types_that_a_job_may_not_use_is_no_profile() -> None:
    of = profiler(ClassPrior(name="net", profile=profile({"T4": LINEAR})))
    of.arrived(job(types=("A100",)), 0.0)
    assert times(of, "A100") == {1: pytest.approx(HOUR)}
