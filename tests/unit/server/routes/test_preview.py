"""The frontier, previews and reasons over the API."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from boa.client import Client
from boa.model.job import JobRecord
from boa.scheduler.plan.preview import ENOUGH
from boa.server.routes import plans as plan_routes
from boa.server.routes.plans import FRESH_S, _Spreads
from boa.solver.frontier import sweep
from boa.solver.solution import as_document
from fakes import NOW, FakeService
from reading import FakeStore
from stored import job as record
from stored import spec
from unit.server.routes.test_money import plan_state

PATHS = ["frontier", "preview?budget_per_hour=12", "preview?jct_s=900", "classes/small/why"]


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    found = FakeService(tmp_path)
    found.control.plan = plan_state()
    return found


def ended(number: int, job_class: str, jct: float) -> JobRecord:
    return record(
        number,
        spec=spec(job_class),
        state="succeeded",
        submitted_at=NOW - 9000,
        ended_at=NOW - 9000 + jct,
    )


def give_jobs(store: FakeStore, classes: tuple[str, ...] = ("small", "large")) -> None:
    for job_class in classes:
        for _ in range(ENOUGH):
            number = len(store.kept) + 1
            store.kept[str(number)] = ended(number, job_class, 100.0 + number)


@pytest.mark.parametrize("path", PATHS)
def test_without_a_plan_there_is_nothing_to_compare_with(tmp_path: Path, path: str) -> None:
    answer = FakeService(tmp_path).ask("GET", f"/api/v1/{path}")
    assert answer.status_code == 404
    assert "there is no plan yet" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", PATHS)
def test_they_need_a_token_as_all_others_do(tmp_path: Path, path: str) -> None:
    closed = FakeService(tmp_path, token="secret")
    assert closed.ask("GET", f"/api/v1/{path}").status_code == 401


@pytest.mark.parametrize("gain", [1.0, 1.4])
def test_at_the_unchanged_budget_nothing_changes(service: FakeService, gain: float) -> None:
    """Whatever the plan in force was made with: both figures are predicted alike."""
    control = service.control
    control.money = replace(control.money, gain=gain, effective=0.6 * control.money.budget)
    give_jobs(control.store)
    found = service.get(f"preview?budget_per_hour={control.money.budget}")
    usual = found["unchanged"]
    assert (usual["budget_per_hour"], usual["average_jct_s"]) == (
        found["spend_per_hour"],
        found["average_jct_s"],
    )
    assert found["unchanged_p95_jct_s"] == found["p95_jct_s"]
    for change in found["classes"]:
        assert not change["differs"]
        assert change["unchanged"] == change["after"]
    dearer = service.get(f"preview?budget_per_hour={2 * control.money.budget}")
    assert dearer["unchanged"] == usual
    assert dearer["average_jct_s"] < usual["average_jct_s"]


# The frontier


def test_the_frontier_is_that_of_the_plans_workload(service: FakeService) -> None:
    state = service.control.plan
    assert state is not None
    whole = sweep(state.workload, state.solution.rules)
    found = service.get("frontier")
    assert found["plan"] == state.number
    assert found["now"] == NOW
    assert [point["budget_per_hour"] for point in found["points"]] == whole.budgets.tolist()
    assert (found["cheapest_per_hour"], found["fastest_per_hour"], found["fastest_jct_s"]) == (
        whole.cheapest,
        whole.fastest_budget,
        whole.fastest_jct,
    )


def test_of_many_who_ask_at_once_one_sweep_answers_all_and_the_loop_goes_on(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, swept = threading.Event(), []

    def slow(workload: Any, rules: Any) -> Any:
        swept.append(threading.current_thread())
        assert let_go.wait(300)
        return sweep(workload, rules)

    monkeypatch.setattr(plan_routes, "sweep", slow)

    async def asked() -> tuple[list[httpx.Response], httpx.Response]:
        transport = httpx.ASGITransport(service.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            waiting = [asyncio.create_task(client.get("/api/v1/frontier")) for _ in range(60)]
            meanwhile = await asyncio.wait_for(client.get("/api/v1/health"), 30)
            let_go.set()
            return await asyncio.gather(*waiting), meanwhile

    answers, meanwhile = asyncio.run(asked())
    assert meanwhile.status_code == 200, "more of them wait than the pool has threads"
    assert [answer.status_code for answer in answers] == [200] * 60
    assert len(swept) == 1
    assert swept[0] is not threading.main_thread()
    service.get("frontier")
    assert len(swept) == 1, "it is remembered"
    assert service.control.plan is not None
    service.control.plan = replace(service.control.plan, number=4)
    assert service.get("frontier")["plan"] == 4
    assert len(swept) == 2


def test_a_sweep_that_failed_is_an_error_and_is_tried_again(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(workload: Any, rules: Any) -> Any:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(plan_routes, "sweep", broken)
        answer = service.ask("GET", "/api/v1/frontier")
    assert answer.status_code == 500
    assert "a bug in boa" in answer.json()["error"]["message"]
    assert service.get("frontier")["points"]


# Previews


def test_the_budget_of_the_plan_in_force_changes_nothing(service: FakeService) -> None:
    state = service.control.plan
    assert state is not None
    found = service.get("preview", params={"budget_per_hour": state.solution.budget})
    assert found["plan"] == state.number
    assert found["average_jct_s"] == pytest.approx(state.solution.average_jct)
    assert found["before"] == {
        "budget_per_hour": state.solution.spend,
        "average_jct_s": state.solution.average_jct,
    }
    assert not any(change["changed"] for change in found["classes"])
    document = as_document(state.solution)
    assert [change["before"] for change in found["classes"]] == document["classes"]
    assert found["cluster"] == document["cluster"]
    assert service.control.plan is state, "nothing was changed"


def test_another_budget_says_how_every_class_changes_and_whom_that_reaches(
    service: FakeService,
) -> None:
    service.submit("small")
    service.submit("small")
    before = service.get("preview", params={"budget_per_hour": 10})
    found = service.get("preview", params={"budget_per_hour": 16})
    assert found["average_jct_s"] < before["average_jct_s"]
    assert found["spend_per_hour"] == pytest.approx(16)
    assert [(c["name"], c["active_jobs"]) for c in found["classes"]] == [("small", 2), ("large", 0)]
    assert any(change["changed"] for change in found["classes"])
    for change in found["classes"]:
        assert change["after"]["average_jct_s"] <= change["before"]["average_jct_s"]
        assert change["changed"] == (change["after"]["variants"] != change["before"]["variants"])


def test_a_wished_jct_finds_its_budget(service: FakeService) -> None:
    found = service.get("preview", params={"jct_s": 500})
    assert found["average_jct_s"] == pytest.approx(500)
    again = service.get("preview", params={"budget_per_hour": found["budget_per_hour"]})
    assert again["average_jct_s"] == pytest.approx(500)


def test_a_budget_too_small_says_what_would_do(service: FakeService) -> None:
    least = service.get("frontier")["cheapest_per_hour"]
    found = service.get("preview", params={"budget_per_hour": least / 2})
    assert found["too_small_per_hour"] == pytest.approx(least)
    assert found["budget_per_hour"] == least / 2
    assert found["left_over_per_hour"] == 0.0


@pytest.mark.parametrize(
    ("asked", "field", "said"),
    [
        ("", "budget_per_hour, jct_s", "neither is given; expected exactly one of the two"),
        ("?jct_s=9&budget_per_hour=9", "budget_per_hour, jct_s", "both are given; expected"),
        ("?budget_per_hour=0", "budget_per_hour", "a number greater than 0"),
        ("?budget_per_hour=inf", "budget_per_hour", "a finite number"),
        ("?jct_s=nan", "jct_s", "jct_s: got"),
        ("?jct_s=1", "jct_s", "what the fastest and the cheapest plan take"),
        ("?jct_s=1e9", "jct_s", "what the fastest and the cheapest plan take"),
        ("?budget=5", "budget", "one of budget_per_hour, jct_s"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_with_what_would(
    service: FakeService, asked: str, field: str, said: str
) -> None:
    answer = service.ask("GET", f"/api/v1/preview{asked}")
    assert answer.status_code == 422
    problem = answer.json()["error"]
    assert problem["field"] == field
    assert said in problem["message"]


def test_p95_is_told_once_enough_jobs_of_every_class_have_ended(service: FakeService) -> None:
    give_jobs(service.control.store, ("small",))
    found = service.get("preview", params={"budget_per_hour": 12})
    assert (found["p95_jct_s"], found["before_p95_jct_s"]) == (None, None)
    ready = FakeService(service.folder)
    ready.control.plan = service.control.plan
    give_jobs(ready.control.store)
    found = ready.get("preview", params={"budget_per_hour": 12})
    assert found["p95_jct_s"] > found["average_jct_s"]
    assert found["before_p95_jct_s"] > found["p95_jct_s"]


class CountingStore(FakeStore):
    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def jobs(self, **asked: Any) -> Any:
        self.read.append(asked["job_class"])
        return super().jobs(**asked)


def test_spreads_are_read_again_only_when_they_are_old() -> None:
    store, time = CountingStore(), [0.0]
    give_jobs(store)
    spreads = _Spreads(store, lambda: time[0])
    for _ in range(60):
        found = spreads.of(["small", "large"])
    assert len(found["large"]) == ENOUGH
    assert store.read == ["small", "large"]
    time[0] = FRESH_S + 1.0
    spreads.of(["small", "large"])
    assert store.read == ["small", "large"] * 2


def test_one_class_with_too_few_jobs_is_enough_to_stop_reading() -> None:
    store = CountingStore()
    give_jobs(store, ("large",))
    _Spreads(store, lambda: 0.0).of(["small", "large"])
    assert store.read == ["small"]


# Why


def test_why_is_told_of_classes_in_the_plan_only(service: FakeService) -> None:
    state = service.control.plan
    assert state is not None
    found = service.get("classes/small/why")
    assert (found["name"], found["plan"], found["now"]) == ("small", state.number, NOW)
    planned = state.solution.plan["small"].variants
    assert [v["gpu_type"] for v in found["variants"]] == [v.gpu_types[0] for v in planned]
    assert len(found["words"]) == sum(len(v["epochs"]) for v in found["variants"])
    answer = service.ask("GET", "/api/v1/classes/nobody/why")
    assert answer.status_code == 404
    assert answer.json()["error"]["field"] == "class"
    assert "the plan in force expects" in answer.json()["error"]["expected"]


def test_the_client_asks_all_three(service: FakeService) -> None:
    with service.serving() as url, Client(url) as client:
        assert client.frontier()["plan"] == 3
        assert client.preview(12.0)["budget_per_hour"] == 12.0
        assert client.preview(jct_s=500.0)["average_jct_s"] == pytest.approx(500.0)
        assert client.why("small")["name"] == "small"
