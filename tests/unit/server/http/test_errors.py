"""Every error of the API has one shape, whoever noticed it."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from boa.client import Client
from boa.errors import Refused
from boa.server.app import create_app
from fakes import FakeService

JSON = {"Content-Type": "application/json"}
MIB = 1024**2


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path)


def problem(answer: httpx.Response) -> dict[str, Any]:
    """The error, after checking its shape."""
    assert answer.headers["content-type"] == "application/json"
    document = answer.json()
    assert set(document) == {"error"}
    said: dict[str, Any] = document["error"]
    assert {"message", "exit_code"} <= set(said) <= {"message", "exit_code", "field", "expected"}
    assert "\n" not in said["message"]
    return said


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'{"class": NaN}', "NaN is no number"),
        (b"[" * 100_000, "nested too deep"),
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", "jobs"), ("PUT", "budget")])
def test_a_body_that_is_not_json_is_a_400(
    service: FakeService, method: str, path: str, body: bytes, words: str
) -> None:
    answer = service.ask(method, f"/api/v1/{path}", content=body, headers=JSON)
    assert answer.status_code == 400
    assert words in problem(answer)["message"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_of_another_kind_is_refused_even_if_it_looks_like_json(
    service: FakeService, kind: str
) -> None:
    """A page of another site can send such bodies without asking; JSON it cannot."""
    body = b'{"class": "a", "run": "true"}'
    answer = service.ask("POST", "/api/v1/jobs", content=body, headers={"Content-Type": kind})
    assert answer.status_code == 400
    assert "Content-Type" in problem(answer)["message"]


@pytest.mark.parametrize(
    ("path", "field", "words"),
    [
        ("jobs?limit=x", "limit", "got 'x'; expected a valid integer"),
        ("jobs?limit=0", "limit", "got '0'; expected a number greater than or equal to 1"),
        ("jobs?limit=100000", "limit", "less than or equal to 1000"),
        ("jobs?all=perhaps", "all", "a valid boolean"),
        (
            "jobs?al=1",
            "al",
            "unknown parameter; expected one of all, class, state, search, limit, before",
        ),
        ("nodes?x=1", "x", "unknown parameter; expected no parameters"),
        ("statement?month=2026-08&month=2026-09", "month", "occurs twice; expected it once"),
        ("jobs?limit=1&limit=1", "limit", "occurs twice; expected it once"),
        ("cost?by=week", "by", "one of day, class, job, team, user, payer or tag:KIND"),
        ("cost?since=nan", "since", "a finite number"),
        ("cost?since=1e12", "since", "a time before"),
        ("events?after=-1", "after", "greater than or equal to 0"),
        ("jobs/1/logs?rank=-1", "rank", "greater than or equal to 0"),
        ("jobs/1/logs?tail=all", "tail", "a valid integer"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_would_be_accepted(
    service: FakeService, path: str, field: str, words: str
) -> None:
    service.submit()
    answer = service.ask("GET", f"/api/v1/{path}")
    assert answer.status_code == 422
    said = problem(answer)
    assert said["field"] == field
    assert said["exit_code"] == 2
    assert words in said["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "budget_per_hour"),
        ({"budget_per_hour": 0}, "budget_per_hour"),
        ({"budget_per_hour": "14"}, "budget_per_hour"),
        ({"budget_per_hour": True}, "budget_per_hour"),
        ({"budget_per_hour": 14, "max_spend_per_hour": -1}, "max_spend_per_hour"),
        ({"budget_per_hour": 14, "cap": 20}, "cap"),
    ],
)
def test_a_bad_budget_names_the_field(service: FakeService, body: Any, field: str) -> None:
    answer = service.ask("PUT", "/api/v1/budget", json=body)
    assert answer.status_code == 422
    assert problem(answer)["field"] == field
    assert service.get("budget")["budget_per_hour"] == 14.0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/api/v1/job", 404),
        ("GET", "/docs", 404),
        ("DELETE", "/api/v1/jobs", 405),
        ("GET", "/api/v1/jobs/1/report", 405),
    ],
)
def test_a_path_or_method_that_is_not_there(
    service: FakeService, method: str, path: str, status: int
) -> None:
    answer = service.ask(method, path)
    assert answer.status_code == status
    assert path in problem(answer)["message"]


def test_a_class_nobody_knows_and_a_plan_that_is_not_there_yet(service: FakeService) -> None:
    answer = service.ask("GET", "/api/v1/classes/bert")
    assert (answer.status_code, problem(answer)["field"]) == (404, "class")
    answer = service.ask("GET", "/api/v1/plan")
    assert (answer.status_code, problem(answer)["exit_code"]) == (404, 1)


def test_a_bug_is_told_as_one_and_logged_with_its_trace(
    service: FakeService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> list[str]:
        raise ZeroDivisionError("secret details")

    monkeypatch.setattr(service.control, "classes", broken)
    with caplog.at_level(logging.ERROR):
        answer = service.ask("GET", "/api/v1/classes")
    assert answer.status_code == 500
    said = problem(answer)
    assert "unexpected ZeroDivisionError" in said["message"]
    assert "secret" not in said["message"]
    assert any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize("path", ["classes", "classes/resnet18"])
def test_a_control_loop_that_does_not_answer_in_time_is_a_503(
    service: FakeService, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def too_late(*_: str) -> None:
        raise TimeoutError

    monkeypatch.setattr(service.control, "classes", too_late)
    monkeypatch.setattr(service.control, "class_document", too_late)
    answer = service.ask("GET", f"/api/v1/{path}")
    assert answer.status_code == 503
    assert "did not answer in time" in problem(answer)["message"]
    assert problem(answer)["exit_code"] == 1


@pytest.mark.parametrize("speed", [1.0, 60.0])
def test_health_says_when_the_control_loop_has_stopped_stepping(
    service: FakeService, monkeypatch: pytest.MonkeyPatch, speed: float
) -> None:
    control = service.control
    app = create_app(
        control, control.store, service.engine, token=None, secret=b"", version="1", speed=speed
    )
    monkeypatch.setattr(service, "app", app)
    for still_s, status in ((0.0, 200), (29.0, 200), (31.0, 503), (3600.0, 503)):
        monkeypatch.setattr(control, "now", lambda after=still_s: control.clock + after * speed)
        answer = service.ask("GET", "/api/v1/health")
        assert answer.status_code == status, still_s
    said = problem(answer)["message"]
    assert said.startswith("the control loop has not stepped for 3600 s")
    assert "restart boa serve" in said


# Over a real socket


@pytest.fixture
def address(service: FakeService) -> Iterator[tuple[str, int]]:
    with service.serving() as url:
        yield "127.0.0.1", httpx.URL(url).port or 0


def read_until(connection: socket.socket, end: bytes) -> bytes:
    got = b""
    while end not in got:
        part = connection.recv(65_536)
        if not part:
            break
        got += part
    return got


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(
    address: tuple[str, int],
) -> None:
    with socket.create_connection(address, timeout=300) as connection:
        connection.sendall(
            b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 10000000000\r\n\r\n"
        )
        got = read_until(connection, b"bytes")  # which fails if it waits for more of it
    assert got.startswith(b"HTTP/1.1 413 ")
    assert b"at most 1,048,576 bytes" in got


def test_a_body_that_turns_out_too_large_is_refused_while_it_comes(
    address: tuple[str, int],
) -> None:
    sent = 0
    with socket.create_connection(address, timeout=5) as connection:
        connection.sendall(
            b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        try:
            while sent < 200 * MIB:
                connection.sendall(b"10000\r\n" + b" " * 65_536 + b"\r\n")
                sent += 65_536
        except OSError:
            pass
    assert sent < 100 * MIB, "the server has hung up long before"


def test_the_client_is_told_that_its_job_is_too_large(service: FakeService) -> None:
    with service.serving() as url, Client(url) as client:
        with pytest.raises(Refused) as refused:
            client.submit({"class": "a", "run": "x" * (3 * MIB)})
        assert (refused.value.status, refused.value.exit_code) == (413, 2)
        assert client.jobs() == []


def test_nonsense_instead_of_http_does_no_harm(
    service: FakeService, address: tuple[str, int]
) -> None:
    with socket.create_connection(address, timeout=300) as connection:
        connection.sendall(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        assert b"400" in read_until(connection, b"\n")
    url = f"http://{address[0]}:{address[1]}"
    assert httpx.get(f"{url}/api/v1/health", timeout=300.0).status_code == 200
