"""Policies side by side at the same money, over traces."""

from typing import Any

import pytest

from boa.paper.leads import Lead, leads, over_bound, strongest


def doc(
    policy: str, spend: float, jct: float, *, draw: int = 1, bound: float | None = 100.0
) -> Any:
    run = {"setting": "any", "draw": draw, "redrawn": None, "hours": None, "every": 1}
    return {
        "run": {**run, "policy": policy},
        "cheapest_per_hour": 10.0,
        "spend_per_hour": spend,
        "average_jct_s": jct,
        "p95_jct_s": 3 * jct,
        "bounds": {"spend_per_hour": bound},
    }


BOA = [doc("boa", 10.0, 110.0), doc("boa", 40.0, 110.0)]
SLOW = [doc("slow", 10.0, 220.0), doc("slow", 40.0, 220.0)]


def test_money_is_counted_in_cheapest_plans_and_jcts_over_the_bound() -> None:
    assert over_bound(BOA, 2.0, "average_jct_s") == pytest.approx(1.1)
    assert over_bound(BOA, 5.0, "average_jct_s") is None
    below = [doc("boa", 9.0, 50.0, bound=None), *BOA]
    assert over_bound(below, 0.95, "average_jct_s") is None, "nobody can spend that little"


def test_a_rival_is_held_against_boa_on_its_own_trace() -> None:
    other = [doc("boa", 10.0, 330.0, draw=2), doc("boa", 40.0, 330.0, draw=2)]
    far = [doc("slow", 10.0, 330.0, draw=2), doc("slow", 40.0, 330.0, draw=2)]
    table = leads({"boa": [*BOA, *other], "slow": [*SLOW, *far]}, loads=(2.0,))
    own, slow = table
    assert own.over_bound.value == pytest.approx((1.1 + 3.3) / 2)
    assert slow.jct is not None
    assert slow.jct.value == pytest.approx((2.0 + 1.0) / 2)
    assert slow.p95 is not None
    assert slow.p95.value == pytest.approx(1.5)
    assert slow.traces == 2


def test_a_load_that_is_reached_on_few_traces_is_left_out() -> None:
    traces = [doc("boa", spend, 110.0, draw=n) for n in (1, 2, 3) for spend in (10.0, 40.0)]
    cheap = [doc("slow", spend, 220.0, draw=n) for n in (2, 3) for spend in (10.0, 12.0)]
    table = leads({"boa": traces, "slow": [*SLOW, *cheap]}, loads=(2.0,))
    assert [lead.policy for lead in table] == ["boa"]


def test_a_policy_that_was_run_on_few_traces_is_held_against_boa_on_those() -> None:
    traces = [doc("boa", spend, 110.0, draw=n) for n in (1, 2, 3) for spend in (10.0, 40.0)]
    slow = leads({"boa": traces, "slow": SLOW}, loads=(2.0,))[-1]
    assert (slow.policy, slow.traces) == ("slow", 1)


def test_the_strongest_rival_is_the_one_with_the_least_jct() -> None:
    quick = [doc("quick", 10.0, 120.0), doc("quick", 40.0, 120.0)]
    found: dict[str, Any] = {"boa": BOA, "boa by the GPU": BOA, "slow": SLOW, "quick": quick}
    best: dict[float, Lead] = strongest(leads(found, loads=(2.0, 3.0)))
    assert {load: lead.policy for load, lead in best.items()} == {2.0: "quick", 3.0: "quick"}
