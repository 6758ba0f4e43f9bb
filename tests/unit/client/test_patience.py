"""The Python client and a server that is there, but cannot answer now."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boa.client import Client, Refused
from boa.client.api import PATIENCE_S
from boa.server.http.limits import Limits
from boa.store.base import StoreTrouble
from fakes import FakeService
from unit.client.test_client import later


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path)


@pytest.fixture
def client(service: FakeService) -> Iterator[Client]:
    with service.serving() as url, Client(url) as client:
        yield client


def cannot_read(service: FakeService, can: bool = False) -> None:
    service.control.store.trouble = None if can else StoreTrouble("the database is locked")


def test_a_locked_database_ends_neither_a_wait_nor_a_log_nor_events(
    client: Client, service: FakeService
) -> None:
    job = service.submit()
    service.engine.write(job, "done\n")
    service.control.end(job, "succeeded", 0)
    asked: list[Callable[[], object]] = [
        lambda: client.wait(job, pause_s=0.05)["state"],
        lambda: "".join(client.logs(job, follow=True)),
        lambda: next(client.events(after=0))["kind"],
    ]
    for ask, expected in zip(asked, ("succeeded", "done\n", "submitted"), strict=True):
        cannot_read(service)
        with later(0.3, lambda: cannot_read(service, can=True)):
            assert ask() == expected


def test_events_from_now_on_wait_for_the_database_too(client: Client, service: FakeService) -> None:
    cannot_read(service)
    events = client.events()
    heard = threading.Event()

    def recover() -> None:
        cannot_read(service, can=True)
        while not heard.wait(0.3):  # until it has asked again, and learnt what "now" is
            service.control.tell("started", "…")

    with later(0.2, recover):
        kind = next(events)["kind"]
        heard.set()
    assert kind == "started"
    events.close()


def test_patience_with_a_database_that_stays_locked_ends_in_its_own_words(
    client: Client, service: FakeService
) -> None:
    job = service.submit()
    service.control.end(job, "succeeded", 0)
    cannot_read(service)
    for ask in (
        lambda: client.wait(job, pause_s=0.05, patience_s=0.2),
        lambda: list(client.logs(job, follow=True, patience_s=0.2)),
        lambda: next(client.events(patience_s=0.2)),
        lambda: list(client.logs(job)),
    ):
        began = time.monotonic()
        with pytest.raises(Refused, match="database is locked") as refused:
            ask()
        assert (refused.value.status, refused.value.exit_code) == (503, 1)
        assert time.monotonic() - began < PATIENCE_S / 2


@pytest.mark.parametrize(
    "limits", [Limits(per_address=1), Limits(connections=1), Limits(streams=1)]
)
def test_a_server_that_is_full_is_waited_for(tmp_path: Path, limits: Limits) -> None:
    service = FakeService(tmp_path, limits=limits)
    service.control.tell("started", "…")
    with service.serving() as url, Client(url) as first, Client(url) as second:
        there = first.events(after=0)
        next(there)
        with later(0.3, there.close):
            assert next(second.events(after=0))["kind"] == "started"


def test_other_refusals_are_not_waited_out(client: Client) -> None:
    for ask in (lambda: client.wait("9"), lambda: list(client.logs("9", follow=True))):
        began = time.monotonic()
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.status == 404
        assert time.monotonic() - began < PATIENCE_S / 2
