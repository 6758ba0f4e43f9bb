"""Money, nodes, the plan and classes over the API."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import boa
from boa.formats.plain_yaml import load_yaml
from boa.model.held import Held
from boa.model.records import NodeRecord
from boa.scheduler.plan.plan_in_force import PlanState
from boa.server.http import shared_answers
from fakes import NOW, FakeService
from integration.runner import WORKLOAD
from learned import learned, learned_on
from reading import held

CONTRACT = {
    "budget_per_hour",
    "average_spend_per_hour",
    "spend_now_per_hour",
    "total_usd",
    "jobs_usd",
    "idle_usd",
    "forecast_month_usd",
}
HOUR = 3600.0


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path)


def plan_state(too_small: float | None = None) -> PlanState:
    workload = boa.parse_workload(load_yaml(WORKLOAD))
    solution = boa.plan(workload, 10.0)
    return PlanState(
        number=3,
        at=NOW - 60,
        solution=solution,
        workload=workload,
        wall_s=0.012,
        too_small=too_small,
    )


def test_the_cost_has_every_key_of_the_contract_and_its_parts_add_up(
    service: FakeService,
) -> None:
    cost = service.get("cost")
    assert set(cost) >= CONTRACT
    assert "rows" not in cost
    parts = cost["jobs_usd"] + cost["idle_usd"] + cost["provisioning_usd"]
    assert cost["total_usd"] == pytest.approx(parts)
    assert cost["average_spend_per_hour"] == pytest.approx(10.0), "$20 in two hours"


def test_a_month_costs_what_was_spent_and_the_same_pace_for_the_rest(service: FakeService) -> None:
    service.control.rent(1)
    left = 1_790_812_800.0 - NOW  # 1 October 2026
    expected = 4.0 + 4.0 * left / HOUR
    assert service.get("cost")["forecast_month_usd"] == pytest.approx(expected)


def test_between_two_times_only_what_was_charged_then_counts(service: FakeService) -> None:
    service.submit()
    service.control.run("1", gpus=3)
    cost = service.get("cost", params={"since": NOW - HOUR / 2})
    assert (cost["since"], cost["until"]) == (NOW - HOUR / 2, NOW)
    assert cost["total_usd"] == pytest.approx(2.0), "four GPUs for half an hour"
    assert cost["jobs_usd"] == pytest.approx(1.5)
    assert cost["average_spend_per_hour"] == pytest.approx(4.0)
    before = service.get("cost", params={"since": 0, "until": NOW - 2 * HOUR})
    assert before["total_usd"] == 0.0


def test_who_held_what_is_read_only_where_the_answer_needs_it(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.submit()
    service.control.run("1", gpus=3)
    store, read = service.control.store, []

    def held_between(since: float, until: float) -> Held:
        read.append((since, until))
        return held(store.kept_holds)

    monkeypatch.setattr(store, "held_between", held_between)
    assert service.get("cost")["forecast_month_usd"] > 0
    assert read == []
    service.get("cost", params={"by": "job", "since": NOW - HOUR})
    assert read == [(NOW - HOUR, NOW)], "once, for the totals and the rows"


@pytest.mark.parametrize(
    ("by", "keys"),
    [("day", ["2026-09-21"]), ("class", ["resnet18", None]), ("job", ["1", None])],
)
def test_rows_by_day_class_or_job_add_up(
    service: FakeService, by: str, keys: list[str | None]
) -> None:
    service.submit(name="first")
    service.control.run("1", gpus=3)
    rows = service.get("cost", params={"by": by})["rows"]
    assert [row[by] for row in rows] == keys
    assert sum(row["total_usd"] for row in rows) == pytest.approx(4.0)
    if by == "job":
        assert (rows[0]["name"], rows[0]["class"]) == ("first", "resnet18")


def test_a_new_budget_is_in_force_and_the_cap_stays_unless_one_or_none_is_given(
    service: FakeService,
) -> None:
    first = {"budget_per_hour": 20, "max_spend_per_hour": 50}
    assert service.ask("PUT", "/api/v1/budget", json=first).status_code == 200
    for given, cap in (({}, 50), ({"max_spend_per_hour": None}, None), ({}, None)):
        answer = service.ask("PUT", "/api/v1/budget", json={"budget_per_hour": 7.5, **given})
        assert answer.json() == service.get("budget")
        assert answer.json()["budget_per_hour"] == 7.5
        assert answer.json()["max_spend_per_hour"] == cap


def test_a_cap_alone_leaves_the_budget_and_its_average_as_they_are(service: FakeService) -> None:
    before = service.get("budget")
    for cap in (50, None):
        answer = service.ask("PUT", "/api/v1/budget", json={"max_spend_per_hour": cap})
        assert answer.json() == {**before, "max_spend_per_hour": cap}
    nothing = service.ask("PUT", "/api/v1/budget", json={})
    assert nothing.status_code == 422
    assert "max_spend_per_hour" in nothing.json()["error"]["message"]


def test_pages_that_ask_for_the_same_time_share_one_look_at_the_ledger(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.submit()
    service.control.run("1", gpus=3)
    store, go, read = service.control.store, threading.Event(), []
    look = store.nodes_between

    def slow(since: float, until: float) -> Sequence[NodeRecord]:
        read.append(since)
        assert go.wait(300)
        return look(since, until)

    monkeypatch.setattr(store, "nodes_between", slow)
    monkeypatch.setattr(shared_answers, "CHEAP_S", -1.0)
    monkeypatch.setattr(shared_answers, "TIMES", 1e9)
    since = NOW - 25 * 24 * HOUR

    def ask(n: int) -> Any:
        return service.get("cost", params={"since": since + n})

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, n) for n in range(8)]
        deadline = time.monotonic() + 60
        while not read and time.monotonic() < deadline:
            time.sleep(0.01)
        assert service.get("budget")["budget_per_hour"] == 14.0, "the others are answered"
        go.set()
        answers = [future.result() for future in asked]
    service.control.money = replace(service.control.money, budget=99.0)
    later = ask(8)
    assert len(read) == 1, "the month's nodes are among those of the time asked for"
    assert {answer["since"] for answer in [*answers, later]} == {read[0]}
    assert [answer["total_usd"] for answer in [*answers, later]] == pytest.approx([4.0] * 9)
    assert later["budget_per_hour"] == 99.0, "what is no history is of this moment"


def test_before_any_time_has_passed_the_average_is_zero(service: FakeService) -> None:
    service.control.money = replace(service.control.money, since=NOW, spent=0.0)
    assert service.get("cost")["average_spend_per_hour"] == 0.0


def test_nodes_say_who_holds_their_gpus(service: FakeService) -> None:
    service.submit()
    service.control.run("1", gpus=3, node=2)
    service.control.rent(1, "A100", 8)
    first, second = service.get("nodes")["nodes"]
    assert (first["id"], first["used_gpus"], first["held"]) == (1, 0, [])
    assert (second["used_gpus"], second["price_per_hour"]) == (3, 4.0)
    assert second["held"] == [{"job": "1", "node": 2, "gpus": 3}]


def test_the_plan_in_force_is_a_plan_file_with_its_workload(service: FakeService) -> None:
    service.control.plan = plan_state(too_small=11.5)
    live = service.get("plan")
    assert (live["number"], live["at"], live["too_small_per_hour"]) == (3, NOW - 60, 11.5)
    assert live["plan"]["average_jct_s"] == service.control.plan.solution.average_jct
    assert boa.parse_workload(load_yaml(live["workload"])) == service.control.plan.workload


def test_classes_are_listed_and_shown(service: FakeService) -> None:
    document = learned("resnet18", [learned_on("T4")])
    service.control.documents = {"resnet18": document}
    assert service.get("classes") == {"classes": ["resnet18"]}
    assert service.get("classes/resnet18") == document


def test_an_average_is_over_no_time_before_anything_was_rented(service: FakeService) -> None:
    service.control.rent(1)
    found = service.get(f"cost?since={NOW - 1000 * HOUR}")
    assert found["since"] == NOW - 1000 * HOUR
    assert found["average_spend_per_hour"] > found["total_usd"] / 10
