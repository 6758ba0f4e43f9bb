"""Tallies: what jobs held is charged once, however looks, ends and what is known of them fall."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.records import Hold
from boa.scheduler.money.ledger import held_between, hold_cost
from boa.scheduler.money.tally import Tally, rates

HOUR = 3600.0
moments = st.integers(0, 100).map(lambda number: number * HOUR / 7)
CHANGES = ((20 * HOUR / 7, 3.0), (60 * HOUR / 7, 0.5))


@st.composite
def lives(draw: st.DrawFn) -> tuple[Hold, float, float]:
    """A hold, its end, and when that is known."""
    since, until, known = sorted(draw(st.tuples(moments, moments, moments)))
    changes = draw(st.sampled_from([(), CHANGES]))
    stream = draw(st.sampled_from(["net", "net@eve", "bert"]))
    hold = Hold(job="1", stream=stream, node=1, gpus=2, price=1.0, since=since, changes=changes)
    return hold, until, known


@given(held=st.lists(lives(), max_size=6), looks=st.lists(moments, max_size=8, unique=True))
def test_all_that_was_held_is_charged_once_to_whoever_held_it(
    held: list[tuple[Hold, float, float]], looks: list[float]
) -> None:
    tally, charged = Tally(), dict[str, float]()
    begins = [(hold.since, 0, hold, until) for hold, until, _ in held]
    ends = [(known, 1, hold, until) for hold, until, known in held]
    steps = sorted(
        [*begins, *ends, *((look, 2, None, 0.0) for look in [*looks, 101 * HOUR / 7])],
        key=lambda step: step[:2],
    )
    open_holds: list[Hold] = []
    for now, kind, hold, until in steps:
        if hold is None:
            tally, found = tally.looked(open_holds, now)
            for stream, usd in found.items():
                charged[stream] = charged.get(stream, 0.0) + usd
        elif kind == 0:
            open_holds.append(hold)
        else:
            open_holds.pop(next(i for i, one in enumerate(open_holds) if one is hold))
            tally = tally.with_closed(hold, until)
    tally = Tally.from_document(tally.as_document())
    for stream in {hold.stream for hold, _, _ in held}:
        cost = sum(hold_cost(hold, until) for hold, until, _ in held if hold.stream == stream)
        to_be_given_back = tally.closed.get(stream, 0.0)
        assert charged.get(stream, 0.0) + to_be_given_back == pytest.approx(cost, abs=1e-9)
        assert to_be_given_back <= 0.0


@given(
    steps=st.lists(
        st.tuples(moments, st.sampled_from(["look", "turn"])), max_size=10, unique_by=lambda s: s[0]
    ),
    background=st.booleans(),
    since=moments,
    ends=st.booleans(),
)
def test_a_part_pays_for_exactly_what_its_job_held_outside_the_background(
    steps: list[tuple[float, str]], background: bool, since: float, ends: bool
) -> None:
    hold = Hold(job="1", stream="net", node=1, gpus=2, price=1.0, since=since, changes=CHANGES)
    tally, charged, owed, last = Tally(), 0.0, 0.0, since
    for now, kind in [*sorted(step for step in steps if step[0] > since), (101 * HOUR / 7, "end")]:
        owed += 0.0 if background else held_between(hold, last, now)
        last = now
        if kind == "turn":
            tally = tally.as_until_now([hold], now, background=background)
            background = not background
            continue
        open_holds = [] if background or (kind == "end" and ends) else [hold]
        if kind == "end" and ends and not background:
            tally = tally.with_closed(hold, now)
        tally, found = tally.looked(open_holds, now)
        charged += found.get("net", 0.0)
        assert charged == pytest.approx(owed, abs=1e-9)


def test_who_holds_what_now_is_by_stream() -> None:
    holds = [
        Hold(job="1", stream="a", node=1, gpus=2, price=1.5, since=0.0),
        Hold(job="2", stream="a", node=1, gpus=1, price=1.0, since=0.0, changes=((5.0, 4.0),)),
        Hold(job="3", stream="b@eve", node=1, gpus=1, price=1.0, since=0.0),
    ]
    assert rates(holds, 6.0) == {"a": 7.0, "b@eve": 1.0}
