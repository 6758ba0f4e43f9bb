"""What each role may do, and whose jobs it may do it to."""

import time
from pathlib import Path
from typing import Any

import pytest

from boa.api.tokens import digest
from boa.model.access import ROLES, TokenRecord
from fakes import FakeService

OWN = "the-service-s-own-token-7731"
BODY = {"class": "a", "run": "true", "env": {"KEY": "s3cret"}}


def token_of(name: str) -> str:
    return f"token-of-{name}-4cR8sWd2kT7p"


def record(name: str, role: Any, **fields: Any) -> TokenRecord:
    return TokenRecord(
        name=name, role=role, digest=digest(token_of(name)), **{"created_at": 0.0, **fields}
    )


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    made = FakeService(tmp_path, token=OWN)
    known = (
        record("vera", "viewer", team="vision"),
        record("mia", "member", team="vision"),
        record("max", "member", team="vision"),
        record("otto", "member", team="speech"),
        record("solo", "member"),
        record("lone", "member"),
        record("ada", "admin"),
        record("late", "admin", expires_at=time.time() - 1),
        record("gone", "admin", revoked_at=time.time() - 1),
    )
    made.control.tokens = {token.name: token for token in known}
    return made


def ask(service: FakeService, who: str, method: str, path: str, **options: Any) -> Any:
    token = OWN if who == "own" else token_of(who)
    headers = {"Authorization": f"Bearer {token}", **options.pop("headers", {})}
    return service.ask(method, f"/api/v1/{path}", headers=headers, **options)


def submitted(service: FakeService, who: str) -> str:
    answer = ask(service, who, "POST", "jobs", json=BODY)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["job"]["id"])


READS = ["jobs", "cost", "budget", "nodes", "classes", "events", "live", "whoami"]
NEEDED = {
    ("POST", "jobs"): "member",
    ("POST", "what-if"): "member",
    ("PUT", "budget"): "admin",
    ("GET", "tokens"): "admin",
    ("POST", "tokens"): "admin",
    ("POST", "tokens/mia/revoke"): "admin",
    ("GET", "audit"): "admin",
    ("DELETE", "anything/new"): "admin",
}


@pytest.mark.parametrize("who", ["vera", "mia", "ada", "own"])
def test_all_roles_read(service: FakeService, who: str) -> None:
    for path in READS:
        assert ask(service, who, "GET", path).status_code == 200, path


@pytest.mark.parametrize(("who", "role"), [("vera", "viewer"), ("mia", "member"), ("ada", "admin")])
@pytest.mark.parametrize("asked", NEEDED, ids=" ".join)
def test_what_needs_more_than_the_caller_has_is_refused_and_names_both(
    service: FakeService, who: str, role: Any, asked: tuple[str, str]
) -> None:
    answer = ask(service, who, *asked, json={})
    if ROLES.index(role) >= ROLES.index(NEEDED[asked]):
        assert answer.status_code not in (401, 403)
        return
    assert answer.status_code == 403
    said = answer.json()["error"]["message"]
    assert f"{who} has the role {role}" in said
    assert f"needs the role {NEEDED[asked]}" in said
    assert service.control.active == {}


@pytest.mark.parametrize("who", ["late", "gone", "nobody"])
def test_a_token_that_is_over_or_revoked_opens_nothing(service: FakeService, who: str) -> None:
    answer = ask(service, who, "GET", "jobs")
    assert answer.status_code == 401
    assert token_of(who) not in answer.text


def test_a_job_has_the_name_and_team_of_the_token(service: FakeService) -> None:
    job = submitted(service, "mia")
    (row,) = ask(service, "vera", "GET", "jobs").json()["jobs"]
    assert (row["id"], row["owner"], row["team"]) == (job, "mia", "vision")
    submitted(service, "own")
    assert ask(service, "vera", "GET", "jobs").json()["jobs"][0]["owner"] == "admin"


def test_a_job_s_environment_is_for_its_owner_and_admins(service: FakeService) -> None:
    job = submitted(service, "mia")
    for who, sees in {"mia": 1, "ada": 1, "own": 1, "vera": 0, "max": 0, "otto": 0}.items():
        answer = ask(service, who, "GET", f"jobs/{job}")
        assert answer.status_code == 200
        assert ("s3cret" in answer.text) == bool(sees), who
        assert ("env" in answer.json()["job"]["spec"]) == bool(sees), who


def test_members_stop_their_own_jobs_and_admins_any(service: FakeService) -> None:
    jobs = [submitted(service, "mia") for _ in range(2)]
    for who in ("max", "otto", "vera"):
        answer = ask(service, who, "POST", f"jobs/{jobs[0]}/stop")
        assert answer.status_code == 403, who
        assert who in answer.json()["error"]["message"]
    assert all(service.control.active[job].state == "waiting" for job in jobs)
    assert ask(service, "mia", "POST", f"jobs/{jobs[0]}/stop").status_code == 200
    assert ask(service, "ada", "POST", f"jobs/{jobs[1]}/stop").status_code == 200


def test_logs_are_for_the_owner_the_team_and_admins(service: FakeService) -> None:
    job = submitted(service, "mia")
    refused = {"mia": 0, "max": 0, "ada": 0, "own": 0, "otto": 1, "solo": 1, "vera": 1}
    for who, is_refused in refused.items():
        answer = ask(service, who, "GET", f"jobs/{job}/logs")
        assert (answer.status_code == 403) == bool(is_refused), (who, answer.text)


def test_members_without_a_team_do_not_share_one(service: FakeService) -> None:
    job = submitted(service, "solo")
    assert ask(service, "lone", "GET", f"jobs/{job}/logs").status_code == 403


def test_a_job_of_nobody_is_the_admins(service: FakeService) -> None:
    job = service.control.submit(_spec()).result(0).id
    assert ask(service, "mia", "POST", f"jobs/{job}/stop").status_code == 403
    assert ask(service, "ada", "POST", f"jobs/{job}/stop").status_code == 200


def _spec() -> Any:
    from boa.formats.job import read_job_spec

    return read_job_spec(BODY)


def test_where_no_token_is_wanted_everybody_may_do_everything(tmp_path: Path) -> None:
    service = FakeService(tmp_path)
    job = service.submit(env={"KEY": "s3cret"})
    assert service.get(f"jobs/{job}")["job"]["spec"]["env"] == {"KEY": "s3cret"}
    assert service.get("whoami") == {"name": "", "role": "admin", "team": ""}
    assert service.ask("PUT", "/api/v1/budget", json={"budget_per_hour": 3}).status_code == 200
    assert [one.what for one in service.control.store.audited] == ["submit", "budget"]


def test_changes_and_refusals_are_in_the_audit_log_with_who_and_from_where(
    service: FakeService,
) -> None:
    job = submitted(service, "mia")
    ask(service, "otto", "POST", f"jobs/{job}/stop")
    ask(service, "nobody", "GET", "jobs")
    ask(service, "mia", "POST", f"jobs/{job}/stop")
    body = {"trace": "day", "policies": ["boa"], "budgets": [60.0]}
    ask(service, "mia", "POST", "what-if", json=body)
    service.simulations.close()
    found = ask(service, "ada", "GET", "audit").json()["lines"]
    said = [(one["what"], one["who"], one["subject"], one["result"]) for one in reversed(found)]
    assert said == [
        ("submit", "mia", job, "done"),
        ("refused", "otto", f"POST /api/v1/jobs/{job}/stop", "403"),
        ("refused", "", "GET /api/v1/jobs", "401"),
        ("stop", "mia", job, "done"),
        ("what-if", "mia", "day", "done"),
    ]
    assert {one["address"] for one in found} == {"127.0.0.1"}


def test_an_admin_gives_out_a_token_that_works_at_once_and_takes_it_back(
    service: FakeService,
) -> None:
    body = {"name": "new@lab.example", "role": "member", "team": "vision", "expires_in_s": 60}
    made = ask(service, "ada", "POST", "tokens", json=body)
    assert made.status_code == 201
    token = made.json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    who = service.ask("GET", "/api/v1/whoami", headers=headers).json()
    assert who == {"name": "new@lab.example", "role": "member", "team": "vision"}
    listed = ask(service, "ada", "GET", "tokens")
    assert token not in listed.text
    assert digest(token) not in listed.text
    (row,) = [one for one in listed.json()["tokens"] if one["name"] == "new@lab.example"]
    assert (row["created_by"], row["good"]) == ("ada", True)
    assert ask(service, "ada", "POST", "tokens/new@lab.example/revoke").status_code == 200
    assert service.ask("GET", "/api/v1/whoami", headers=headers).status_code == 401
    assert ask(service, "ada", "POST", "tokens/never-was/revoke").status_code == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "two words"}, "name"),
        ({"name": ""}, "name"),
        ({"role": "king"}, "role"),
        ({"team": "a/b"}, "team"),
        ({"expires_in_s": 0}, "expires_in_s"),
        ({"expires_in_s": 1e99}, "expires_in_s"),
        ({"token": "mine"}, "token"),
    ],
)
def test_a_bad_wish_for_a_token_names_the_field(
    service: FakeService, change: dict[str, Any], field: str
) -> None:
    answer = ask(service, "ada", "POST", "tokens", json={"name": "x", "role": "viewer", **change})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == field
