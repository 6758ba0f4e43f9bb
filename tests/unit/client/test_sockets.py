"""HTTP over plain sockets: connections, bodies, and who goes by way of a proxy."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from boa.client import Client, NoServer
from boa.client.sockets import Sockets, _Connection
from boa.client.transport import HttpRequest, TransportTrouble
from boa.client.wire import Wire
from boa.errors import BoaError

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def request(target: str = "/") -> HttpRequest:
    return HttpRequest("GET", target, {}, None, connect_s=5.0, read_s=5.0)


@contextmanager
def answering(*connections: Sequence[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """A server that gives each connection its answers, then closes it; what it was asked."""
    asked: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answers in connections:
            connection, _ = server.accept()
            with connection:
                for words in answers:
                    asked.append(connection.recv(65_536))
                    connection.sendall(words)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server.getsockname()[1], asked
    finally:
        thread.join()
        server.close()


def said(body: bytes, more: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" % (len(body), more, body)


def ask(http: Sockets) -> bytes:
    with http.send(request()) as answer:
        return answer.read()


def test_a_connection_is_used_again_until_the_server_closes_it() -> None:
    last = said(b"c", b"Connection: close\r\n")
    with answering([said(b"a"), said(b"b")], [last], [said(b"d")]) as (port, asked):
        http = Sockets("127.0.0.1", port)
        found = [ask(http) for _ in range(2)]
        while http._idle and http._idle[0].usable():  # until its end has arrived
            pass
        found += [ask(http) for _ in range(2)]
        http.close()
    assert found == [b"a", b"b", b"c", b"d"]
    assert all(b"Host: 127.0.0.1:" in words for words in asked)


@contextmanager
def ending_kept_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[Sockets, list[bytes]]]:
    """The server ends a kept connection after it was looked at, and before it is used."""
    with answering([said(b"a")], [said(b"b")]) as (port, asked):
        http = Sockets("127.0.0.1", port)
        ask(http)
        monkeypatch.setattr(_Connection, "usable", lambda _: True)
        yield http, asked
        http.close()


def test_a_question_that_a_kept_connections_end_crossed_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ending_kept_connections(monkeypatch) as (http, asked):
        assert ask(http) == b"b"
    assert len(asked) == 2


def test_a_change_is_never_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with ending_kept_connections(monkeypatch) as (http, asked):
        with (
            pytest.raises(TransportTrouble, match="broke off"),
            http.send(request()._replace(method="POST", body=b"{}")),
        ):
            pass
        assert ask(http) == b"b"
    assert not any(words.startswith(b"POST") for words in asked)


def test_an_answer_that_was_not_read_to_its_end_is_not_mixed_with_the_next() -> None:
    with answering([said(b"long" * 10)], [said(b"next")]) as (port, _):
        http = Sockets("127.0.0.1", port)
        with http.send(request()):
            pass
        assert ask(http) == b"next"
        http.close()


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (
            CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
            b"abcde",
        ),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil it ends", b"until it ends"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + said(b"after"), b"after"),
    ],
)
def test_a_body_ends_where_its_answer_says(words: bytes, body: bytes) -> None:
    with answering([words]) as (port, _):
        http = Sockets("127.0.0.1", port)
        assert ask(http) == body
        http.close()


@pytest.mark.parametrize(
    "words",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"5\r\nabc",
        b"HTTP/1.1 nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200,
        b"x" * 100_000,
    ],
)
def test_an_answer_that_is_cut_or_nonsense_is_a_broken_connection(words: bytes) -> None:
    with answering([words]) as (port, _):
        http = Sockets("127.0.0.1", port)
        with pytest.raises(TransportTrouble, match="broke off"):
            ask(http)
        http.close()


def test_lines_are_put_together_over_pieces() -> None:
    words = CHUNKED + b"4\r\na\r\nb\r\n3\r\n\xc3\xa9\n\r\n1\r\nc\r\n0\r\n\r\n"
    with answering([words]) as (port, _):
        http = Sockets("127.0.0.1", port)
        with http.send(request()) as answer:
            assert list(answer.lines()) == ["a", "bé", "c"]
        http.close()


def test_a_server_elsewhere_is_asked_by_way_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    body = b'{"jobs": [], "now": 0, "before": null}'
    with answering([said(body, b"Content-Type: application/json\r\n")]) as (port, asked):
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        with Client("http://nowhere.invalid:8420/boa") as client:
            assert client.jobs() == []
    assert asked[0].startswith(b"GET http://nowhere.invalid:8420/boa/api/v1/jobs?")


def test_an_address_with_tls_that_nobody_listens_at_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with Client(f"https://127.0.0.1:{port}") as client, pytest.raises(NoServer, match="refused"):
        client.jobs()


@pytest.mark.parametrize("url", ["http://a..b:8420", f"http://{'a' * 70}.invalid"])
def test_a_name_that_no_name_can_be_is_told_as_that(url: str) -> None:
    wire = Wire(url, None, 5.0)
    with pytest.raises(BoaError):
        wire.ask("GET", "health")
    wire.close()
