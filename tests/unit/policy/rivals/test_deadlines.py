"""Rules that give every job a deadline: ElasticFlow, Gavel's cost, RubberBand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.cluster import Share
from boa.policy.rivals.deadlines import (
    ByDeadline,
    RubberBand,
    Stages,
    _totals,
    cheapest_in_time,
    staged,
)
from boa.policy.rivals.outlook import Outlook, Outlooks
from lone_jobs import TYPES, Curves, job, share

SLACK = st.floats(0.05, 2.0)


def outlook(curves: Curves, work: tuple[float, ...], *gpus: str) -> Outlook:
    found = Outlooks({gpu: TYPES[gpu] for gpu in gpus or ("T4",)}).of(job(curves, work))
    assert found is not None
    return found


@given(parallel=st.floats(0.0, 0.999), slack=SLACK)
def test_it_is_the_narrowest_width_in_time_or_the_fastest(parallel: float, slack: float) -> None:
    curves = Curves(parallel)
    found = share(ByDeadline(slack, "elasticflow"), job(curves))
    seconds = outlook(curves, (1000.0,)).seconds[0]
    in_time = [k for k in range(1, 17) if seconds[k - 1] <= slack * seconds[0] * (1 + 1e-9)]
    if in_time:
        assert found.width == min(in_time)
    else:
        assert seconds[found.width - 1] == seconds.min()


def test_a_width_is_held_for_life() -> None:
    rule, curves = ByDeadline(0.4, "elasticflow"), Curves(0.9, 0.1)
    first = share(rule, job(curves, (10.0, 1000.0)))
    later = job(curves, (10.0, 1000.0), epoch=1, held=("T4", first.width), note=first.note)
    assert share(rule, later) == Share("T4", first.width, None, first.note)
    assert first.until is None


def test_all_classes_are_slowed_alike() -> None:
    """What ElasticFlow does to a stream: whoever scales badly is served as well as the others."""
    for parallel in (0.8, 0.9, 0.99):
        seconds = outlook(Curves(parallel), (1000.0,)).seconds[0]
        width = share(ByDeadline(0.5, "elasticflow"), job(Curves(parallel))).width
        assert seconds[width - 1] <= 0.5 * seconds[0] * (1 + 1e-9)
        assert seconds[width - 2] > 0.5 * seconds[0] * (1 + 1e-9)


def test_gavel_takes_the_type_that_meets_the_deadline_for_the_least_money() -> None:
    curves = Curves(0.9, T4=1.0, A100=3.0)

    def chosen(slack: float) -> tuple[str, int]:
        found = share(ByDeadline(slack, "gavel-cost"), job(curves), "T4", "A100")
        return found.gpu, found.width

    assert chosen(2.0) == ("T4", 1)
    assert chosen(0.35) == ("T4", 4)
    assert chosen(0.12) == ("A100", 4)


@given(
    seconds=st.lists(st.floats(1.0, 1e4), min_size=1, max_size=8),
    dollars=st.lists(st.floats(0.1, 10.0), min_size=8, max_size=8),
    slack=SLACK,
)
def test_nothing_in_time_is_cheaper(
    seconds: list[float], dollars: list[float], slack: float
) -> None:
    times, rates = np.array(seconds), np.array(dollars[: len(seconds)])
    chosen, costs = cheapest_in_time(times, rates, slack), times * rates
    limit = slack * times[costs.argmin()] * (1 + 1e-9)
    if (times <= limit).any():
        assert times[chosen] <= limit
        assert costs[chosen] == costs[times <= limit].min()
    else:
        assert times[chosen] == times.min()


@settings(max_examples=25)
@given(
    parallel=st.lists(st.floats(0.2, 0.99), min_size=1, max_size=4),
    slack=st.floats(0.1, 1.0),
    rescale_s=st.floats(0.0, 100.0),
)
def test_rubberband_meets_what_its_constant_width_meets_and_never_costs_more(
    parallel: list[float], slack: float, rescale_s: float
) -> None:
    curves = Curves(*parallel, widest=6)
    seen = outlook(curves, (1000.0,) * len(parallel))
    stages = staged(seen, rescale_s, slack)
    whole = seen.seconds.sum(axis=0)
    start = cheapest_in_time(whole, seen.dollars, slack)
    columns = np.array([seen.column_of(*step) for step in stages.shares])
    took, cost = _totals(columns[None], seen.seconds, seen.dollars, rescale_s)
    first_took, first_cost = _totals(
        np.full((1, len(columns)), start), seen.seconds, seen.dollars, rescale_s
    )
    assert cost[0] <= first_cost[0] * (1 + 1e-9)
    deadline = slack * whole[(whole * seen.dollars).argmin()] + rescale_s
    assert took[0] <= max(deadline * (1 + 1e-9), first_took[0])


def test_rubberband_is_narrower_where_training_does_not_scale() -> None:
    """It starts from four GPUs, of which the first half hardly profits. It never widens: one GPU
    and then six would be cheaper still."""
    stages = staged(outlook(Curves(0.2, 0.97, widest=8), (1000.0, 1000.0)), 5.0, 0.6)
    assert stages.shares == (("T4", 2), ("T4", 4))


def test_a_job_follows_its_stages_and_is_asked_at_their_ends() -> None:
    stages = Stages((2, 4, 6), (("T4", 1), ("T4", 1), ("T4", 4)))
    assert stages.share(0) == Share("T4", 1, 4, stages)
    assert stages.share(4) == Share("T4", 4, None, stages)
    assert stages.share(9) == Share("T4", 4, None, stages)
    one = job(Curves(0.9), (1.0,) * 6, epoch=4, note=stages)
    assert share(RubberBand(0.5), one) == stages.share(4)
    assert share(RubberBand(0.5), replace(one, note=None)).note is not None


@pytest.mark.parametrize("rule", [ByDeadline(0.5, "elasticflow"), RubberBand(0.5)])
def test_who_is_not_known_runs_as_asked_for_an_epoch(rule: ByDeadline | RubberBand) -> None:
    assert share(rule, job(Curves(0.9, A100=1.0)), "T4") == Share("T4", 1, 1)
