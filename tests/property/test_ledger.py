"""However nodes and holds lie in time, no dollar is lost or counted twice."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.prices import Changes
from boa.model.records import Hold, NodeRecord
from boa.scheduler.money.costs import By, costs
from boa.scheduler.money.ledger import (
    Bill,
    Totals,
    at,
    bill,
    closed_hold,
    closed_node,
    ended_hold,
    hold_cost,
)
from boa.units import DAY_S
from reading import held

BEGIN, SPAN = 1_767_000_000.0, 500_000.0
"""Six days, none of them beginning at midnight."""
moments = st.integers(0, 1000).map(lambda n: BEGIN + n * SPAN / 1000)
prices = st.sampled_from([0.1, 1.0, 3.3])


@st.composite
def changes(draw: st.DrawFn) -> Changes:
    """Prices that a node has later; some before it is there, and some after it is gone."""
    times = sorted(draw(st.lists(moments, max_size=4, unique=True)))
    return tuple((at, draw(prices)) for at in times)


@st.composite
def nodes_with_holds(draw: st.DrawFn, number: int, changing: bool) -> tuple[NodeRecord, list[Hold]]:
    """A node at any stage of its life, and holds while it was usable, each GPU held once a time."""
    times = sorted(draw(st.lists(moments, min_size=5, max_size=5)))
    stage = draw(st.integers(0, 5))
    known = [time if n < stage else None for n, time in enumerate(times)]
    requested, billed, ready, released, gone = times[0], *known[1:]
    node = NodeRecord(
        id=number,
        token=f"t-{number}",
        gpu="T4",
        gpus=draw(st.integers(1, 3)),
        price=draw(prices),
        changes=draw(changes()) if changing else (),
        state="gone" if gone else "releasing" if released else "ready" if ready else "requested",
        requested_at=requested,
        billed_from=billed,
        ready_at=ready,
        released_at=released,
        gone_at=gone,
    )
    return node, [] if ready is None else draw(holds_of(node, ready, released or BEGIN + SPAN))


@st.composite
def holds_of(draw: st.DrawFn, node: NodeRecord, ready: float, end: float) -> list[Hold]:
    holds = []
    for slot in range(node.gpus):
        cuts = sorted(draw(st.lists(st.integers(0, 100), max_size=4, unique=True)))
        for a, b in list(pairwise(cuts))[::2]:  # and gaps between them
            is_open = node.released_at is None and b == cuts[-1] and draw(st.booleans())
            holds.append(
                Hold(
                    job=str(10 * node.id + slot),
                    stream=draw(st.sampled_from(["bert", "gpt"])),
                    node=node.id,
                    gpus=1,
                    price=node.price,
                    changes=node.changes,
                    since=ready + (end - ready) * a / 100,
                    until=None if is_open else ready + (end - ready) * b / 100,
                )
            )
    return holds


@st.composite
def histories(draw: st.DrawFn, changing: bool | None = None) -> tuple[list[NodeRecord], list[Hold]]:
    """`changing`: prices do; None: in some histories."""
    if changing is None:
        changing = draw(st.booleans())
    both = [draw(nodes_with_holds(n, changing)) for n in range(draw(st.integers(0, 4)))]
    return [node for node, _ in both], [hold for _, holds in both for hold in holds]


History = tuple[list[NodeRecord], list[Hold]]


def figures(of: Bill) -> list[float]:
    return [of.total, of.jobs, of.idle, of.provisioning]


def near(expected: Sequence[float]) -> object:
    return pytest.approx(list(expected), rel=1e-9, abs=1e-6)


@given(history=histories(), cuts=st.lists(moments, min_size=2, max_size=6))
def test_windows_of_any_partition_of_time_add_up(history: History, cuts: list[float]) -> None:
    cuts = sorted(cuts)
    parts = [figures(bill(*history, a, b)) for a, b in pairwise(cuts)]
    assert [sum(column) for column in zip(*parts, strict=True)] == near(
        figures(bill(*history, cuts[0], cuts[-1]))
    )


@given(history=histories(), since=moments, until=moments)
def test_the_three_parts_make_the_total_and_none_is_negative(
    history: History, since: float, until: float
) -> None:
    found = bill(*history, since, until)
    assert found.total == pytest.approx(found.jobs + found.idle + found.provisioning, abs=1e-9)
    assert min(figures(found)) >= 0


@given(history=histories(), shift=st.integers(-500_000, 500_000), since=moments, until=moments)
def test_the_parts_add_up_whatever_nonsense_the_holds_are(
    history: History, shift: int, since: float, until: float
) -> None:
    nodes, holds = history
    odd = [replace(h, since=h.since + shift, gpus=5 * h.gpus) for h in holds]
    found = bill(nodes, odd, since, until)
    assert found.total == pytest.approx(found.jobs + found.idle + found.provisioning, abs=1e-9)
    assert min(figures(found)) >= 0
    assert found.total == bill(nodes, holds, since, until).total


@given(history=histories())
def test_totals_kept_while_things_close_equal_the_bill_over_everything(history: History) -> None:
    nodes, holds = history
    now = BEGIN + SPAN
    totals = Totals()
    for hold in holds:
        if hold.until is not None:
            totals = closed_hold(totals, hold)
    for node in nodes:
        if node.gone_at is not None:
            totals = closed_node(totals, node)
    open_nodes = [node for node in nodes if node.gone_at is None]
    found = at(totals, open_nodes, [hold for hold in holds if hold.until is None], now)
    assert figures(found) == near(figures(bill(nodes, holds, BEGIN, now)))


def begun_later(hold: Hold, seconds: float) -> Hold:
    """No hold ends before it begins."""
    since = hold.since + seconds
    until = None if hold.until is None else max(hold.until, since)
    return replace(hold, since=since, until=until)


@given(
    history=histories(),
    shift=st.sampled_from([0, 0, -9000, 7000]),
    by=st.sampled_from([None, "day", "class", "job"]),
    since=moments,
    until=moments,
)
def test_by_column_the_bill_is_the_same_whether_holds_outlast_their_nodes_or_not(
    history: History, shift: int, by: By | None, since: float, until: float
) -> None:
    nodes, holds = history
    holds = [begun_later(h, shift * (n % 2)) for n, h in enumerate(holds)]
    holds += [replace(h, node=99) for h in holds[:1]]
    found, _ = costs(nodes, held(holds), since, until, by)
    assert figures(found) == near(figures(bill(nodes, holds, since, until)))


@given(
    history=histories(),
    by=st.sampled_from(["day", "class", "job"]),
    since=moments,
    until=moments,
)
def test_rows_add_up_to_the_bill(history: History, by: By, since: float, until: float) -> None:
    nodes, holds = history
    charged, rows = costs(nodes, held(holds), since, until, by)
    keys = ("total_usd", "jobs_usd", "idle_usd", "provisioning_usd")
    assert [sum(row[key] for row in rows) for key in keys] == near(figures(charged))
    assert all(row[key] >= 0 for row in rows for key in keys)
    _, days = costs(nodes, held(holds), since, until, "day")
    rented = sum(row["gpu_hours"] for row in days)
    assert sum(row["gpu_hours"] for row in rows) == pytest.approx(rented, abs=1e-6)
    assert len({row[by] for row in rows}) == len(rows)


@given(history=histories(), by=st.sampled_from(["class", "job"]), since=moments, until=moments)
def test_a_row_of_a_class_or_job_is_the_bill_of_its_holds_alone(
    history: History, by: By, since: float, until: float
) -> None:
    nodes, holds = history
    lost = Hold(job="1", stream="gpt", node=99, gpus=2, price=1.0, since=BEGIN)
    _, rows = costs(nodes, held([*holds, lost]), since, until, by)
    for row in (row for row in rows if row[by] is not None):
        its = [h for h in holds if row[by] == (h.job if by == "job" else h.stream)]
        alone = bill(nodes, its, since, until)
        assert [row["jobs_usd"], row["total_usd"]] == near([alone.jobs] * 2)
    told = {row[by] for row in rows}
    for hold in holds:
        if bill(nodes, [hold], since, until).jobs > 1e-9:
            assert (hold.job if by == "job" else hold.stream) in told


@given(history=histories(), since=moments, until=moments)
def test_a_row_of_a_day_is_the_bill_of_that_day(
    history: History, since: float, until: float
) -> None:
    nodes, holds = history
    _, rows = costs(nodes, held(holds), since, until, "day")
    for row in rows:
        begin = datetime.fromisoformat(row["day"]).replace(tzinfo=UTC).timestamp()
        day = bill(nodes, holds, max(begin, since), min(begin + DAY_S, until))
        found = (row["total_usd"], row["jobs_usd"], row["idle_usd"], row["provisioning_usd"])
        assert found == near(figures(day))


# Prices that change


def by_the_second(node: NodeRecord, begin: float, end: float) -> float:
    """What a GPU costs, in dollars: a second at a time, each at the price that held in it."""
    seconds = BEGIN + np.arange(int(begin - BEGIN), int(end - BEGIN))
    price = np.full(len(seconds), node.price)
    for moment, then in node.changes:
        price[seconds >= moment] = then
    return float(price.sum()) / 3600


@given(history=histories(changing=True), since=moments, until=moments)
def test_every_second_is_charged_at_the_price_that_held_in_it(
    history: History, since: float, until: float
) -> None:
    nodes, holds = history
    by_id = {node.id: node for node in nodes}
    total = provisioning = jobs = 0.0
    for node in nodes:
        if node.billed_from is None:
            continue
        begin, end = max(node.billed_from, since), min(node.gone_at or until, until)
        total += node.gpus * by_the_second(node, begin, end)
        usable = min(node.released_at or end, end)
        if node.ready_at is None:
            provisioning += node.gpus * by_the_second(node, begin, end)
        else:
            ready = min(max(node.ready_at, begin), max(end, begin))
            provisioning += node.gpus * by_the_second(node, begin, ready)
            provisioning += node.gpus * by_the_second(node, max(usable, begin), end)
    for hold in holds:
        node = by_id[hold.node]
        last = min(node.released_at or until, node.gone_at or until, until)
        end = min(hold.until or last, last)
        jobs += hold.gpus * by_the_second(node, max(hold.since, since), end)
    found = bill(nodes, holds, since, until)
    assert [found.total, found.provisioning, found.jobs] == pytest.approx(
        [total, provisioning, jobs], rel=1e-6, abs=1e-6
    )


@given(history=histories(changing=True), now=moments)
def test_a_hold_that_ends_costs_what_it_cost_while_it_was_open(
    history: History, now: float
) -> None:
    for hold in history[1]:
        end = hold.until or max(now, hold.since)
        ended = ended_hold(hold, end)
        assert hold_cost(ended, end) == pytest.approx(hold_cost(replace(hold, until=end), end))
        assert not ended.changes, "its average is all that is stored"
