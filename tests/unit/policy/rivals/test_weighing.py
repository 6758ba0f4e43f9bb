"""Optimus with a price, and Scavenger: seconds against dollars, every job by itself."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import Share
from boa.policy.rivals.outlook import Outlooks
from boa.policy.rivals.weighing import optimus_price, scavenger
from lone_jobs import TYPES, Curves, job, share

LAMBDA = st.floats(1.0, 1e5)


@given(parallel=st.floats(0.0, 1.0), price=LAMBDA)
def test_a_job_starts_where_its_time_and_its_money_come_to_least(
    parallel: float, price: float
) -> None:
    """By trying every width: T + λC, and R cancels."""
    curves = Curves(parallel)
    found = share(optimus_price(price), job(curves))

    def value(width: int) -> float:
        rates = curves.rates("T4", 0)
        assert rates is not None
        return float((1.0 + price * width / 3600.0) / rates[0, width])

    assert value(found.width) == pytest.approx(min(map(value, range(1, 17))))
    assert share(optimus_price(price), job(curves, (5.0,))).width == found.width


@given(parallel=st.floats(0.3, 0.99), price=LAMBDA)
def test_one_gpu_more_is_taken_while_it_saves_enough(parallel: float, price: float) -> None:
    """Optimus' own words: seconds saved per dollar more are at least λ up to the width taken."""
    curves = Curves(parallel)
    outlook = Outlooks({"T4": TYPES["T4"]}).of(job(curves))
    assert outlook is not None
    seconds = outlook.seconds[0]
    dollars = seconds * outlook.dollars
    width = share(optimus_price(price), job(curves)).width
    for k in range(1, 16):
        saved = seconds[k - 1] - seconds[k]
        more = dollars[k] - dollars[k - 1]
        assert (saved >= price * more * (1 - 1e-9)) == (k < width) or saved == pytest.approx(
            price * more
        )


def test_dearer_money_means_narrower_jobs() -> None:
    widths = [share(optimus_price(p), job(Curves(0.95))).width for p in (10.0, 300.0, 1e4, 1e6)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == 16
    assert widths[-1] == 1


def test_a_running_job_moves_only_if_it_gains_more_than_the_rescaling_comes_to() -> None:
    rule, curves = optimus_price(500.0), Curves(0.9)
    best = share(rule, job(curves)).width
    here = job(curves, held=("T4", 1), rescale_s=10.0)
    assert share(rule, here).width == best
    assert share(rule, replace(here, rescale_s=5_000.0)) == Share("T4", 1)
    assert share(rule, replace(here, left=0.001)) == Share("T4", 1)


def test_a_job_is_asked_again_when_later_epochs_will_pay_for_a_move() -> None:
    """The first epochs do not scale, the later ones do."""
    curves = Curves(*[0.0] * 4, 0.99)
    one = job(curves, (10_000.0,) * 4 + (100.0,) * 2, rescale_s=1.0)
    found = share(optimus_price(3600.0), one)
    assert (found.width, found.until) == (1, 4)
    later = replace(one, epoch=4, allocation=job(curves, held=("T4", 1)).allocation)
    assert share(optimus_price(3600.0), later).width > 1


def test_the_type_is_chosen_by_what_its_speed_is_worth() -> None:
    fast = Curves(0.9, T4=1.0, A100=10.0)
    slow = Curves(0.9, T4=1.0, A100=2.0)
    assert share(optimus_price(3600.0), job(fast), "T4", "A100").gpu == "A100"
    assert share(optimus_price(36_000.0), job(slow), "T4", "A100").gpu == "T4"


def test_who_is_not_known_runs_as_asked_for_an_epoch() -> None:
    unknown = job(Curves(0.9, A100=1.0))
    assert share(optimus_price(1.0), unknown, "T4") == Share("T4", 1, 1)


@given(parallel=st.floats(0.1, 0.99), weight=st.floats(0.05, 1.0), scale=st.floats(1.0, 1e6))
def test_the_knee_is_the_same_for_short_and_long_jobs(
    parallel: float, weight: float, scale: float
) -> None:
    curves = Curves(parallel)
    outlook = Outlooks({"T4": TYPES["T4"]}).of(job(curves))
    assert outlook is not None
    seconds = outlook.seconds[0]
    dollars = seconds * outlook.dollars
    values = weight * seconds / seconds.min() + (1 - weight) * dollars / dollars.min()
    width = share(scavenger(weight), job(curves, (scale,))).width
    assert values[width - 1] == pytest.approx(values.min())


def test_the_weight_of_time_alone_takes_the_fastest_width() -> None:
    assert share(scavenger(1.0), job(Curves(0.9))).width == 16
    assert share(scavenger(0.01), job(Curves(0.9))).width == 1
