"""Jobs over the API: submitted, listed, looked at, stopped."""

import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.model.cluster import Share
from boa.model.job import JobRecord
from boa.runtime.snapshot import Snapshot
from boa.store.base import StoreTrouble
from fakes import NOW, FakeControl, FakeService, locked
from unit.server.routes.test_money import plan_state

CONTRACT = {
    "id",
    "name",
    "class",
    "state",
    "gpu_type",
    "width",
    "epoch",
    "submitted_at",
    "started_at",
    "ended_at",
    "rescalings",
    "restarts",
    "exit_code",
    "cost_usd",
}
ROW = {"owner", "team", "payer", "epochs", "done", "left_s", "left_usd", "stop_requested", "reason"}
ROW |= {"paused", "priority", "sweep"}
ROW |= {"on_gpus_s", "waiting_s", "since_submission_s", "holds_gpus"}
"""What somebody who watches wants to know as well."""


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path)


def test_a_submitted_job_is_listed_with_exactly_the_keys_of_the_contract(
    service: FakeService,
) -> None:
    service.submit(name="first try")
    (job,) = service.get("jobs")["jobs"]
    assert set(job) == CONTRACT | ROW
    assert (job["id"], job["name"], job["class"]) == ("1", "first try", "resnet18")
    assert (job["state"], job["width"], job["gpu_type"]) == ("waiting", 0, None)
    assert job["submitted_at"] == NOW


def test_a_running_job_has_its_gpus_and_what_they_cost_until_now(service: FakeService) -> None:
    service.submit()
    service.control.run("1", gpus=3)
    (job,) = service.get("jobs")["jobs"]
    assert (job["state"], job["width"], job["gpu_type"]) == ("running", 3, "T4")
    assert job["cost_usd"] == pytest.approx(3.0), "three GPUs for an hour at $1"


def test_a_job_that_was_given_gpus_but_has_no_run_yet_shows_them(service: FakeService) -> None:
    service.submit()
    running = service.control.run("1", gpus=2)
    service.control.put(replace(running, state="starting", run=None))
    assert service.get("jobs")["jobs"][0]["width"] == 2


def test_the_details_tell_why_and_what_was_asked_for(service: FakeService) -> None:
    service.submit(epochs=90, gpus={"min": 2})
    running = service.control.run("1")
    service.control.put(replace(running, share=Share("A100", 8), reason="A100 are short"))
    job = service.get("jobs/1")["job"]
    assert set(job) > CONTRACT | ROW
    assert job["wanted"] == {"gpu_type": "A100", "width": 8}
    assert job["held"] == [{"job": "1", "node": 1, "gpus": 2}]
    assert job["reason"] == "A100 are short"
    assert job["spec"]["run"] == ["sh", "-c", "true"]
    assert job["spec"]["epochs"] == 90


def test_ended_jobs_are_listed_only_if_asked_for_and_found_by_their_id(
    service: FakeService,
) -> None:
    for _ in range(3):
        service.submit()
    service.control.end("2", "failed", exit_code=3)
    assert [job["id"] for job in service.get("jobs")["jobs"]] == ["3", "1"]
    everything = service.get("jobs", params={"all": True})["jobs"]
    assert [job["id"] for job in everything] == ["3", "2", "1"]
    job = service.get("jobs/2")["job"]
    assert (job["state"], job["exit_code"], job["ended_at"]) == ("failed", 3, NOW)


@pytest.mark.parametrize("everything", [False, True])
def test_a_long_list_comes_in_pages(service: FakeService, everything: bool) -> None:
    for _ in range(5):
        service.submit()
    asked: dict[str, Any] = {"all": everything, "limit": 2}
    pages = []
    while True:
        page = service.get("jobs", params=asked)
        pages.append([job["id"] for job in page["jobs"]])
        if page["before"] is None:
            break
        asked["before"] = page["before"]
    assert pages == [["5", "4"], ["3", "2"], ["1"]]


def test_jobs_of_one_class(service: FakeService) -> None:
    service.submit("bert")
    service.submit("resnet18")
    for everything in (False, True):
        asked = {"class": "bert", "all": everything}
        assert [job["id"] for job in service.get("jobs", params=asked)["jobs"]] == ["1"]


def listed(service: FakeService, **asked: Any) -> list[str]:
    """Ids, over all pages."""
    found: list[str] = []
    while True:
        page = service.get("jobs", params=asked)
        assert len(page["jobs"]) <= asked.get("limit", 1000)
        found += [job["id"] for job in page["jobs"]]
        if page["before"] is None:
            return found
        asked["before"] = page["before"]


def test_jobs_in_some_states(service: FakeService) -> None:
    for _ in range(6):
        service.submit()
    service.control.run("1")
    service.control.end("2", "failed", exit_code=3)
    service.control.end("4", "succeeded", exit_code=0)
    assert listed(service, state="running") == ["1"]
    assert listed(service, state="running", all=True) == ["1"]
    assert listed(service, state="failed") == ["2"], "asked for, so not only active ones"
    assert listed(service, state="failed,running") == ["2", "1"]
    assert listed(service, state=["succeeded", "failed, running"]) == ["4", "2", "1"]
    for limit in (1, 2, 3):
        asked = {"state": "waiting,failed", "all": True, "limit": limit}
        assert listed(service, **asked) == ["6", "5", "3", "2"]


@pytest.mark.parametrize(
    ("given", "wrong"), [("dead", "dead"), ("running,", ""), ("Failed", "Failed")]
)
def test_a_state_that_no_job_can_be_in_is_refused(
    service: FakeService, given: str, wrong: str
) -> None:
    said = service.ask("GET", "/api/v1/jobs", params={"state": given}).json()["error"]
    assert said["message"].startswith(f"state: got {wrong!r}; expected one of waiting, starting")


def test_jobs_are_searched_by_name_class_and_id_whatever_the_case(service: FakeService) -> None:
    service.submit("bert", name="Größe L")
    service.submit("resnet18", name="second")
    service.submit("ResNet50")
    service.control.end("2", "stopped", exit_code=0)
    for everything, ended in ((False, []), (True, ["2"])):
        assert listed(service, search="RESNET", all=everything) == ["3", *ended]
        assert listed(service, search="größe", all=everything) == ["1"]
        assert listed(service, search="2", all=everything) == ended
        assert listed(service, search="%", all=everything) == []
        assert listed(service, search=" ", all=everything) == ["3", *ended, "1"]
    assert listed(service, search="e", state="stopped", **{"class": "resnet18"}) == ["2"]
    refused = service.ask("GET", "/api/v1/jobs", params={"search": "x" * 201})
    assert refused.status_code == 422


def test_a_search_looks_at_so_many_stored_jobs_and_says_where_it_goes_on(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boa.server.render.job_lists.PAGE", 3)
    monkeypatch.setattr("boa.server.render.job_lists.MOST_READ", 6)
    for n in range(20):
        service.submit(name="needle" if n in (0, 10) else "hay")
        service.control.end(str(n + 1), "succeeded", exit_code=0)
    asked: dict[str, Any] = {"all": True, "search": "needle"}
    first = service.get("jobs", params=asked)
    assert (first["jobs"], first["before"]) == ([], 15), "no more than six were looked at"
    assert listed(service, **asked) == ["11", "1"]
    assert listed(service, **asked, limit=1) == ["11", "1"]


def test_a_list_tells_what_is_believed_of_the_ends_of_its_jobs(service: FakeService) -> None:
    plan = plan_state()
    units = {found.name: (100.0,) * len(found.epochs) for found in plan.workload.classes}
    service.control.plan = replace(plan, units=units)
    known = plan.workload.classes[0].name
    service.submit(known)
    service.submit("unheard-of")
    unknown, job = service.get("jobs")["jobs"]
    assert job["done"] == 0.0
    assert job["left_s"] > 0 < job["left_usd"]
    assert job["epochs"] == len(units[known])
    assert (unknown["done"], unknown["left_s"], unknown["left_usd"]) == (None, None, None)
    details = service.get("jobs/1")["job"]
    assert {key: details[key] for key in job} == job
    service.control.end("1", "succeeded", exit_code=0)
    ended = service.get("jobs/1")["job"]
    assert (ended["done"], ended["left_s"], ended["left_usd"]) == (1.0, 0.0, 0.0)


def test_stopping_a_job_answers_with_what_became_of_it(service: FakeService) -> None:
    service.submit()
    answer = service.ask("POST", "/api/v1/jobs/1/stop")
    assert (answer.status_code, answer.json()["job"]["state"]) == (200, "stopped")
    again = service.ask("POST", "/api/v1/jobs/1/stop")
    assert (again.status_code, again.json()["job"]["state"]) == (200, "stopped")


@pytest.mark.parametrize("job", ["9", "0", "-1", "x", "1e3", "٣", "1" * 40])
@pytest.mark.parametrize(("method", "rest"), [("GET", ""), ("POST", "/stop"), ("GET", "/logs")])
def test_an_unknown_job_is_one_clear_error(
    service: FakeService, job: str, method: str, rest: str
) -> None:
    service.submit()
    answer = service.ask(method, f"/api/v1/jobs/{job}{rest}")
    said = answer.json()["error"]
    assert (answer.status_code, said["exit_code"]) == (404, 2)
    assert f"{job[:40]!r}" in said["message"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"run": "true"}, "class"),
        ({"class": "a"}, "run"),
        ({"class": "a", "run": ""}, "run"),
        ({"class": "a", "run": "true", "gpus": {"min": 0}}, "gpus.min"),
        ({"class": "a", "run": "true", "epoch": 3}, "epoch"),
        ({"class": "a", "run": "true", "retries": "many"}, "retries"),
        ({"class": "../a", "run": "true"}, "class"),
        ([], "the file"),
    ],
)
def test_a_bad_job_spec_names_the_field(service: FakeService, spec: Any, field: str) -> None:
    answer = service.ask("POST", "/api/v1/jobs", json=spec)
    said = answer.json()["error"]
    assert answer.status_code == 422
    assert said["field"] == field
    assert said["expected"] in said["message"]
    assert said["exit_code"] == 2
    assert service.get("jobs")["jobs"] == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "jobs", {"class": "a", "run": "true"}),
        ("POST", "jobs/1/stop", None),
        ("PUT", "budget", {"budget_per_hour": 3}),
    ],
)
def test_what_cannot_be_stored_now_is_refused_with_503(
    service: FakeService, method: str, path: str, body: Any
) -> None:
    service.submit()
    service.control.busy = locked()
    answer = service.ask(method, f"/api/v1/{path}", json=body)
    assert answer.status_code == 503
    assert answer.json()["error"] == {"message": str(locked()), "exit_code": 1}


def test_a_control_loop_that_does_not_answer_is_not_waited_for_for_ever(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boa.server.context.PATIENCE_S", 0.05)
    service.control.stuck = True
    answer = service.ask("POST", "/api/v1/jobs", json={"class": "a", "run": "true"})
    assert answer.status_code == 503
    assert "may still do so" in answer.json()["error"]["message"]


def test_a_request_that_gave_up_leaves_the_loop_s_promise_alone(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop will fulfil it later; a cancelled promise would raise there."""
    promise: Future[JobRecord] = Future()
    monkeypatch.setattr("boa.server.context.PATIENCE_S", 0.05)
    monkeypatch.setattr(service.control, "submit", lambda spec: promise)
    service.ask("POST", "/api/v1/jobs", json={"class": "a", "run": "true"})
    assert promise.set_running_or_notify_cancel()


def test_a_job_that_only_the_store_has_yet_is_found(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the commit of a step and its snapshot."""
    before: Snapshot = service.control.snapshot
    monkeypatch.setattr(FakeControl, "snapshot", before)
    job = service.submit()
    assert service.get(f"jobs/{job}")["job"]["state"] == "waiting"


def test_trouble_with_the_store_does_not_hide_the_active_jobs(service: FakeService) -> None:
    service.submit()
    service.control.store.trouble = StoreTrouble("the database is locked")
    assert len(service.get("jobs")["jobs"]) == 1
    assert service.get("jobs/1")["job"]["id"] == "1"
    answer = service.ask("GET", "/api/v1/jobs", params={"all": True})
    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == "the database is locked"


def test_a_batch_answers_with_ids_in_the_order_given(service: FakeService) -> None:
    jobs = [{"class": "a", "run": "true", "name": f"n{n}"} for n in range(3)]
    answer = service.ask("POST", "/api/v1/jobs/batch", json={"jobs": jobs})
    assert (answer.status_code, answer.json()) == (201, {"ids": ["1", "2", "3"]})
    assert [service.control.active[job].name for job in ("1", "2", "3")] == ["n0", "n1", "n2"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"jobs": [{"class": "a", "run": "true"}, {"class": "a"}]}, "jobs[1].run"),
        ({"jobs": [{"class": "a", "run": "x", "gpus": {"min": 0}}]}, "jobs[0].gpus.min"),
        ({"jobs": []}, "jobs"),
        ({"jobs": [{"class": "a", "run": "x"}] * 5001}, "jobs"),
        ([], ""),
    ],
)
def test_a_wrong_batch_submits_nothing_and_names_the_job_and_its_field(
    service: FakeService, body: Any, field: str
) -> None:
    answer = service.ask("POST", "/api/v1/jobs/batch", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"].get("field", "").startswith(field)
    assert not service.control.active


def test_a_batch_may_be_as_large_as_the_limit_on_bodies(service: FakeService) -> None:
    jobs = [{"class": "a", "run": "x" * 4000}] * 3000
    answer = service.ask("POST", "/api/v1/jobs/batch", json={"jobs": jobs})
    assert len(answer.json()["ids"]) == 3000


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("submit", "jobs", {"class": "a", "run": "b"}),
        ("resubmit", "jobs/1/resubmit", {}),
        ("submit_sweep", "sweeps", {"job": {"class": "a", "run": "b"}, "parameters": {"x": [1]}}),
    ],
)
def test_what_a_job_names_is_looked_for_beside_the_event_loop(
    service: FakeService, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    service.submit()
    asked, threads = getattr(service.control, method), []

    def noted(*args: Any, **more: Any) -> Any:
        threads.append(threading.current_thread())
        return asked(*args, **more)

    monkeypatch.setattr(service.control, method, noted)
    assert service.ask("POST", f"/api/v1/{path}", json=body).status_code == 201
    assert threads != [threading.current_thread()]
