"""Jobs over the API: submitted, listed, looked at, stopped."""

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.control.snapshot import Snapshot
from boa.model.cluster import Share
from boa.model.job import JobRecord
from boa.store.base import StoreTrouble
from fakes import NOW, FakeControl, FakeService, locked

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


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path)


def test_a_submitted_job_is_listed_with_exactly_the_keys_of_the_contract(
    service: FakeService,
) -> None:
    service.submit(name="first try")
    (job,) = service.get("jobs")["jobs"]
    assert set(job) == CONTRACT
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
    assert set(job) > CONTRACT
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
