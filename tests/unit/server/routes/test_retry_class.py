"""Widths that failed, tried again by request: over the API, the client and the command line."""

import pytest

from boa.client import Client
from boa.errors import Refused
from boa.model.placements import FailedPlacement, Placement
from fakes import NOW, FakeService
from integration.runner import Boa
from learned import learned, learned_on

TWO = FailedPlacement(
    Placement("T4", 2, across=False), 3, 3, NOW - 60, "exit code 1: CUDA out of memory", "1", ""
)
FOUR = TWO._replace(place=Placement("T4", 4, across=True), times=1)


@pytest.fixture
def known(service: FakeService) -> FakeService:
    service.control.documents = {"net": learned("net", [learned_on("T4")])}
    service.control.failed = [TWO, FOUR]
    return service


def test_the_client_is_told_what_is_tried_again(known: FakeService) -> None:
    with Client() as client:
        (found,) = client.retry_class("net", gpu_type="T4", width=2)["retried"]
        assert (found["gpu_type"], found["width"], found["times"]) == ("T4", 2, 3)
        assert found["reason"] == "exit code 1: CUDA out of memory"
        assert len(client.retry_class("net")["retried"]) == 1, "the other one"
        assert client.retry_class("net")["retried"] == []


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ("classes/nobody/retry", 404, "a class that jobs were submitted of"),
        ("classes/net/retry?gpu_type=T9", 422, "GPU type that can be rented here"),
        ("classes/net/retry?width=0", 422, "width"),
        ("classes/net/retry?width=1e9", 422, "width"),
        ("classes/net/retry?wide=2", 422, "wide"),
    ],
)
def test_what_cannot_be_tried_again_is_refused(
    known: FakeService, asked: str, status: int, words: str
) -> None:
    answer = known.ask("POST", f"/api/v1/{asked}")
    assert answer.status_code == status
    assert words in answer.text
    assert known.control.failed == [TWO, FOUR]


def test_the_command_says_what_may_be_used_again(run: Boa, known: FakeService) -> None:
    said = run("class", "retry", "net", "--width", 4)
    assert said == "4×T4 across nodes may be used again; it failed 1×: " + TWO.reason + "\n"
    assert run.json("class", "retry", "net")["retried"][0]["width"] == 2
    assert run("class", "retry", "net") == ""
    assert "nothing was changed" in run.err
    run("class", "retry", "nobody", code=2)
    run("class", "retry", "net", "--width", 0, code=2)


def test_a_refusal_comes_back_as_one(known: FakeService) -> None:
    with Client() as client, pytest.raises(Refused):
        client.retry_class("net", gpu_type="T9")


def test_show_says_that_a_width_failed_and_not_that_nobody_tried_it(
    run: Boa, known: FakeService
) -> None:
    failed = {
        "width": 4,
        "across_nodes": False,
        "times": 3,
        "reason": "exit code 1",
        "said": "CUDA out of memory",
        "at": NOW,
        "job": "1",
        "again_at": None,
    }
    on = learned_on("T4", failed=[failed])
    known.control.documents = {"net": learned("net", [on])}
    said = run("show", "net")
    assert "4×T4 failed 3 times: exit code 1: CUDA out of memory; not used\n" in said
    (row,) = [line for line in said.splitlines() if line.startswith("     4 ")]
    assert "not tried yet" not in row
    failed["again_at"] = NOW + 3600
    assert "; not used for now\n" in run("show", "net")
