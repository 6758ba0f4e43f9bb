"""Terms of single jobs over the API, the client and the command line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.client import Client
from boa.errors import InputError, Refused
from fakes import FakeService
from integration.runner import Boa
from unit.server.routes.test_money import plan_state

JOB = {"class": "small", "run": "true", "epochs": 2}


@pytest.fixture
def planned(service: FakeService) -> FakeService:
    service.control.plan = plan_state()
    service.control.estimated = replace(service.control.estimated, basis="jobs")
    return service


def test_the_price_of_a_deadline_is_told_before_anything_is_submitted(
    planned: FakeService,
) -> None:
    with Client() as client:
        usual = client.terms(JOB)
        assert usual["known"]
        assert usual["usual"] is not None
        unread = {"env_file": "no-such-file", "package": "workdir"}
        assert client.terms({**JOB, **unread}) == usual, "nothing is read or packed for it"
        assert usual["deadline"] is None
        soon = 0.9 * usual["usual"]["jct_s"]
        found = client.terms({**JOB, "deadline_s": soon})["deadline"]
        assert found is not None
        assert found["kept"]
        assert found["jct_s"] < soon
        assert found["urgency"] > 1
        assert found["extra_usd"] == pytest.approx(found["cost_usd"] - usual["usual"]["cost_usd"])
        never = client.terms({**JOB, "deadline_s": 1.0})
        assert never["deadline"] is not None
        assert not never["deadline"]["kept"]
        assert "cannot be kept: the soonest is" in never["words"][1]
    assert planned.control.active == {}, "nothing was submitted"


def test_terms_and_estimates_tell_the_same_time_and_cost(planned: FakeService) -> None:
    known = planned.control.estimated
    planned.control.estimated = replace(known, time_s=4000.0, cost_usd=7.0)
    with Client() as client:
        estimate, terms = client.estimate(JOB), client.terms(JOB)["usual"]
    assert terms is not None
    assert terms["jct_s"] == pytest.approx(estimate["time_s"]) == 4000.0
    assert terms["cost_usd"] == pytest.approx(estimate["cost_usd"]) == 7.0


def test_terms_say_what_the_priority_changes(planned: FakeService) -> None:
    with Client() as client:
        normal = client.terms(JOB)["words"]
        found = client.terms({**JOB, "priority": "background"})["words"]
    assert normal[0].startswith("takes ")
    assert found[0].startswith("in the background it runs on GPUs that are paid for and empty")
    assert found[1] == f"as a normal job it {normal[0]}"


def test_limits_that_are_too_small_are_told_before(planned: FakeService) -> None:
    with Client() as client:
        found = client.terms({**JOB, "max_cost": 0.01, "max_time_s": 1e6})
    assert found["max_cost"] is not None
    assert not found["max_cost"]["enough"]
    assert found["max_time"] is not None
    assert found["max_time"]["enough"]
    assert "it will be stopped, with a checkpoint" in found["words"][1]


@pytest.mark.parametrize("name", ["new", JOB["class"]], ids=["not planned", "planned by guess"])
def test_of_a_class_that_nobody_knows_no_price_is_made_up(planned: FakeService, name: str) -> None:
    planned.control.estimated = replace(planned.control.estimated, basis=None)
    with Client() as client:
        found = client.terms({**JOB, "class": name, "max_cost": 3})
    assert not found["known"]
    assert (found["usual"], found["max_cost"]) == (None, None)
    assert f"nothing is known of class {name}" in found["words"][0]


def test_the_client_pauses_resumes_changes_and_submits_again(service: FakeService) -> None:
    with Client() as client:
        job = client.submit(JOB)["id"]
        assert client.pause(job)["paused"]
        assert client.pause(job, force=True)["paused"]
        assert not client.resume(job)["paused"]
        changed = client.change(job, weight=3, gpus={"max": 4}, max_cost=60)
        assert changed["spec"]["gpus"] == {"min": 1, "max": 4}
        assert (changed["spec"]["weight"], changed["spec"]["max_cost"]) == (3.0, 60.0)
        assert "max_cost" not in client.change(job, max_cost=None)["spec"]
        again = client.resubmit(job, {"retries": 0})
        assert (again["id"], again["spec"]["retries"]) == ("2", 0)
        assert again["spec"]["weight"] == 3.0, "as it was changed"


def test_tags_change_kind_by_kind_and_null_takes_one_away(service: FakeService) -> None:
    with Client() as client:
        job = client.submit({**JOB, "tags": {"project": "cats", "grant": "7"}})["id"]
        changed = client.change(job, tags={"project": "zoo", "grant": None, "year": "2026"})
        assert changed["spec"]["tags"] == {"project": "zoo", "year": "2026"}
        bare = client.change(job, tags={"project": None, "year": None})
        assert "tags" not in bare["spec"]


HOSTILE: list[tuple[str, str, Any, int, str]] = [
    ("PATCH", "jobs/1", {"weight": 0}, 422, "weight"),
    ("PATCH", "jobs/1", {"weight": "3"}, 422, "weight"),
    ("PATCH", "jobs/1", {"run": "rm -rf /"}, 422, "cannot be changed"),
    ("PATCH", "jobs/1", {"gpus": {"max": -1}}, 422, "gpus.max"),
    ("PATCH", "jobs/1", {"gpus": []}, 422, "gpus"),
    ("PATCH", "jobs/1", {"gpus": {"min": "x"}}, 422, "gpus.min"),
    ("PATCH", "jobs/1", {"tags": {"project": 7}}, 422, "tags.project"),
    ("PATCH", "jobs/1", {"tags": "cats"}, 422, "tags"),
    ("PATCH", "jobs/1", {"deadline_s": -3}, 422, "deadline_s"),
    ("PATCH", "jobs/1", [], 422, "at least one"),
    ("PATCH", "jobs/1", {}, 422, "at least one"),
    ("PATCH", "jobs/77", {"weight": 2}, 404, "job"),
    ("PATCH", "jobs/x", {"weight": 2}, 404, "job"),
    ("POST", "jobs/77/pause", None, 404, "job"),
    ("POST", "jobs/1/resubmit", {"changes": {"class": "b"}}, 422, "class"),
    ("POST", "jobs/1/resubmit", {"changes": {"no": 1}}, 422, "changes.no"),
    ("POST", "jobs/1/resubmit", {"changes": 7}, 422, "changes"),
    ("POST", "jobs/1/resubmit", {"continue": 1}, 422, "continue"),
    ("POST", "jobs/1/resubmit", {"and": 1}, 422, "continue"),
    ("POST", "jobs/terms", {"class": "a"}, 422, "run"),
    ("POST", "jobs", {**JOB, "after": ["x"]}, 422, "after[0]"),
    ("POST", "jobs", {**JOB, "after": [-1]}, 422, "after[0]"),
    ("POST", "jobs", {**JOB, "after": [{"job": 1, "on": "whim"}]}, 422, "after[0].on"),
    ("POST", "jobs", {**JOB, "after": [1, 1]}, 422, "each job once"),
    ("POST", "jobs", {**JOB, "max_cost": 0}, 422, "max_cost"),
    ("POST", "jobs", {**JOB, "max_cost": 1e300}, 422, "max_cost"),
    ("POST", "jobs", {**JOB, "max_time_s": True}, 422, "max_time_s"),
    ("POST", "jobs", {**JOB, "deadline_s": "soon"}, 422, "deadline_s"),
    ("POST", "jobs", {**JOB, "may_wait_s": -1}, 422, "may_wait_s"),
    ("POST", "jobs", {**JOB, "key": "a b"}, 422, "key"),
    ("POST", "jobs", {**JOB, "key": "k" * 201}, 422, "key"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "words"), HOSTILE)
def test_hostile_terms_are_refused_by_name(
    service: FakeService, method: str, path: str, body: Any, status: int, words: str
) -> None:
    service.submit("small")
    answer = service.ask(method, f"/api/v1/{path}", json=body)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]["message"]
    assert len(service.control.store.kept) == 1


def test_the_commands_say_what_they_did(run: Boa, service: FakeService, tmp_path: Path) -> None:
    service.submit("small")
    assert run("job", "pause", 1) == "job 1: paused\n"
    assert "paused" in run("ps")
    assert run("job", "resume", 1) == "job 1: resumed\n"
    assert run("job", "set", 1, "--weight", 3, "--max-cost", 40, "--deadline", "6h") == (
        "job 1: changed\n"
    )
    spec = service.control.active["1"].spec
    assert (spec.weight, spec.max_cost, spec.deadline_s) == (3.0, 40.0, 6 * 3600.0)
    run("job", "set", 1, "--max-cost", "none", "--gpus", "T4,A100")
    spec = service.control.active["1"].spec
    assert (spec.max_cost, spec.gpus.types) == (None, ("T4", "A100"))
    for said, seconds in (("12h", 12 * 3600.0), ("0", 0.0), ("none", None)):
        run("job", "set", 1, "--may-wait", said)
        assert service.control.active["1"].spec.may_wait_s == seconds
    assert run("job", "resubmit", 1, "--env", "SEED=2") == "2\n"
    assert service.control.active["2"].spec.env == {"SEED": "2"}
    assert "deadline" not in run("show", 1)
    run("job", "pause", 1, 77, code=2)
    assert "77" in run.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["job", "set", 1], "nothing to change"),
        (["job", "set", 1, "--weight", "-1"], "--weight"),
        (["job", "set", 1, "--max-cost", "much"], "--max-cost"),
        (["job", "set", 1, "--max-time", "3 moons"], "--max-time"),
        (["job", "set", 1, "--deadline", "2001-01-01T00:00"], "has passed"),
        (["job", "set", 1, "--may-wait", "-1h"], "--may-wait"),
        (["job", "set", "x", "--weight", 1], "job"),
        (["submit", "--class", "a", "--after", "12:whim", "--", "true"], "after[0].on"),
        (["submit", "--class", "a", "--key", "ä", "--", "true"], "key"),
        (["submit", "--class", "a", "--max-cost", "nan", "--", "true"], "--max-cost"),
    ],
)
def test_wrong_words_are_refused_with_code_2(
    run: Boa, service: FakeService, arguments: list[Any], words: str
) -> None:
    service.submit("small")
    run(*arguments, code=2)
    assert words in run.err


def test_submit_says_what_terms_come_to_before_it_submits(
    run: Boa, planned: FakeService, tmp_path: Path
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("class: small\nrun: 'true'\nepochs: 2\nmax_cost: 3\n")
    assert run("submit", job, "--terms", "--deadline", "1s").startswith("takes ")
    assert run.json("submit", job, "--terms")["max_cost"]["most"] == 3.0
    assert planned.control.active == {}
    assert run("submit", job, "--max-cost", "0.01", "--key", "n1", "--after", "12,13:end") == "1\n"
    assert "it will be stopped, with a checkpoint" in run.err
    spec = planned.control.active["1"].spec
    assert (spec.max_cost, spec.key) == (0.01, "n1")
    assert [tuple(one) for one in spec.after] == [("12", "success"), ("13", "end")]


def test_only_owners_and_admins_change_jobs(tmp_path: Path) -> None:
    from unit.server.http.test_roles import OWN, ask, record, submitted

    service = FakeService(tmp_path, token=OWN)
    people = (record("vera", "viewer"), record("mia", "member"), record("max", "member"))
    service.control.tokens = {one.name: one for one in people}
    job = submitted(service, "mia")
    asked: list[tuple[str, str, Any]] = [
        ("POST", f"jobs/{job}/pause", None),
        ("POST", f"jobs/{job}/resume", None),
        ("PATCH", f"jobs/{job}", {"weight": 2}),
        ("POST", f"jobs/{job}/resubmit", {}),
    ]
    for method, path, body in asked:
        for who, status in (("vera", 403), ("max", 403), ("own", (200, 201)), ("mia", (200, 201))):
            got = ask(service, who, method, path, json=body).status_code
            assert got == status or got in (status if isinstance(status, tuple) else ()), path
    assert ask(service, "vera", "POST", "jobs/terms", json=JOB).status_code == 403
    what = [line.what for line in service.control.store.audited]
    assert {"pause", "resume", "job set"} <= set(what)


def test_a_refusal_comes_back_as_one(service: FakeService) -> None:
    with Client() as client:
        job = client.submit(JOB)["id"]
        with pytest.raises(Refused, match="weight"):
            client.change(job, weight=-1)
        with pytest.raises(InputError, match="the id of a job"):
            client.pause("no")
