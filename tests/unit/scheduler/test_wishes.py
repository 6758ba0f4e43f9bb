"""Calls to engine and cloud, as they follow from the records alone."""

from dataclasses import replace

import pytest

from boa.model.job import JobRecord, RunState
from boa.model.records import NodeState
from boa.model.runs import RunKey
from boa.scheduler.wishes import ReleaseNode, RentNode, StartRun, StopRun, wishes
from stored import job, node, running


def with_run(state: RunState) -> JobRecord:
    record = running(1)
    assert record.run is not None
    return replace(record, run=replace(record.run, state=state))


def test_a_run_that_is_requested_is_started() -> None:
    record = with_run("requested")
    assert record.run is not None
    (wish,) = wishes([record], [])
    assert wish == StartRun(record, record.run)
    assert wish.key == RunKey("1", 3)


def test_a_run_that_is_to_end_is_stopped() -> None:
    record = with_run("stopping")
    assert list(wishes([record], [])) == [StopRun(record, RunKey("1", 3))]


@pytest.mark.parametrize(
    "record",
    [job(1), with_run("running"), replace(with_run("requested"), state="failed", ended_at=9.0)],
    ids=["no run", "running", "ended"],
)
def test_of_a_job_that_is_as_it_should_be_nothing_is_asked(record: JobRecord) -> None:
    assert list(wishes([record], [])) == []


def test_a_node_that_the_cloud_has_not_said_it_charges_for_is_rented() -> None:
    asked = node(1)
    assert list(wishes([], [asked])) == [RentNode(asked)]
    assert list(wishes([], [replace(asked, billed_from=11.0)])) == [], "it is booting"


@pytest.mark.parametrize(("state", "released"), [("releasing", 1), ("ready", 0), ("gone", 0)])
def test_a_node_is_released_until_it_is_gone(state: NodeState, released: int) -> None:
    known = node(1, state=state, billed_from=10.0)
    assert list(wishes([], [known])) == released * [ReleaseNode(known)]


def test_runs_come_before_nodes_in_the_order_of_the_records() -> None:
    first, second = with_run("stopping"), replace(with_run("requested"), id="2")
    found = list(wishes([first, second], [node(2), node(1)]))
    assert [type(wish) for wish in found] == [StopRun, StartRun, RentNode, RentNode]
    assert found == list(wishes([first, second], [node(2), node(1)])), "and may be asked twice"
