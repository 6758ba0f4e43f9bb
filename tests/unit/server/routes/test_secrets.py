"""Secrets over the API: set, listed, removed, and never shown."""

from pathlib import Path
from typing import Any

import pytest

from boa.runtime.vault import Vault
from fakes import NOW, FakeControl, FakeService, locked

VALUE = "hunter2-and-more"


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path, control=FakeControl(vault=Vault(tmp_path / "secret.key", {})))


def put(service: FakeService, status: int = 201, **body: Any) -> Any:
    return asked(service, "POST", "secrets", status, json=body)


def asked(service: FakeService, method: str, path: str, status: int = 200, **options: Any) -> Any:
    answer = service.ask(method, f"/api/v1/{path}", **options)
    assert answer.status_code == status, answer.text
    return answer.json()


def log(service: FakeService, asked: str = "") -> str:
    answer = service.ask("GET", f"/api/v1/jobs/1/logs{asked}")
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_secret_is_listed_without_its_value(service: FakeService) -> None:
    answer = put(service, name="KEY", value=VALUE)
    listed = service.get("secrets")
    row = {"name": "KEY", "set_at": NOW, "set_by": "", "jobs": 0}
    assert (answer, listed) == ({"secret": row}, {"secrets": [row], "now": NOW})


def test_a_secret_can_be_removed_and_then_is_no_more(service: FakeService) -> None:
    put(service, name="KEY", value=VALUE)
    assert asked(service, "DELETE", "secrets/KEY")["secret"]["name"] == "KEY"
    assert service.get("secrets")["secrets"] == []
    gone = asked(service, "DELETE", "secrets/KEY", 404)
    assert gone["error"]["field"] == "secret"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "KEY"}, "value"),
        ({"name": "A-B", "value": VALUE}, "name"),
        ({"name": "KEY", "value": [VALUE]}, "value"),
        ({"name": "KEY", "value": VALUE + "\0"}, "value"),
        ({"name": "KEY", "value": VALUE, "vale": VALUE}, "vale"),
    ],
)
def test_a_wrong_request_is_refused_without_quoting_the_value(
    service: FakeService, body: dict[str, Any], field: str
) -> None:
    refused = put(service, 422, **body)
    assert refused["error"]["field"] == field
    assert VALUE not in str(refused)


def test_nothing_is_set_while_the_store_is_locked(service: FakeService) -> None:
    service.control.busy = locked()
    put(service, 503, name="KEY", value=VALUE)
    assert service.control.vault.secrets() == []


def test_jobs_that_use_it_are_counted_and_show_its_name_alone(service: FakeService) -> None:
    put(service, name="KEY", value=VALUE)
    service.submit(secrets=["KEY"])
    (row,) = service.get("secrets")["secrets"]
    assert row["jobs"] == 1
    shown = service.get("jobs/1")
    assert shown["job"]["spec"]["secrets"] == ["KEY"]
    assert VALUE not in str(shown)


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_logs_are_served_with_the_jobs_secrets_masked(
    service: FakeService, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr("boa.server.http.log_stream.BLOCK", piece)
    put(service, name="KEY", value=VALUE)
    service.submit(secrets=["KEY"])
    text = f"before\n{VALUE}\nafter {VALUE[:5]}"
    service.engine.write("1", text)
    stars = text.replace(VALUE, "*" * len(VALUE))
    assert log(service) == stars
    for skip in range(len(text)):
        assert log(service, f"?skip={skip}") == stars[skip:], "however it is asked for"
    assert log(service, "?tail=2") == stars[7:]


def test_logs_of_a_job_without_that_secret_are_as_they_are(service: FakeService) -> None:
    put(service, name="KEY", value=VALUE)
    service.submit()
    service.engine.write("1", VALUE)
    assert log(service) == VALUE
