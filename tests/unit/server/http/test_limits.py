"""What clients may take of the server, over real sockets: and what it does for others meanwhile."""

import os
import resource
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest

from boa.model.records import Event
from boa.server.http.limits import raise_descriptors
from callers import HEALTH, SOON_S, Caller, said, served, status
from fakes import FakeService
from local_runs import until

EVENTS = (
    b"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
)
SUBMIT = (
    b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 29\r\n\r\n"
)
CHUNKED = (
    b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
SPEC = b'{"class": "a", "run": "true"}'


def connected(service: FakeService) -> int:
    return len(service.server.premises.crowd)


def begun_to_be_answered(service: FakeService, answered: int) -> bool:
    """`answered`: how many there had been before."""
    state = service.server.server_state
    return bool(state.tasks) or state.total_requests > answered


# Too many


def test_silent_connections_make_room_for_whoever_asks(tmp_path: Path) -> None:
    with (
        served(tmp_path, connections=20, per_address=10) as (service, url),
        ExitStack() as all_of_them,
    ):
        silent = [all_of_them.enter_context(Caller(url)) for _ in range(50)]
        assert httpx.get(f"{url}/api/v1/health", timeout=300.0).status_code == 200
        assert connected(service) <= 10
        assert silent[0].rest() == b"", "the oldest was closed"


def test_an_idle_connection_makes_room_but_one_in_use_does_not(tmp_path: Path) -> None:
    with (
        served(tmp_path, connections=3, per_address=3) as (_, url),
        Caller(url) as stream,
        Caller(url) as idle,
        Caller(url) as other,
    ):
        assert status(stream.ask(EVENTS)) == 200
        assert idle.ask_health() == 200
        assert other.ask_health() == 200
        with Caller(url) as late:
            assert late.ask_health() == 200
            assert idle.rest() == b""
            assert other.ask_health() == 200


@pytest.mark.parametrize(
    ("limits", "expected", "words"),
    [
        ({"connections": 3, "per_address": 9}, 503, "all 3 connections"),
        ({"connections": 9, "per_address": 3}, 429, "too many connections from this address"),
    ],
)
def test_where_all_are_in_use_one_more_is_refused_clearly(
    tmp_path: Path, limits: dict[str, int], expected: int, words: str
) -> None:
    with served(tmp_path, **limits) as (service, url), ExitStack() as all_of_them:
        streams = [all_of_them.enter_context(Caller(url)) for _ in range(3)]
        for stream in streams:
            assert status(stream.ask(EVENTS)) == 200
        with Caller(url) as late:
            late.sendall(HEALTH)
            answer = late.rest()
            assert status(answer) == expected
            assert b"Retry-After: 1" in answer
            assert words in said(answer)
        streams[0].close()
        until(lambda: connected(service) == 2)
        assert httpx.get(f"{url}/api/v1/health", timeout=300.0).status_code == 200


def test_the_streams_are_limited_and_nothing_else_is_with_them(tmp_path: Path) -> None:
    with served(tmp_path, streams=2) as (service, url), ExitStack() as all_of_them:
        streams = [all_of_them.enter_context(Caller(url)) for _ in range(2)]
        for stream in streams:
            assert status(stream.ask(EVENTS)) == 200
        for path in ("events", "live"):
            headers = {"Accept": "text/event-stream"}
            refused = httpx.get(f"{url}/api/v1/{path}", headers=headers, timeout=300.0)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert "all 2 streams" in refused.json()["error"]["message"]
            assert httpx.get(f"{url}/api/v1/{path}", timeout=300.0).status_code == 200
        streams[0].close()
        until(lambda: connected(service) == 1)
        with Caller(url) as another:
            assert status(another.ask(EVENTS)) == 200


SILENT = """
import logging, resource, sys
from pathlib import Path
most = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (most // 2, most))
from boa.server.http import logs
from boa.server.http.limits import Limits, raise_descriptors
from boa.server.http.run import listen, serve, url_of
from fakes import FakeService

logs.configure()
service = FakeService(Path(sys.argv[1]), limits=Limits().within(raise_descriptors()))
listening = listen("127.0.0.1", 0)
serve(service.app, listening, lambda: print(url_of(listening), flush=True))
"""


def test_more_silent_connections_than_descriptors_do_not_take_the_server_down(
    tmp_path: Path,
) -> None:
    most = 400
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < most + 200:
        raise_descriptors()
    process = subprocess.Popen(
        [sys.executable, "-c", SILENT, str(tmp_path), str(most)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    with process, ExitStack() as all_of_them:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        try:
            for _ in range(most + 100):
                all_of_them.enter_context(Caller(url))
            assert httpx.get(f"{url}/api/v1/health", timeout=SOON_S).status_code == 200
        finally:
            process.terminate()
        log = process.stderr.read()
    assert "accept" not in log
    assert 0 < len(log.splitlines()) < 5, "one line for all of them"


def test_health_is_answered_while_every_thread_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, free = threading.Semaphore(0), threading.Event()

    def jobs(*asked: object, **how: object) -> list[object]:
        held.release()
        assert free.wait(SOON_S)
        return []

    threads = 40  # of the pool that answers whatever may block
    with served(tmp_path) as (service, url), ExitStack() as all_of_them:
        monkeypatch.setattr(service.control.store, "jobs", jobs)
        all_of_them.callback(free.set)
        for _ in range(threads + 1):
            caller = all_of_them.enter_context(Caller(url))
            caller.sendall(b"GET /api/v1/jobs?all=true HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        for _ in range(threads):
            assert held.acquire(timeout=SOON_S)
        assert httpx.get(f"{url}/api/v1/health", timeout=SOON_S).status_code == 200
        free.set()


# Too slow


def test_a_connection_that_never_asks_anything_is_closed(tmp_path: Path) -> None:
    with served(tmp_path, head_s=0.2) as (_, url), Caller(url) as silent:
        assert silent.rest() == b""


@pytest.mark.parametrize("begun", [HEALTH[:-2], b"G"])
def test_a_request_that_is_begun_and_never_comes_is_refused(tmp_path: Path, begun: bytes) -> None:
    with served(tmp_path, head_s=0.2) as (_, url), Caller(url) as slow:
        slow.sendall(begun)
        answer = slow.rest()
        assert status(answer) == 408
        assert "did not come within 0.2 s" in said(answer)


def test_so_is_one_that_follows_another(tmp_path: Path) -> None:
    with served(tmp_path, head_s=0.5) as (_, url), Caller(url) as slow:
        assert slow.ask_health() == 200
        slow.sendall(HEALTH[:-2])
        assert status(slow.rest()) == 408


def test_who_sends_a_byte_now_and_then_gains_no_time(tmp_path: Path) -> None:
    with served(tmp_path, head_s=0.3) as (_, url), Caller(url) as slow:
        slow.settimeout(0.02)
        slow.sendall(b"GET /")
        answer = b""
        with suppress(ConnectionError):
            while not answer:
                slow.sendall(b"x")
                with suppress(TimeoutError):
                    answer = slow.recv(65_536)
        assert status(answer) == 408


def test_a_body_that_never_comes_is_refused_and_nothing_is_done(tmp_path: Path) -> None:
    with served(tmp_path, body_s=0.2) as (service, url), Caller(url) as slow:
        slow.sendall(SUBMIT + SPEC[:-1])
        assert status(slow.rest()) == 408
        assert service.control.active == {}


def test_a_body_in_two_pieces_is_taken(tmp_path: Path) -> None:
    with served(tmp_path) as (_, url), Caller(url) as slow:
        slow.sendall(SUBMIT + SPEC[:-1])
        until(lambda: httpx.get(f"{url}/api/v1/health", timeout=300.0).status_code == 200)
        assert status(slow.ask(SPEC[-1:])) == 201


def test_a_connection_is_kept_between_requests_and_closed_when_none_follows(
    tmp_path: Path,
) -> None:
    with served(tmp_path, idle_s=1) as (_, url), Caller(url) as kept:
        assert kept.ask_health() == 200
        assert kept.ask_health() == 200
        assert kept.rest() == b""


def test_a_client_that_takes_nothing_of_a_plain_answer_is_dropped(tmp_path: Path) -> None:
    with served(tmp_path, taking_s=0.2) as (service, url), Caller(url) as slow:
        service.control.store.told = [Event(at=0.0, kind="trouble", text="y" * 20_000)] * 1000
        slow.sendall(b"GET /api/v1/events?limit=1000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert slow.recv(1) == b"H"
        until(lambda: connected(service) == 0)
        assert len(slow.rest()) < 1000 * 20_000


# Too large


@pytest.mark.parametrize("pieces", [1, 50])
def test_a_head_that_is_too_large_is_refused_in_one_piece_or_many(
    tmp_path: Path, pieces: int
) -> None:
    with served(tmp_path, head_bytes=2000) as (_, url), Caller(url) as large:
        large.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = HEALTH[:-2] + b"X-Long: " + b"x" * 3000 + b"\r\n\r\n"
        size = len(head) // pieces + 1
        with suppress(ConnectionError):
            for at in range(0, len(head), size):
                large.sendall(head[at : at + size])
        large.shutdown(socket.SHUT_WR)
        answer = large.rest()
        assert status(answer) == 431
        assert "expected at most 2,000 bytes" in said(answer)


def test_a_body_without_end_is_refused_though_nobody_reads_it(tmp_path: Path) -> None:
    with served(tmp_path, head_bytes=1000, body_bytes=100_000) as (_, url), Caller(url) as large:
        large.sendall(CHUNKED)
        with suppress(ConnectionError):
            for _ in range(20_000):
                large.sendall(b"800\r\n" + b" " * 2048 + b"\r\n")
        # How much of it was sent before the answer came is the system's affair.
        answer = large.rest()
        assert not answer or status(answer) == 413


# Nothing that fills the log


@pytest.mark.parametrize(
    "begun",
    [
        b"GET /api",
        SUBMIT,
        SUBMIT + SPEC[:-1],
        SUBMIT.replace(b"jobs", b"jobs/1/report"),
        b"GET /api/v1/events?limit=1000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        EVENTS,
    ],
)
def test_requests_that_break_off_are_no_trouble(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, begun: bytes
) -> None:
    with served(tmp_path) as (service, url):
        service.control.store.told = [Event(at=0.0, kind="trouble", text="y" * 2000)] * 1000
        state = service.server.server_state
        for _ in range(20):
            before = state.total_requests
            gone = Caller(url)
            gone.sendall(begun)
            if b"\r\n\r\n" in begun:  # it is being answered, or was
                until(partial(begun_to_be_answered, service, before))
            else:
                until(lambda: connected(service) > 0)
            gone.reset()
            until(lambda: connected(service) == 0 and not state.tasks)
        until(lambda: connected(service) == 0)
        assert httpx.get(f"{url}/api/v1/health", timeout=300.0).status_code == 200
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize(
    "asked", [b"", HEALTH, SUBMIT[:-31] + b"Transfer-Encoding: chunked\r\n\r\n"]
)
def test_what_is_no_http_is_told_so_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, asked: bytes
) -> None:
    with served(tmp_path) as (service, url):
        for _ in range(5):
            with Caller(url) as odd:
                odd.sendall(asked + b"\0\1\2 nonsense\r\n\r\n")
                answer = odd.rest()
                assert status(answer[answer.rindex(b"HTTP/1.1") :]) in (200, 400)
        with Caller(url) as odd:
            odd.sendall(EVENTS + b"\0\1\2 nonsense\r\n\r\n")
            assert status(odd.recv(65_536)) in (200, 400)
        until(lambda: connected(service) == 0)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    "head",
    [
        b"GET /api/v1/health HTTP/1.1\r\n\r\n",
        b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n",
        b"GET /api/v1/health HTTP/1.0\r\nHost: localhost\r\nHost: other\r\n\r\n",
        b"GET /api/v1/health HTTP/2.0\r\nHost: localhost\r\n\r\n",
        b"GET /api/v1/health HTTP/0.9\r\nHost: localhost\r\n\r\n",
    ],
)
def test_no_host_or_two_and_other_versions_are_no_requests(tmp_path: Path, head: bytes) -> None:
    with served(tmp_path) as (_, url), Caller(url) as odd:
        odd.sendall(head)
        assert status(odd.rest()) == 400
