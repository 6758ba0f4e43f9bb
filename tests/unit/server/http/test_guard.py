"""Who may ask: with a token, those who have it; without, only this machine's own processes."""

from pathlib import Path

import pytest

from fakes import FakeService

TOKEN = "s3cret-token"
GUARDED = ["/api/v1/jobs", "/api/v1/cost", "/metrics", "/nowhere", "/api/v1/events"]


@pytest.fixture
def guarded(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path, token=TOKEN)


@pytest.fixture
def local(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path)


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize(
    ("header", "words"),
    [
        (None, "wants a token"),
        ("Bearer wrong", "not this server's"),
        (f"Bearer {TOKEN}x", "not this server's"),
        ("Bearer \xe9\xe8", "not this server's"),
        ("Bearer ", "wants a token"),
        (f"Basic {TOKEN}", "wants a token"),
    ],
)
def test_without_the_token_nothing_is_answered_but_one_clear_error(
    guarded: FakeService, path: str, header: str | None, words: str
) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    answer = guarded.ask("GET", path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    said = answer.json()["error"]
    assert words in said["message"]
    assert "BOA_TOKEN" in said["message"]
    assert said["exit_code"] == 2
    assert TOKEN not in answer.text


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}"])
def test_with_the_token_everything_is(guarded: FakeService, header: str) -> None:
    for path in ("/api/v1/jobs", "/api/v1/cost", "/metrics"):
        assert guarded.ask("GET", path, headers={"Authorization": header}).status_code == 200


def test_a_request_without_the_token_is_refused_before_its_body_is_looked_at(
    guarded: FakeService,
) -> None:
    answer = guarded.ask("POST", "/api/v1/jobs", content=b"{")
    assert answer.status_code == 401


@pytest.mark.parametrize("path", ["/api/v1/health", "/", "/api/openapi.json"])
def test_health_and_what_is_no_secret_need_no_token(guarded: FakeService, path: str) -> None:
    assert guarded.ask("GET", path).status_code == 200


def test_the_service_s_token_is_no_report_token(guarded: FakeService) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    body = {"attempt": 1, "uptime_s": 1, "epoch": 0, "progress": 0, "units": 0}
    answer = guarded.ask("POST", "/api/v1/jobs/1/report", json=body, headers=headers)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://127.0.0.1:1", "null", "", "http://["]
)
def test_a_page_of_another_site_can_make_a_browser_ask_but_gets_nowhere(
    local: FakeService, origin: str
) -> None:
    headers = {"Origin": origin, "Content-Type": "application/json"}
    body = b'{"class": "a", "run": "true"}'
    answer = local.ask("POST", "/api/v1/jobs", content=body, headers=headers)
    assert answer.status_code == 403
    assert "Origin" in answer.json()["error"]["message"]
    assert local.control.active == {}


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "anything"])
@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/health", "/metrics", "/"])
@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_request_that_the_browser_says_is_another_site_s_is_refused(
    tmp_path: Path, token: str | None, path: str, site: str
) -> None:
    headers = {"Sec-Fetch-Site": site, "Authorization": f"Bearer {TOKEN}"}
    answer = FakeService(tmp_path, token=token).ask("GET", path, headers=headers)
    assert answer.status_code == 403
    assert "Sec-Fetch-Site" in answer.json()["error"]["message"]


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_one_of_our_own_page_or_of_the_user_s_own_hand_is_not(
    local: FakeService, site: str
) -> None:
    headers = {"Sec-Fetch-Site": site}
    assert local.ask("GET", "/api/v1/jobs", headers=headers).status_code == 200


def test_a_link_from_elsewhere_may_lead_to_the_page_and_to_nothing_else(local: FakeService) -> None:
    link = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    assert local.ask("GET", "/", headers=link).status_code == 200
    assert local.ask("GET", "/api/v1/jobs", headers=link).status_code == 403
    assert local.ask("POST", "/", headers=link).status_code == 403
    framed = {**link, "Sec-Fetch-Dest": "iframe"}
    assert local.ask("GET", "/", headers=framed).status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        "somebody@127.0.0.1",
        "somebody:word@127.0.0.1:8420",
        "127.0.0.1:8420@evil.example",
        "127.0.0.1/evil.example",
        "127.0.0.1#evil.example",
        "127.0.0.1?",
        "127.0.0.1 evil.example",
        "127.0.0.1,evil.example",
        "127.0.0.1:",
        "127.0.0.1:84200000",
        "[::1%eth0]",
        "[::1]evil.example",
        "http://127.0.0.1",
        "127.0.0.1\\\\evil.example",
    ],
)
@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_host_with_a_user_or_anything_else_that_is_odd_is_refused(
    tmp_path: Path, token: str | None, host: str
) -> None:
    headers = {"Host": host, "Authorization": f"Bearer {TOKEN}"}
    answer = FakeService(tmp_path, token=token).ask("GET", "/api/v1/jobs", headers=headers)
    assert answer.status_code == 403
    assert "Host: got" in answer.json()["error"]["message"]


def test_our_own_page_may_ask(local: FakeService) -> None:
    headers = {"Origin": "http://127.0.0.1:8420"}
    assert local.ask("GET", "/api/v1/jobs", headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8420", "10.0.0.7", "", "[::1"])
def test_without_a_token_a_name_that_was_made_to_point_here_is_refused(
    local: FakeService, host: str
) -> None:
    answer = local.ask("GET", "/api/v1/jobs", headers={"Host": host})
    assert answer.status_code == 403
    assert "Host" in answer.json()["error"]["message"]


@pytest.mark.parametrize("host", ["127.0.0.1:8420", "localhost", "[::1]:8420", "127.0.0.2"])
def test_this_machine_s_own_names_are_not(local: FakeService, host: str) -> None:
    assert local.ask("GET", "/api/v1/jobs", headers={"Host": host}).status_code == 200


def test_with_a_token_the_server_may_have_any_name(guarded: FakeService) -> None:
    headers = {"Host": "gpu.example:8420", "Authorization": f"Bearer {TOKEN}"}
    assert guarded.ask("GET", "/api/v1/jobs", headers=headers).status_code == 200
