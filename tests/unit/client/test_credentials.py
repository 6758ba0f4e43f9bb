"""The client finds the token of its user's own service, and gives it to no other process."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path

import pytest

from boa.api import listeners
from boa.api.published import publishing
from boa.client import Client
from boa.client.sockets import Sockets
from boa.client.transport import HttpAnswer, HttpRequest
from boa.errors import InputError, NoServer, Refused
from fakes import FakeService
from local_runs import until

TOKEN = "boa_2kT7pQzX9vLmN4cR8sWd"
OTHER = 12345
"""Another user's id."""
TAKER = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
connection, _ = listening.accept()
if sys.argv[3] == "stops": listening.close()
sys.stdout.write(repr(connection.recv(65536))); sys.stdout.flush()
"""


@pytest.fixture(autouse=True)
def no_other_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOA_TOKEN", raising=False)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A service that wants the token."""
    with FakeService(tmp_path, token=TOKEN).serving() as url:
        yield url


def test_what_the_service_has_told_is_sent(url: str) -> None:
    with publishing(url, TOKEN), Client(url) as client:
        assert client.jobs() == []
        assert client.token == TOKEN
    with Client(url) as client, pytest.raises(Refused, match="wants a token"):
        client.jobs()


def test_a_token_that_was_given_wins_and_then_boa_token(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with publishing(url, "boa_of-a-service-that-was-here"):
        with Client(url, token=TOKEN) as client:
            assert client.jobs() == []
        monkeypatch.setenv("BOA_TOKEN", TOKEN)
        with Client(url) as client:
            assert client.jobs() == []


def test_a_client_that_stays_finds_the_token_of_the_next_service(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boa.client.credentials.BELIEVED_S", 0.0)
    with Client(url) as client:
        with pytest.raises(Refused):
            client.jobs()
        with publishing(url, TOKEN):
            assert client.jobs() == []


def test_a_service_that_tells_its_token_after_it_was_asked_is_asked_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that starts takes connections before it has told anything."""
    with ExitStack() as told, Client(url) as client:
        send = Sockets.send

        def late(self: Sockets, request: HttpRequest) -> AbstractContextManager[HttpAnswer]:
            if "Authorization" not in request.headers:
                told.enter_context(publishing(url, TOKEN))
            return send(self, request)

        monkeypatch.setattr(Sockets, "send", late)
        assert client.jobs() == []


def test_another_user_s_process_on_the_port_gets_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "listening_users", lambda address, port: {OTHER})
    with (
        publishing(url, TOKEN),
        Client(url) as client,
        pytest.raises(NoServer, match="another user's process"),
    ):
        client.jobs()
    with Client(url, token=TOKEN) as client:
        assert client.jobs() == [], "one that was given is the user's own decision"


def test_where_ports_tell_nothing_the_service_s_process_has_to_be_there(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "TABLES", ())
    with publishing(url, TOKEN), Client(url) as client:
        assert client.jobs() == []
        monkeypatch.setattr(listeners, "is_our_process", lambda pid: False)
    with (
        publishing(url, TOKEN),
        Client(url) as client,
        pytest.raises(NoServer, match="another user's process"),
    ):
        client.jobs()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("then", ["listens", "stops"])
def test_who_takes_the_port_of_a_service_that_is_down_learns_no_token(
    port: int, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by letting go of the port at once either, though the service's process were there."""
    url = f"http://127.0.0.1:{port}"
    words = [sys.executable, "-c", TAKER, str(port), str(OTHER), then]
    ours = listeners.is_ours

    def late(connected: socket.socket, pid: int) -> bool:
        if then == "stops":
            until(lambda: not listeners.listening_users("127.0.0.1", port))
        return ours(connected, pid)

    monkeypatch.setattr(listeners, "is_ours", late)
    with publishing(url, TOKEN), subprocess.Popen(words, stdout=subprocess.PIPE) as taker:
        assert taker.stdout is not None
        assert taker.stdout.readline() == b"ready\n"
        with Client(url, timeout=5) as client, pytest.raises(NoServer, match="another user"):
            client.jobs()
        assert taker.stdout.read() == b"b''"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_stranger_s_process_is_not_ours_though_root_may_signal_it() -> None:
    words = [sys.executable, "-c", "import os; os.setuid(12345); print(1, flush=True); input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"1\n"
        assert not listeners.is_our_process(other.pid)
        other.communicate(b"\n")
    assert listeners.is_our_process(os.getpid())
    assert not listeners.is_our_process(2**40)


def test_listening_sockets_are_this_user_s_by_every_form_of_their_address() -> None:
    for host in ("127.0.0.1", "::1", "0.0.0.0", "::"):
        with closing(socket.create_server((host, 0), family=_family(host))) as listening:
            port = listening.getsockname()[1]
            reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
            assert listeners.listening_users(reached, port) == {os.geteuid()}
    assert listeners.listening_users("127.0.0.1", port) == set()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


@pytest.mark.parametrize(
    ("served", "asked", "how"), [("https", "http", "with"), ("http", "https", "without")]
)
def test_asking_another_way_than_it_is_served_says_which(served: str, asked: str, how: str) -> None:
    with (
        publishing(f"{served}://127.0.0.1:8420", TOKEN),
        Client(f"{asked}://127.0.0.1:8420") as client,
        pytest.raises(InputError, match=f"{served}://127.0.0.1:8420: it is served {how} TLS"),
    ):
        client.jobs()
