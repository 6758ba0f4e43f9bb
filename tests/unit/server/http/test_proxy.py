"""A proxy's word on who asks: taken from the addresses that are named, and from nobody else."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from boa.errors import InputError
from boa.model.access import TokenRecord
from boa.server.http.access import TrustedProxy
from fakes import FakeService

OWN = "the-service-s-own-token-7731"
HEADER = "X-Forwarded-User"
OURS = {"Authorization": f"Bearer {OWN}"}


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    proxy = TrustedProxy(HEADER, ("10.0.0.7", "10.1.0.0/16", "127.0.0.1"), "viewer")
    made = FakeService(tmp_path, token=OWN, proxy=proxy)
    known = [
        TokenRecord(name="mia", role="member", digest="a", team="vision", created_at=0.0),
        TokenRecord(name="gone", role="admin", digest="b", created_at=0.0, revoked_at=1.0),
    ]
    made.control.tokens = {token.name: token for token in known}
    return made


def asked(service: FakeService, address: str, path: str = "whoami", **headers: str) -> Any:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(service.app, client=(address, 4242))
        async with httpx.AsyncClient(transport=transport, base_url="http://boa.example") as client:
            return await client.get(f"/api/v1/{path}", headers=headers)

    return asyncio.run(send())


@pytest.mark.parametrize("address", ["10.0.0.7", "10.1.2.3"])
def test_a_named_proxy_is_believed(service: FakeService, address: str) -> None:
    answer = asked(service, address, **{HEADER: "zoe@lab.example"})
    assert answer.json() == {"name": "zoe@lab.example", "role": "viewer", "team": ""}
    answer = asked(service, address, **{HEADER: "mia"})
    assert answer.json() == {"name": "mia", "role": "member", "team": "vision"}


@pytest.mark.parametrize("address", ["10.0.0.8", "10.2.0.1", "::1", "not an address", ""])
def test_anybody_else_is_not(service: FakeService, address: str) -> None:
    assert asked(service, address, **{HEADER: "mia"}).status_code == 401
    assert asked(service, address, **{HEADER: "mia"}, **OURS).json()["name"] == "admin"


def test_other_headers_about_addresses_change_nothing(service: FakeService) -> None:
    said = {"X-Forwarded-For": "10.0.0.7", "X-Real-IP": "10.0.0.7", "Forwarded": "for=10.0.0.7"}
    assert asked(service, "10.0.0.8", **said, **{HEADER: "mia"}).status_code == 401


def test_over_a_socket_of_this_machine_the_address_cannot_be_said_either(
    service: FakeService,
) -> None:
    with service.serving() as url:
        headers = {HEADER: "mia", "X-Forwarded-For": "10.0.0.7"}
        assert httpx.get(f"{url}/api/v1/whoami", headers=headers, timeout=300.0).status_code == 401


def test_a_proxy_on_this_machine_has_to_send_the_service_s_token(service: FakeService) -> None:
    assert asked(service, "127.0.0.1", **{HEADER: "mia"}).status_code == 401
    wrong = {"Authorization": "Bearer another-token-of-somebody"}
    assert asked(service, "127.0.0.1", **{HEADER: "mia"}, **wrong).status_code == 401
    assert asked(service, "127.0.0.1", **{HEADER: "mia"}, **OURS).json()["name"] == "mia"


@pytest.mark.parametrize("name", ["", "admin", "x" * 300])
def test_a_name_that_is_none_or_the_service_s_own_is_refused(
    service: FakeService, name: str
) -> None:
    assert asked(service, "10.0.0.7", **{HEADER: name}).status_code == 403


def test_who_was_revoked_is_out_by_the_proxy_too(service: FakeService) -> None:
    assert asked(service, "10.0.0.7", **{HEADER: "gone"}).status_code == 401


def test_the_audit_log_has_both_addresses(service: FakeService) -> None:
    asked(service, "10.0.0.7", "audit", **{HEADER: "mia", "X-Forwarded-For": "1.1.1.1, 9.8.7.6"})
    (line,) = service.control.store.audited
    assert (line.who, line.address) == ("mia", "9.8.7.6 through 10.0.0.7")


def test_the_header_and_the_proxies_go_together() -> None:
    from boa.formats.service import load_config

    for fields in ({"trust_user_header": HEADER}, {"trust_proxy": ["10.0.0.7"]}):
        with pytest.raises(InputError, match="trust_proxy"):
            load_config(None, fields, lambda *_: None)
