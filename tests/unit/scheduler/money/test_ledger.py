"""What a node and a job cost, worked out by hand."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from boa.model.job import JobRecord, JobSpec
from boa.model.records import Hold, NodeRecord
from boa.scheduler.money.costs import By, cost_of_job, costs, forecast_month, month_of
from boa.scheduler.money.ledger import (
    Bill,
    Totals,
    at,
    bill,
    closed_hold,
    closed_node,
    committed,
    hold_cost,
    spend_now,
)
from reading import held as by_column

H = 3600.0
MIDNIGHT = datetime(2026, 3, 10, tzinfo=UTC).timestamp()


NODE = NodeRecord(
    id=1,
    token="t-1",
    gpu="T4",
    gpus=4,
    price=2.0,
    state="gone",
    requested_at=0.5 * H,
    billed_from=1 * H,
    ready_at=2 * H,
    released_at=8 * H,
    gone_at=9 * H,
)
"""$8 an hour."""


def node(**changes: Any) -> NodeRecord:
    return replace(NODE, **changes)


def hold(since: float, until: float | None, gpus: int = 2, **changes: Any) -> Hold:
    """Times in hours."""
    made = Hold(
        job="7",
        stream="bert",
        node=1,
        gpus=gpus,
        price=2.0,
        since=since * H,
        until=None if until is None else until * H,
    )
    return replace(made, **changes)


def spent(total: float, jobs: float, idle: float, provisioning: float) -> Any:
    parts = {"total": total, "jobs": jobs, "idle": idle, "provisioning": provisioning}
    return Bill(**{name: cast(float, pytest.approx(usd)) for name, usd in parts.items()})


# One node


def test_a_node_is_provisioning_until_ready_and_after_release_and_idle_between() -> None:
    assert bill([node()], [], 0, 24 * H) == spent(64, 0, 48, 16)


def test_what_jobs_held_is_theirs_and_the_rest_of_the_node_idle() -> None:
    assert bill([node()], [hold(3, 5)], 0, 24 * H) == spent(64, 8, 40, 16)


def test_a_window_cuts_through_everything() -> None:
    assert bill([node()], [hold(3, 5)], 1.5 * H, 4 * H) == spent(20, 4, 12, 4)


def test_a_window_that_ends_before_it_begins_costs_nothing() -> None:
    assert bill([node()], [hold(3, 5)], 5 * H, 4 * H) == spent(0, 0, 0, 0)


def test_a_node_that_the_cloud_has_not_confirmed_costs_nothing() -> None:
    unheard = node(state="requested", billed_from=None, ready_at=None, released_at=None)
    assert bill([unheard], [], 0, 24 * H) == spent(0, 0, 0, 0)


def test_a_node_that_never_became_ready_was_all_provisioning() -> None:
    assert bill([node(ready_at=None)], [], 0, 24 * H) == spent(64, 0, 0, 64)


def test_a_node_given_back_before_it_was_ready_was_all_provisioning() -> None:
    early = node(ready_at=5 * H, released_at=3 * H)
    assert bill([early], [hold(5, 6)], 0, 24 * H) == spent(64, 0, 0, 64)


def test_a_lost_node_is_charged_until_it_was_gone() -> None:
    assert bill([node(released_at=None)], [], 0, 24 * H) == spent(64, 0, 56, 8)


def test_an_open_node_is_charged_until_the_end_of_the_window() -> None:
    still_there = node(state="ready", released_at=None, gone_at=None)
    assert bill([still_there], [hold(3, None)], 0, 4 * H) == spent(24, 4, 12, 8)


@pytest.mark.parametrize(
    ("since", "until", "jobs"),
    [(0, 3, 4.0), (7, None, 4.0), (0, 1.5, 0.0), (8.5, 9, 0.0), (5, 4, 0.0)],
)
def test_a_hold_counts_only_while_its_node_could_be_used(
    since: float, until: float | None, jobs: float
) -> None:
    assert bill([node()], [hold(since, until)], 0, 24 * H) == spent(64, jobs, 48 - jobs, 16)


def test_a_hold_is_charged_at_the_price_of_its_node_and_not_at_all_without_one() -> None:
    odd = [hold(3, 5, price=99.0), hold(3, 5, node=2)]
    assert bill([node()], odd, 0, 24 * H) == spent(64, 8, 40, 16)


def test_holds_on_more_gpus_than_there_are_leave_nothing_idle_and_nothing_negative() -> None:
    assert bill([node()], [hold(2, 8, gpus=40)], 0, 24 * H) == spent(64, 48, 0, 16)


# Rates


def test_what_is_charged_now_includes_booting_and_returned_nodes_but_not_hopes() -> None:
    nodes = [
        node(id=1, state="requested", billed_from=None, ready_at=None, gone_at=None),
        node(id=2, state="requested", ready_at=None, released_at=None, gone_at=None),
        node(id=3, state="ready", released_at=None, gone_at=None),
        node(id=4, state="releasing", gone_at=None),
        node(id=5),
    ]
    assert spend_now(nodes, 0.0) == 3 * 8
    assert committed(nodes, 0.0) == 4 * 8, "a node that may come any moment counts against the cap"


# Added up as things close


def test_totals_of_what_closed_and_what_is_open_make_the_bill() -> None:
    open_node = node(id=2, state="ready", released_at=None, gone_at=None)
    first, second = hold(3, 5), hold(2, 4, node=2)
    totals = closed_hold(closed_hold(Totals(), first), second)
    totals = closed_node(totals, node())
    still = hold(5, None, node=2)
    everything = bill([node(), open_node], [first, second, still], 0, 10 * H)
    assert at(totals, [open_node], [still], 10 * H) == spent(
        everything.total, everything.jobs, everything.idle, everything.provisioning
    )
    assert everything.jobs == pytest.approx(8 + 8 + 20)


def test_totals_survive_json() -> None:
    totals = closed_node(closed_hold(Totals(), hold(3, 5)), node())
    assert Totals.from_document(json.loads(json.dumps(totals.as_document()))) == totals


def test_what_is_not_closed_is_not_added() -> None:
    with pytest.raises(ValueError, match="node 1 is still charged for"):
        closed_node(Totals(), node(gone_at=None))
    with pytest.raises(ValueError, match="job 7 still holds GPUs of node 1"):
        closed_hold(Totals(), hold(3, None))


def test_a_refused_node_closes_for_nothing() -> None:
    refused = node(billed_from=None, ready_at=None, released_at=None, gone_at=None)
    assert closed_node(Totals(), refused) == Totals()


def test_a_hold_that_outlasted_its_node_is_cut_to_what_could_be_used() -> None:
    """The cloud said late that the node was gone: the job was charged a little longer."""
    lost = node(released_at=None, gone_at=4 * H)
    totals = closed_node(closed_hold(Totals(), hold(2, 4.5, gpus=4)), lost)
    assert at(totals, [], [], 5 * H) == spent(24, 16, 0, 8)


# Jobs


MINE = JobRecord(
    id="7",
    spec=JobSpec(job_class="bert", run=("train",), name="mine"),
    serial=0,
    submitted_at=0.0,
    cost_usd=10.0,
)


def test_a_hold_costs_its_gpus_for_as_long_as_they_were_held() -> None:
    assert hold_cost(hold(3, 5), 100 * H) == 8
    assert hold_cost(hold(3, None), 4 * H) == 4
    assert hold_cost(hold(3, None), 2 * H) == 0, "a clock that was set back"


def test_a_job_costs_what_it_has_held_and_what_it_holds() -> None:
    others = hold(3, None, job="8")
    assert cost_of_job(MINE, [hold(3, None), others], 4 * H) == 14


# Rows


def rows_of(
    nodes: list[NodeRecord], holds: list[Hold], by: By, since: float, until: float
) -> list[dict[str, Any]]:
    _, rows = costs(nodes, by_column(holds), since, until, by, {"7": MINE.name})
    return rows


def test_days_are_cut_at_midnight_utc() -> None:
    over_night = node(
        billed_from=MIDNIGHT - H,
        ready_at=MIDNIGHT - H,
        released_at=None,
        gone_at=MIDNIGHT + 3 * H,
    )
    held = hold(MIDNIGHT / H - 0.5, MIDNIGHT / H + 1)
    rows = rows_of([over_night], [held], "day", 0, MIDNIGHT + 24 * H)
    assert [row["day"] for row in rows] == ["2026-03-09", "2026-03-10"]
    assert [row["total_usd"] for row in rows] == pytest.approx([8, 24])
    assert [row["jobs_usd"] for row in rows] == pytest.approx([2, 4])
    assert [row["gpu_hours"] for row in rows] == pytest.approx([4, 12])


def test_a_day_that_only_begins_when_the_node_ends_has_no_row() -> None:
    until_midnight = node(
        billed_from=MIDNIGHT - H, ready_at=None, released_at=None, gone_at=MIDNIGHT
    )
    rows = rows_of([until_midnight], [], "day", 0, MIDNIGHT + 24 * H)
    assert [row["day"] for row in rows] == ["2026-03-09"]


def test_classes_and_jobs_come_dearest_first_and_what_nobody_held_last() -> None:
    holds = [hold(3, 5), hold(3, 6, job="8", stream="gpt"), hold(6, 7, job="9")]
    by_class = rows_of([node()], holds, "class", 0, 24 * H)
    assert [(row["class"], row["total_usd"]) for row in by_class] == [
        ("bert", pytest.approx(12)),
        ("gpt", pytest.approx(12)),
        (None, pytest.approx(40)),
    ]
    by_job = rows_of([node()], holds, "job", 0, 24 * H)
    assert [(row["job"], row.get("name"), row.get("class")) for row in by_job] == [
        ("8", "", "gpt"),
        ("7", "mine", "bert"),
        ("9", "", "bert"),
        (None, None, None),
    ]
    assert by_job[-1]["idle_usd"] == pytest.approx(24)
    assert by_job[-1]["provisioning_usd"] == pytest.approx(16)
    assert sum(row["gpu_hours"] for row in by_job) == pytest.approx(32)


@pytest.mark.parametrize("by", ["day", "class", "job"])
def test_where_nothing_was_rented_there_are_no_rows(by: Any) -> None:
    assert rows_of([node()], [hold(3, 5)], by, 20 * H, 24 * H) == []


# The month


def test_a_month_ends_at_its_last_midnight_utc() -> None:
    begin, end = month_of(datetime(2028, 2, 29, 23, 59, tzinfo=UTC).timestamp())
    assert begin == datetime(2028, 2, 1, tzinfo=UTC).timestamp()
    assert end == datetime(2028, 3, 1, tzinfo=UTC).timestamp()
    assert month_of(end) == (end, datetime(2028, 4, 1, tzinfo=UTC).timestamp())
    december = datetime(2027, 12, 5, tzinfo=UTC).timestamp()
    assert month_of(december)[1] == datetime(2028, 1, 1, tzinfo=UTC).timestamp()


def test_the_rest_of_the_month_goes_on_as_it_was() -> None:
    two_days_before = datetime(2026, 4, 29, tzinfo=UTC).timestamp()
    assert forecast_month(1000.0, 2.0, two_days_before) == pytest.approx(1096.0)
