"""However nodes and holds lie in time, no dollar is lost or counted twice."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.held import Held
from boa.model.records import Hold, NodeRecord
from boa.scheduler.money.costs import bill_by_node, cost_rows, costs_by_class
from boa.scheduler.money.ledger import Bill, Totals, at, bill, closed_hold, closed_node
from reading import held, held_on_nodes

BEGIN, SPAN = 1_767_000_000.0, 500_000.0
"""Six days, none of them beginning at midnight."""
moments = st.integers(0, 1000).map(lambda n: BEGIN + n * SPAN / 1000)


@st.composite
def nodes_with_holds(draw: st.DrawFn, number: int) -> tuple[NodeRecord, list[Hold]]:
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
        price=draw(st.sampled_from([0.1, 1.0, 3.3])),
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
                    job_class=draw(st.sampled_from(["bert", "gpt"])),
                    node=node.id,
                    gpus=1,
                    price=node.price,
                    since=ready + (end - ready) * a / 100,
                    until=None if is_open else ready + (end - ready) * b / 100,
                )
            )
    return holds


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[NodeRecord], list[Hold]]:
    both = [draw(nodes_with_holds(n)) for n in range(draw(st.integers(0, 4)))]
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


def begun_later(hold: Hold, seconds: float) -> Hold:
    """No hold ends before it begins."""
    since = hold.since + seconds
    until = None if hold.until is None else max(hold.until, since)
    return replace(hold, since=since, until=until)


@given(
    history=histories(), shift=st.sampled_from([0, 0, -9000, 7000]), since=moments, until=moments
)
def test_a_bill_from_sums_by_node_is_the_bill_whether_holds_outlast_their_nodes_or_not(
    history: History, shift: int, since: float, until: float
) -> None:
    nodes, holds = history
    holds = [begun_later(h, shift * (n % 2)) for n, h in enumerate(holds)]
    holds += [replace(h, node=99) for h in holds[:1]]
    since, until = min(since, until), max(since, until) + 1
    asked: list[int] = []

    def apart(ids: Sequence[int]) -> Held:
        asked.extend(ids)
        return held([h for h in holds if h.node in ids])

    found = bill_by_node(nodes, held_on_nodes(holds, since, until), apart, since, until)
    assert figures(found) == near(figures(bill(nodes, holds, since, until)))
    assert shift or not asked, "sums alone tell it"


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


@given(
    history=histories(),
    by=st.sampled_from(["day", "class", "job"]),
    since=moments,
    until=moments,
)
def test_rows_add_up_to_the_bill(
    history: History, by: Literal["day", "class", "job"], since: float, until: float
) -> None:
    rows = cost_rows(*history, {}, by, since, until)
    keys = ("total_usd", "jobs_usd", "idle_usd", "provisioning_usd")
    assert [sum(row[key] for row in rows) for key in keys] == near(
        figures(bill(*history, since, until))
    )
    assert all(row[key] >= 0 for row in rows for key in keys)
    rented = sum(row["gpu_hours"] for row in cost_rows(*history, {}, "day", since, until))
    assert sum(row["gpu_hours"] for row in rows) == pytest.approx(rented, abs=1e-6)
    assert len({row[by] for row in rows}) == len(rows)


@given(history=histories(), since=moments, until=moments)
def test_by_column_the_bill_and_its_rows_by_class_are_the_same(
    history: History, since: float, until: float
) -> None:
    nodes, holds = history
    lost = Hold(job="1", job_class="gpt", node=99, gpus=2, price=1.0, since=BEGIN)
    holds = [*holds, lost]
    charged, rows = costs_by_class(nodes, held(holds), since, until)
    assert figures(charged) == near(figures(bill(nodes, holds, since, until)))
    expected = cost_rows(nodes, holds, {}, "class", since, until)
    found = {row.pop("class"): row for row in rows}
    assert found.keys() == {row["class"] for row in expected}
    for row in expected:
        assert found[row.pop("class")] == pytest.approx(row, rel=1e-9, abs=1e-6)
