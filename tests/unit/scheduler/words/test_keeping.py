"""Why nodes are paid for and why jobs wait, in words."""

from dataclasses import replace

import pytest

from boa.api.answers import Node
from boa.cli.live.cost import unused_words
from boa.model.cluster import NodeReason
from boa.model.records import NodeRecord
from boa.scheduler.money.steering import LONGEST_WAIT_S
from boa.scheduler.words.of_keeping import WAITS, kept, rounded_worth
from boa.server.render.documents import node, unused
from boa.server.render.watching import Standing

READY = NodeRecord(
    id=1,
    token="t-1",
    gpu="T4",
    gpus=4,
    price=1.0,
    requested_at=0.0,
    billed_from=0.0,
    ready_at=60.0,
    state="ready",
)


@pytest.mark.parametrize(
    ("changes", "standing", "said"),
    [
        ({}, Standing(), ""),
        ({}, Standing(True, 11.8), "kept: worth $11.80/h to jobs, for $4.00/h"),
        ({}, Standing(True), "kept: jobs gain by it, and the plan leaves money over"),
        ({}, Standing(True, -0.2, True), "to go once it is empty: worth $0.00/h to jobs, for"),
        ({"state": "requested"}, Standing(True, 5.5), "boots: worth $5.50/h to jobs, for $4.00/h"),
        ({"state": "requested"}, Standing(), "boots"),
        ({"state": "releasing"}, Standing(), "given back: $4.00/h until it is gone"),
        ({"state": "releasing", "reason": "not ready after 600 s"}, Standing(), "not ready after"),
    ],
)
def test_a_node_says_in_money_why_it_is_there(
    changes: dict[str, str], standing: Standing, said: str
) -> None:
    found = node(replace(READY, **changes), [], standing)  # type: ignore[arg-type]
    assert found["why"].startswith(said)
    assert bool(found["why"]) == bool(said)


def test_a_worth_is_told_to_two_digits() -> None:
    assert rounded_worth(NodeReason(price_per_hour=4.0, worth_per_hour=11.847)) == 12.0
    assert rounded_worth(NodeReason(price_per_hour=4.0)) is None
    assert rounded_worth(None) is None


def shown(number: int, state: str, standing: Standing, **changes: object) -> Node:
    record = replace(READY, id=number, state=state, **changes)  # type: ignore[arg-type]
    return node(record, [], standing)


def test_money_that_no_job_uses_is_told_by_why() -> None:
    found = unused(
        [
            {**shown(1, "ready", Standing(True, 11.0)), "used_gpus": 1},
            {**shown(2, "ready", Standing(True, 2.0, True)), "used_gpus": 4},
            shown(3, "requested", Standing(True, 5.5)),
            shown(4, "requested", Standing(True, 5.5), billed_from=None),
            shown(5, "releasing", Standing()),
        ]
    )
    assert [(one["why"], one["nodes"], one["gpus"], one["per_hour"]) for one in found] == [
        ("idle", 1, 3, 3.0),
        ("booting", 1, 4, 4.0),
        ("leaving", 1, 4, 4.0),
    ]
    assert [unused_words(one) for one in found] == [
        "for 3 idle GPUs on 1 node that is kept: worth $11.00/h to jobs, for $4.00/h",
        "for 1 node that boots: worth $5.50/h to jobs, for $4.00/h",
        "for 1 node given back and not gone yet",
    ]


def test_what_nobody_weighed_has_no_worth() -> None:
    assert kept(READY, None, weighed=False, draining=False) == ""


def test_a_job_that_waits_for_money_is_told_how_long_at_most() -> None:
    assert "half an hour at most" in WAITS["worth"]
    assert LONGEST_WAIT_S == 1800.0
