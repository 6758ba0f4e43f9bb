"""The Python client where no server is, or none that answers as one."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boa.api import answers
from boa.api.hosts import is_loopback
from boa.client import DEFAULT_URL, Client, NoServer, wire
from boa.client.api import PATIENCE_S
from boa.errors import InputError
from fakes import FakeService
from ports import held_port


def test_without_an_address_it_is_the_local_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOA_SERVER", raising=False)
    with Client() as client:
        assert client.url == DEFAULT_URL == "http://127.0.0.1:8420"


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8420", "ftp://x", "http://", "http://x:port", "http://[::1", "nonsense"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="BOA_SERVER") as refused:
        Client(url)
    assert "http://127.0.0.1:8420" in str(refused.value)


@contextmanager
def nobody_listens() -> Iterator[str]:
    """An address."""
    with held_port() as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.jobs(),
        lambda client: client.submit({"class": "a", "run": "true"}),
        lambda client: list(client.logs("1", follow=True)),
        lambda client: next(client.events()),
        lambda client: client.wait("1"),
    ],
)
def test_where_nobody_listens_there_is_no_server_and_nobody_waits(
    ask: Callable[[Client], object],
) -> None:
    began = time.monotonic()
    with (
        nobody_listens() as url,
        Client(url) as client,
        pytest.raises(NoServer) as gone,
    ):
        ask(client)
    assert time.monotonic() - began < PATIENCE_S / 2
    assert gone.value.exit_code == 4
    assert str(gone.value) == (
        f"no boa server at {url}: connection refused. Start one with 'boa serve --budget USD', or "
        "name another in $BOA_SERVER."
    )


def test_a_name_that_is_nobody_s_is_no_server() -> None:
    with Client("http://nowhere.invalid:8420") as client, pytest.raises(NoServer):
        client.jobs()


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(url, timeout=0.2) as client, pytest.raises(NoServer, match=r"within 0\.2 s"):
            client.jobs()


def test_a_change_is_waited_for_longer_than_the_server_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the client would not hear what came of it."""
    assert wire.CHANGE_S > answers.PATIENCE_S
    monkeypatch.setattr(wire, "CHANGE_S", 0.4)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(url, timeout=0.1) as client:
            for change in (lambda: client.set_budget(1.0), lambda: client.stop("1")):
                with pytest.raises(NoServer, match=r"within 0\.4 s"):
                    change()
            with pytest.raises(NoServer, match=r"within 0\.1 s"):
                client.metrics()


@contextmanager
def saying(words: bytes) -> Iterator[str]:
    """Something that answers every request with the same bytes."""
    server = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(words)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        thread.join()
        server.close()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nhey!",
            "text/html",
        ),
        (b"HTTP/1.1 404 Nope\r\nContent-Length: 2\r\n\r\n{}", "something else answers there (404"),
        (b"HTTP/1.1 500 X\r\nContent-Length: 14\r\n\r\n" + b'{"error": "x"}', "something else"),
        (b"220 mail.example ESMTP\r\n", "the connection broke off"),
        (b"", "the connection broke off"),
    ],
)
def test_what_is_no_boa_server_is_told_as_that(words: bytes, why: str) -> None:
    with saying(words) as url, Client(url) as client, pytest.raises(NoServer) as gone:
        client.jobs()
    assert why in str(gone.value)


def test_no_proxy_stands_between_a_machine_and_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeService(tmp_path).serving() as url, nobody_listens() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        with Client(url) as client:
            assert client.jobs() == []


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [("localhost", True), ("127.0.0.1", True), ("127.1.2.3", True), ("::1", True)]
    + [(host, False) for host in ("0.0.0.0", "10.0.0.1", "example.com", "", "::")],
)
def test_which_hosts_only_this_machine_can_reach(host: str, is_ours: bool) -> None:
    assert is_loopback(host) == is_ours
