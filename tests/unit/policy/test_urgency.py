"""Urgency: the more a job counts, the sooner it ends and the more it costs."""

from itertools import pairwise

import pytest

from boa.formats.plain_yaml import load_yaml
from boa.formats.workload import parse_workload
from boa.model.job_spec import GpuLimits
from boa.policy.market.urgency import LADDER, Position, UrgentWorths, Way, in_time
from boa.policy.market.worth import Worths, fresh_job
from integration.runner import WORKLOAD

ANY = GpuLimits(max=64)


def ways(name: str, price: float, limits: GpuLimits = ANY, at: Position | None = None) -> list[Way]:
    worths = UrgentWorths(Worths(parse_workload(load_yaml(WORKLOAD))))
    return list(worths.ways(name, price, limits, at or Position()))


@pytest.mark.parametrize("name", ["small", "large"])
@pytest.mark.parametrize("price", [1.0, 100.0, 10_000.0])
def test_the_more_urgent_the_sooner_and_the_dearer(name: str, price: float) -> None:
    found = ways(name, price)
    assert [way.urgency for way in found] == list(LADDER)
    for less, more in pairwise(found):
        assert more.seconds <= less.seconds * (1 + 1e-9)
        assert more.usd >= less.usd * (1 - 1e-9)


def test_the_least_urgent_way_is_that_of_the_class() -> None:
    worths = Worths(parse_workload(load_yaml(WORKLOAD)))
    usual = fresh_job(worths(100.0)["small"])
    assert ways("small", 100.0)[0][1:] == pytest.approx(usual)


def test_a_job_that_may_have_one_gpu_is_no_sooner_for_being_urgent() -> None:
    found = ways("small", 100.0, GpuLimits(max=1, types=("T4",)))
    assert {round(way.seconds, 6) for way in found} == {round(found[0].seconds, 6)}


def test_where_nothing_is_known_there_are_no_ways() -> None:
    assert ways("nobody", 1.0) == []
    assert ways("large", 1.0, GpuLimits(max=1, types=("T4",))) == [], "it needs two"
    assert in_time(iter([]), 10.0) == (None, False)


def test_a_deadline_takes_the_least_urgency_that_keeps_it() -> None:
    found = ways("large", 1000.0)
    soonest, usual = found[-1].seconds, found[0].seconds
    assert in_time(iter(found), 2 * usual) == (found[0], True)
    way, kept = in_time(iter(found), (soonest + usual) / 2 * 1.1)
    assert kept
    assert way is not None
    assert way.seconds <= (soonest + usual) / 2
    before = [one for one in found if one.urgency < way.urgency]
    assert all(one.seconds > (soonest + usual) / 2 for one in before)
    never, kept = in_time(iter(found), 1.0)
    assert not kept
    assert never is not None
    assert never.seconds <= 1.02 * soonest


def test_what_is_done_needs_no_more_time() -> None:
    whole = ways("small", 100.0)[0]
    half = ways("small", 100.0, at=Position(epoch=1, left=0.5))[0]
    assert half.seconds < whole.seconds
    assert half.usd < whole.usd
