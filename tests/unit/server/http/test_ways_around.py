"""Ways around the guard that were found open once: each stays shut."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from boa.api.tokens import digest
from boa.model.access import TokenRecord
from boa.server.http.access import caller_of
from boa.server.http.errors import Unauthorized
from fakes import FakeService

OWN = "the-service-s-own-token-7731"
VIEWERS = "a-viewer-s-token-4cR8sWd2kT7p"
SEEN = {"Authorization": f"Bearer {VIEWERS}"}


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    made = FakeService(tmp_path, token=OWN)
    vera: Any = TokenRecord(name="vera", role="viewer", digest=digest(VIEWERS), created_at=0.0)
    made.control.tokens = {vera.name: vera}
    return made


@pytest.mark.parametrize("path", ["audit", "tokens", "jobs/1/logs"])
@pytest.mark.parametrize("end", ["%0a", "%0A%0a", "%0d%0a", "%00", "%e2%80%a8"])
def test_no_path_with_a_line_break_leads_to_what_its_name_is_closed_for(
    service: FakeService, path: str, end: str
) -> None:
    assert service.ask("GET", f"/api/v1/{path}", headers=SEEN).status_code == 403
    assert service.ask("GET", f"/api/v1/{path}{end}", headers=SEEN).status_code == 404


def test_only_a_report_of_a_job_goes_without_the_service_s_token(service: FakeService) -> None:
    for path in ("jobs/report", "jobs//report", "jobs/1/logs/report"):
        assert service.ask("GET", f"/api/v1/{path}").status_code == 401, path


def test_a_route_that_asks_who_it_is_takes_nobody_for_an_admin() -> None:
    scope = {"type": "http", "client": ("127.0.0.1", 1), "headers": []}
    with pytest.raises(Unauthorized):
        caller_of(Request(scope))


def test_a_stream_ends_with_the_token_that_has_opened_it(service: FakeService) -> None:
    asked = {**SEEN, "Accept": "text/event-stream"}
    with (
        service.serving() as url,
        httpx.stream("GET", f"{url}/api/v1/events", headers=asked, timeout=300) as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines).startswith(":")
        assert next(lines) == ""
        service.control.tell("submitted", "while it was good")
        assert any("while it was good" in line for line in iter(lines.__next__, ""))
        (vera,) = service.control.tokens.values()
        service.control.tokens = {"vera": replace(vera, revoked_at=1.0)}
        service.control.tell("submitted", "after it was taken back")
        assert "after" not in "".join(lines), "and it has ended"
