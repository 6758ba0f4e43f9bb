"""The bill of whole nodes: what it is made of, the bound it buys, comparisons at the same bill."""

import math
from dataclasses import replace
from typing import Any

import pytest

from boa.policy.registry import ROUND_S, Knobs, choose
from boa.sim.bound import bound_jct
from boa.sim.comparison import comparisons
from boa.sim.run import World, takes_scheduler
from boa.sim.sweep import Asked, document_of, run_one
from boa.solver.planner import plan
from simulations import job, world

BOOTS = Asked(learning="perfect", provision_s=100.0, reclaim_s=50.0)
SCHEDULED = replace(BOOTS, max_nodes={"T4": 1000})
"""A limit that never binds: the service's scheduler decides."""


def jobs(*arrivals: float) -> World:
    return world([job(f"j{n}", at, "patient") for n, at in enumerate(arrivals)], {"T4": 4})


BUSY = jobs(*(150.0 * n for n in range(16)))


def document(of: World, policy: str, knobs: Knobs, asked: Asked) -> dict[str, Any]:
    return document_of(run_one(of, policy, knobs, asked), policy, of)


@pytest.mark.parametrize("asked", [BOOTS, SCHEDULED], ids=["quick", "scheduled"])
@pytest.mark.parametrize(
    ("policy", "knobs"),
    [
        ("boa", Knobs(budget=7.0)),
        ("sia-autoscale", Knobs(target=0.5)),
        ("rubick-autoscale", Knobs(target=0.5)),
    ],
)
def test_the_bill_is_what_jobs_held_idle_booting_and_reclaiming(
    policy: str, knobs: Knobs, asked: Asked
) -> None:
    report = run_one(BUSY, policy, knobs, asked)
    got = report.document()
    awaited = sum(report.rental.awaited_gpu_seconds.values()) / BUSY.trace.span_s
    parts = ("idle", "booting", "reclaiming")
    total = got["spend_per_hour"] - awaited + sum(got[f"{p}_spend_per_hour"] for p in parts)
    assert got["bill_per_hour"] == pytest.approx(total)
    rented = got["rented_spend_per_hour"] + got["reclaiming_spend_per_hour"]
    assert got["bill_per_hour"] == pytest.approx(rented)
    assert got["booting_spend_per_hour"] > 0
    assert got["idle_spend_per_hour"] > 0


def test_a_job_that_waits_for_its_node_holds_what_boots() -> None:
    report = run_one(jobs(0.0, 5000.0), "fixed", Knobs(width=4), replace(BOOTS, interval_s=0.0))
    assert report.rental.awaited_gpu_seconds == {"T4": pytest.approx(2 * 4 * 100.0)}
    assert report.rental.booting_gpu_seconds == {"T4": pytest.approx(2 * 4 * 100.0)}
    assert report.idle_per_hour == pytest.approx(0.0, abs=1e-9)


def test_the_bound_is_the_exact_plan_for_the_bill_without_boots() -> None:
    got = document(BUSY, "sia-autoscale", Knobs(target=0.9), BOOTS)
    assert got["bound_jct_s"] == plan(BUSY.workload, got["bill_per_hour"]).average_jct
    assert got["jct_over_bound"] == got["average_jct_s"] / got["bound_jct_s"]
    assert got["jct_over_bound"] > 1


def test_there_is_no_bound_below_the_cheapest_nor_without_rates() -> None:
    assert bound_jct(BUSY, 0.01) is None
    assert bound_jct(BUSY, 0.0) is None
    at_once = jobs(0.0, 0.0)
    got = document(at_once, "fixed", Knobs(width=2), Asked())
    assert (got["bound_jct_s"], got["jct_over_bound"]) == (None, None)


# What a budget counts


def test_boa_by_node_is_the_market_asked_at_events_and_every_minute() -> None:
    asked = Asked(billing="node")
    settings = asked.settings("boa", None)
    assert (settings.billing, settings.interval_s) == ("node", ROUND_S)
    assert takes_scheduler(choose("boa", Knobs(budget=9.0), "node"), settings)
    assert Asked().settings("boa", None).interval_s is None


@pytest.mark.parametrize(
    ("policy", "knobs"),
    [
        ("sia-autoscale", Knobs(target=0.5)),
        ("fixed", Knobs(width=2)),
        ("tiresias", Knobs(nodes={"T4": 4})),
    ],
)
def test_policies_without_a_budget_do_the_same_whatever_is_billed(
    policy: str, knobs: Knobs
) -> None:
    one = document(BUSY, policy, knobs, BOOTS)
    other = document(BUSY, policy, knobs, replace(BOOTS, billing="node"))
    for key in one.keys() - {"wall_s", "physics"}:
        assert one[key] == other[key], key


@pytest.mark.parametrize("policy", ["pollux-autoscale", "sia-autoscale", "rubick-autoscale"])
def test_the_scheduler_leaves_nodes_alone_that_a_rival_has_chosen(policy: str) -> None:
    """They boot empty: given back for that, nobody would ever start."""
    got = document(BUSY, policy, Knobs(target=0.5), SCHEDULED)
    assert got["completed"] == got["jobs"]
    quick = document(BUSY, policy, Knobs(target=0.5), BOOTS)
    assert got["bill_per_hour"] == pytest.approx(quick["bill_per_hour"], rel=0.25)


@pytest.mark.parametrize("policy", ["pollux-autoscale", "sia-autoscale", "rubick-autoscale"])
def test_a_rival_that_wants_more_nodes_than_it_may_have_gets_those(policy: str) -> None:
    capped = replace(BOOTS, max_nodes={"T4": 1})
    got = document(BUSY, policy, Knobs(target=0.3), capped)
    assert got["completed"] == got["jobs"]
    assert got["peak_rented_spend_per_hour"] <= 4.0


# Comparisons


def point(policy: str, jct: float, spend: float, bill: float) -> dict[str, Any]:
    return {
        "policy": policy,
        "knob": None,
        "value": None,
        "average_jct_s": jct,
        "p95_jct_s": 2 * jct,
        "spend_per_hour": spend,
        "bill_per_hour": bill,
    }


POINTS = [
    point("boa", 100.0, 40.0, 64.0),
    point("boa", 200.0, 10.0, 16.0),
    point("rival", 300.0, 25.0, 32.0),
]


def test_by_the_gpu_a_rival_is_held_against_boa_at_the_same_spend() -> None:
    (found,) = comparisons(POINTS, counts_gpus=True)
    assert found["at_gpus"] == 25.0
    halfway = math.log(25 / 10) / math.log(40 / 10)
    assert found["boa_jct_s"] == pytest.approx(200.0 * 0.5**halfway)


def test_by_the_node_at_the_same_bill_over_its_logarithm() -> None:
    (found,) = comparisons(POINTS, counts_gpus=True, billing="node")
    assert found["at_gpus"] == 32.0
    halfway = math.log(32 / 16) / math.log(64 / 16)
    assert found["boa_jct_s"] == pytest.approx(200.0 * 0.5**halfway)
    assert found["jct_ratio"] == pytest.approx(300.0 / found["boa_jct_s"])


def test_a_bill_that_boa_never_had_is_compared_with_nothing() -> None:
    dear = point("rival", 300.0, 25.0, 100.0)
    assert comparisons([*POINTS[:2], dear], counts_gpus=True, billing="node") == []
