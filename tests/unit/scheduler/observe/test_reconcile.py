"""What the cloud lists, and what follows for a node."""

from dataclasses import replace
from typing import Any

import pytest

from boa.model.cloud import CloudNode
from boa.model.records import NodeRecord
from boa.scheduler.observe.reconcile import (
    Action,
    Changed,
    Orphan,
    Release,
    Rent,
    adopted,
    reconcile,
)

REQUESTED = NodeRecord(
    id=4, token="boa-4", gpu="T4", gpus=4, price=1.0, state="requested", requested_at=100.0
)
BOOTING = replace(REQUESTED, billed_from=110.0, price=0.9, address="10.0.0.4")
READY = replace(BOOTING, state="ready", ready_at=150.0)
RELEASING = replace(READY, state="releasing", released_at=500.0)
GONE = replace(RELEASING, state="gone", gone_at=520.0)


def listed(**changes: Any) -> CloudNode:
    node = CloudNode(
        token="boa-4",
        gpu="T4",
        gpus=4,
        price=0.9,
        billed_from=110.0,
        ready_at=None,
        address="10.0.0.4",
    )
    return replace(node, **changes)


def follows(record: NodeRecord, *nodes: CloudNode, at: float = 600.0) -> list[Action]:
    return reconcile([record], nodes, at, again_s=60.0)


# A node that was asked for


def test_a_node_that_is_not_listed_yet_is_left_for_a_while_and_then_asked_for_again() -> None:
    assert follows(REQUESTED, at=159.0) == []
    assert follows(REQUESTED, at=160.0) == [Rent(REQUESTED)]


def test_a_listed_node_is_charged_from_when_the_cloud_says_at_the_clouds_price() -> None:
    assert follows(REQUESTED, listed()) == [Changed("billed", BOOTING)]
    assert follows(BOOTING, listed()) == []


def test_a_price_that_has_hardly_changed_is_not_written_down_until_the_node_is_gone() -> None:
    ready, drifted = listed(ready_at=150.0), 0.9 * (1 + 1e-6)
    assert follows(READY, replace(ready, price=drifted)) == []
    assert follows(READY, replace(ready, price=0.91)) == [
        Changed("billed", replace(READY, price=0.91))
    ]
    (last,) = follows(READY, replace(ready, price=drifted, gone_at=550.0))
    assert isinstance(last, Changed)
    assert last.node.price == drifted


def test_a_node_that_dropped_out_for_a_moment_keeps_its_address() -> None:
    ready = listed(ready_at=150.0)
    assert follows(READY, replace(ready, address="")) == []
    assert follows(READY, replace(ready, address="10.0.0.5")) == [
        Changed("billed", replace(READY, address="10.0.0.5"))
    ]


@pytest.mark.parametrize("known", [REQUESTED, BOOTING])
def test_a_node_that_has_booted_is_ready(known: NodeRecord) -> None:
    assert follows(known, listed(ready_at=150.0)) == [Changed("ready", READY)]
    assert follows(READY, listed(ready_at=150.0)) == []


def test_a_node_of_another_size_than_asked_for_is_paid_for_as_it_is() -> None:
    [change] = follows(REQUESTED, listed(gpus=8))
    assert isinstance(change, Changed)
    assert change.node.gpus == 8


# A node that is lost


@pytest.mark.parametrize("known", [BOOTING, READY])
def test_a_node_that_is_no_longer_listed_is_lost(known: NodeRecord) -> None:
    lost = replace(known, state="gone", gone_at=600.0, reason="the cloud no longer lists it")
    assert follows(known) == [Changed("lost", lost, "unlisted")]


def test_a_list_from_before_a_node_was_rented_says_nothing_of_it() -> None:
    assert follows(READY, at=110.0) == []


@pytest.mark.parametrize("known", [REQUESTED, BOOTING, READY])
def test_a_node_that_the_cloud_took_back_is_charged_until_then(known: NodeRecord) -> None:
    [change] = follows(known, listed(gone_at=300.0))
    assert isinstance(change, Changed)
    assert change.what == "lost"
    assert (change.node.billed_from, change.node.gone_at) == (110.0, 300.0)


# A node that was given back


def test_a_node_given_back_is_asked_to_go_until_it_does() -> None:
    assert follows(RELEASING, listed(ready_at=150.0)) == [Release(RELEASING)]
    assert follows(RELEASING, listed(gone_at=520.0)) == [
        Changed("gone", replace(GONE, reason="the cloud took it back"), "taken_back")
    ]
    [unlisted] = follows(RELEASING)
    assert isinstance(unlisted, Changed)
    assert (unlisted.what, unlisted.node.gone_at) == ("gone", 600.0)


def test_a_node_given_back_before_it_came_is_waited_for() -> None:
    """The wish to rent it may reach the cloud after the wish to give it back."""
    early = replace(REQUESTED, state="releasing", released_at=120.0)
    assert follows(early, at=130.0) == [Release(early)]
    came = replace(early, billed_from=110.0, price=0.9, address="10.0.0.4")
    assert follows(early, listed(), at=130.0) == [Changed("billed", came), Release(came)]
    [never] = follows(early, at=180.0)
    assert isinstance(never, Changed)
    assert (never.what, never.node.billed_from, never.node.gone_at) == ("gone", None, 180.0)


# A node that nobody has


def test_a_node_that_nobody_remembers_is_given_back_and_paid_for() -> None:
    [orphan] = reconcile([], [listed()], 600.0)
    assert orphan == Orphan(listed(), 110.0)
    record = adopted(orphan, 9, 600.0)
    assert (record.id, record.token, record.state) == (9, "boa-4", "releasing")
    assert (record.billed_from, record.released_at) == (110.0, 600.0)
    assert reconcile([record], [listed()], 601.0) == [Release(record)]


def test_a_node_that_comes_back_from_the_dead_is_paid_for_from_then_on() -> None:
    assert follows(GONE, listed()) == [Orphan(listed(), 520.0)]
    assert reconcile([GONE, adopted(Orphan(listed(), 520.0), 9, 600.0)], [listed()], 601.0) == [
        Release(adopted(Orphan(listed(), 520.0), 9, 600.0))
    ]


def test_a_node_that_was_given_up_and_comes_all_the_same_is_paid_for_from_its_beginning() -> None:
    given_up = replace(REQUESTED, state="gone", released_at=120.0, gone_at=180.0)
    assert follows(given_up, listed()) == [Orphan(listed(), 110.0)]


def test_what_is_gone_and_stays_gone_is_left_alone() -> None:
    assert reconcile([], [listed(gone_at=520.0)], 600.0) == []
    assert follows(GONE, listed(gone_at=520.0)) == []
    assert follows(GONE) == []


# Empty nodes
