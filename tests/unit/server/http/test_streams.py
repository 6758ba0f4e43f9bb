"""Answers that go on, over a real socket: events and logs as they happen, and how they end."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from boa.model.records import Event
from boa.scheduler.words.sentences import sentence
from boa.server.context import Service
from boa.server.http.limits import Limits
from boa.server.http.streams import Once
from boa.server.routes.events import event_chunks
from boa.store.base import StoreTrouble
from fakes import SECRET, FakeService
from local_runs import until
from replacing import KINDS, make

STREAM = {"Accept": "text/event-stream"}
SOON_S = 300.0
"""Only what never comes takes so long."""


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path)


@contextmanager
def listening(
    url: str, headers: dict[str, str] | None = None, **parameters: Any
) -> Iterator[Iterator[str]]:
    """Lines of a stream of events."""
    asked = {**STREAM, **(headers or {})}
    with httpx.stream(
        "GET", f"{url}/api/v1/events", headers=asked, params=parameters, timeout=300
    ) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(lines).startswith(":"), "something is said at once"
        next(lines)
        yield lines


def one(lines: Iterator[str]) -> tuple[int, str, dict[str, Any]]:
    """The next event: number, kind, document."""
    found = dict(line.split(": ", 1) for line in iter(lambda: next(lines), ""))
    return int(found["id"]), found["event"], json.loads(found["data"])


def test_events_come_as_they_happen(service: FakeService) -> None:
    service.control.tell("submitted", "before anybody listened")
    with service.serving() as url, listening(url) as lines:
        service.control.tell("started", "job 1 on 2×T4,\n\u2028 at last", job="1", width=2)
        number, kind, event = one(lines)  # before any heartbeat, which it could not read
        assert (number, kind) == (2, "started")
        assert event["text"] == "job 1 on 2×T4,\n\u2028 at last"
        assert (event["number"], event["job"], event["data"]) == (2, "1", {"width": 2})


@pytest.mark.parametrize("how", ["header", "parameter"])
def test_a_stream_goes_on_where_another_ended(service: FakeService, how: str) -> None:
    for n in range(5):
        service.control.tell("trouble", f"event {n + 1}")
    headers = {"Last-Event-ID": "2"} if how == "header" else {}
    asked = {} if how == "header" else {"after": 2}
    with service.serving() as url, listening(url, headers, **asked) as lines:
        assert [one(lines)[0] for _ in range(3)] == [3, 4, 5]


def test_a_stream_may_be_of_one_job(service: FakeService) -> None:
    for n in range(4):
        service.control.tell("trouble", "…", job=str(n % 2))
    with service.serving() as url, listening(url, after=0, job="1") as lines:
        assert [one(lines)[0] for _ in range(2)] == [2, 4]
        service.control.tell("trouble", "…", job="0")
        service.control.tell("trouble", "…", job="1")
        assert one(lines)[0] == 6


def test_an_event_names_whom_it_is_about_and_times_as_data(service: FakeService) -> None:
    data = {"name": "net", "jct_s": 7213.4, "cost_usd": 1.0, "exit_code": 0}
    text = sentence("succeeded", "1", None, data)
    service.control.tell("succeeded", text, job="1", **data)
    (event,) = service.get("events")["events"]
    assert set(event) == {"number", "at", "kind", "text", "parts", "job", "node", "data"}
    assert (event["kind"], event["text"]) == ("succeeded", text)
    assert event["data"] == data
    assert event["parts"] == [
        {"text": "job 1", "job": "1"},
        {"text": " (net) succeeded: "},
        {"text": "2 h", "seconds": 7213.4},
        {"text": " since submission, $1.00"},
    ]


def test_events_can_be_listed_too(service: FakeService) -> None:
    for n in range(5):
        service.control.tell("trouble", f"event {n + 1}", job=str(n % 2))

    def numbers(**asked: Any) -> list[int]:
        return [event["number"] for event in service.get("events", params=asked)["events"]]

    assert numbers() == [1, 2, 3, 4, 5]
    assert numbers(limit=2) == [4, 5], "the newest"
    assert numbers(after=1, limit=2) == [2, 3], "the next"
    assert numbers(job="1") == [2, 4]
    assert service.get("events", params={"after": 5}) == {"events": [], "last": 5}


@pytest.mark.parametrize("given", ["x", "-1", "1" * 30, "٣"])
def test_a_stream_cannot_go_on_from_what_is_no_number(service: FakeService, given: str) -> None:
    headers = {**STREAM, "Last-Event-ID": given.encode()}
    answer = service.ask("GET", "/api/v1/events", headers=headers)
    assert answer.status_code == 422
    assert "Last-Event-ID" in answer.json()["error"]["message"]


def chunks(service: FakeService, count: int, heartbeat_s: float) -> list[bytes]:
    context = Service(
        control=service.control,
        store=service.control.store,
        engine=service.engine,
        secret=SECRET,
        version="",
    )

    async def collect() -> list[bytes]:
        stream = event_chunks(context, 0, None, heartbeat_s)
        return [await anext(stream) for _ in range(count)]

    return asyncio.run(collect())


def test_where_nothing_happens_a_comment_says_that_the_server_is_there(
    service: FakeService,
) -> None:
    said = chunks(service, 4, heartbeat_s=0.01)
    assert all(chunk.startswith(b":") and chunk.endswith(b"\n\n") for chunk in said)


def test_many_old_events_come_in_pieces_that_end(service: FakeService) -> None:
    service.control.store.told = [Event(at=0.0, kind="trouble", text="…")] * 2500
    said = b"".join(chunks(service, 4, heartbeat_s=60))
    assert said.count(b"id: ") == 2500
    assert b"id: 2500\n" in said


def test_a_store_in_trouble_only_delays_events(service: FakeService) -> None:
    with service.serving() as url, listening(url) as lines:
        service.control.store.trouble = StoreTrouble("locked")
        service.control.tell("trouble", "…")
        assert service.control.store.failed.wait(SOON_S)
        service.control.store.trouble = None
        assert one(lines)[0] == 1


# Logs


def test_a_log_is_all_runs_of_rank_0_after_one_another(service: FakeService) -> None:
    job = service.submit()
    for attempt, rank in ((1, 0), (1, 1), (2, 0), (10, 0)):
        service.engine.write(job, f"run {attempt} rank {rank}\n", attempt=attempt, rank=rank)

    def read(**asked: int) -> httpx.Response:
        return service.ask("GET", f"/api/v1/jobs/{job}/logs", params=asked)

    assert read().text == "run 1 rank 0\nrun 2 rank 0\nrun 10 rank 0\n"
    assert read().headers["content-type"] == "text/plain; charset=utf-8"
    assert read(rank=1).text == "run 1 rank 1\n"
    assert read(attempt=2).text == "run 2 rank 0\n"
    assert read(skip=13).text == "run 2 rank 0\nrun 10 rank 0\n"
    refused = read(rank=7)
    assert refused.status_code == 422
    assert "one that has a log: 0, 1" in refused.json()["error"]["message"]
    assert read(attempt=3).status_code == 422


def test_a_job_that_has_printed_nothing_has_an_empty_log(service: FakeService) -> None:
    job = service.submit()
    answer = service.ask("GET", f"/api/v1/jobs/{job}/logs")
    assert (answer.status_code, answer.text) == (200, "")


@pytest.mark.parametrize(
    ("tail", "expected"),
    [(0, ""), (1, "four"), (2, "three\nfour"), (3, "two\nthree\nfour")]
    + [(many, "one\ntwo\nthree\nfour") for many in (4, 5, 100)],
)
def test_the_last_lines_are_found_across_runs(
    service: FakeService, tail: int, expected: str
) -> None:
    job = service.submit()
    service.engine.write(job, "one\ntwo\n", attempt=1)
    service.engine.write(job, "three\nfour", attempt=2)
    answer = service.ask("GET", f"/api/v1/jobs/{job}/logs", params={"tail": tail})
    assert answer.text == expected
    assert int(answer.headers["boa-log-offset"]) == 18 - len(expected)


def test_the_last_lines_of_a_long_log_are_found_from_its_end(service: FakeService) -> None:
    job = service.submit()
    text = "".join(f"line {n}\n" for n in range(50_000))
    service.engine.write(job, text)
    asked = {"tail": 20_000}
    answer = service.ask("GET", f"/api/v1/jobs/{job}/logs", params=asked)
    assert answer.text.splitlines() == text.splitlines()[-20_000:]
    whole = service.ask("GET", f"/api/v1/jobs/{job}/logs").text
    assert whole == text


def test_a_log_is_followed_over_rescalings_until_the_job_ends(service: FakeService) -> None:
    job = service.submit()
    service.engine.write(job, "old\n")
    got = ""
    with (
        service.serving() as url,
        httpx.stream("GET", f"{url}/api/v1/jobs/{job}/logs?follow=true&tail=0", timeout=300) as log,
    ):
        pieces = log.iter_text()
        for attempt in (1, 2, 3):
            service.engine.write(job, f"run {attempt}\n", attempt=attempt)
            got += next(pieces)
        service.engine.write(job, "last words\n", attempt=3)
        service.control.end(job, "succeeded", exit_code=0)
        got += "".join(pieces)
    assert got == "run 1\nrun 2\nrun 3\nlast words\n"


def test_a_log_that_is_turned_over_while_it_is_followed_is_read_on(service: FakeService) -> None:
    job = service.submit()
    service.engine.write(job, "first part\n")
    with (
        service.serving() as url,
        httpx.stream("GET", f"{url}/api/v1/jobs/{job}/logs?follow=true", timeout=300) as log,
    ):
        pieces = log.iter_text()
        got = next(pieces)
        service.engine.write(job, "its end\n")
        service.engine.turn_over(job)
        service.engine.write(job, "second part\n")
        service.control.end(job, "succeeded", exit_code=0)
        got += "".join(pieces)
    assert got == "first part\nits end\nsecond part\n"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("asked", ["", "?tail=5", "?follow=true", "?skip=3"])
def test_what_a_job_put_in_the_place_of_its_log_is_refused_at_once(
    service: FakeService, kind: str, asked: str
) -> None:
    job = service.submit()
    service.engine.write(job, "first\n")
    service.engine.write(job, "second\n", attempt=2)
    make(kind, service.folder / job / "2-0-1.log")
    with service.serving() as url:
        refused = httpx.get(f"{url}/api/v1/jobs/{job}/logs{asked}", timeout=SOON_S)
        assert refused.status_code == 409
        assert "the log of attempt 2, rank 0 is a" in refused.json()["error"]["message"]
        other = httpx.get(f"{url}/api/v1/jobs/{job}/logs", params={"attempt": 1})
        assert other.text == "first\n"


def test_a_folder_of_logs_that_is_a_link_is_refused_too(service: FakeService) -> None:
    job = service.submit()
    service.engine.write("elsewhere", "another's\n")
    (service.folder / job).symlink_to(service.folder / "elsewhere")
    answer = service.ask("GET", f"/api/v1/jobs/{job}/logs")
    assert answer.status_code == 409
    assert "another's" not in answer.text


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_that_is_replaced_while_it_is_followed_ends_with_its_job(
    service: FakeService, kind: str
) -> None:
    job = service.submit()
    service.engine.write(job, "first\n")
    with (
        service.serving() as url,
        httpx.stream("GET", f"{url}/api/v1/jobs/{job}/logs?follow=true", timeout=300) as log,
    ):
        pieces = log.iter_text()
        got = next(pieces)
        make(kind, service.folder / job / "1-0-1.log")
        make(kind, service.folder / job / "2-0-1.log") if kind != "link to a pipe" else None
        assert httpx.get(f"{url}/api/v1/health", timeout=SOON_S).status_code == 200
        service.control.end(job, "succeeded", exit_code=0)
        got += "".join(pieces)
    assert got == "first\n"


# Ends


def test_the_server_ends_soon_however_many_listen(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boa.server.http.run.GRACE_S", SOON_S)  # all end by themselves
    job = service.submit()
    with service.serving() as url:
        clients = [httpx.Client(base_url=url, timeout=300) for _ in range(6)]
        streams = [
            client.send(
                client.build_request("GET", path, headers=STREAM if "events" in path else {}),
                stream=True,
            )
            for client, path in zip(
                clients, ["/api/v1/events", f"/api/v1/jobs/{job}/logs?follow=true"] * 3, strict=True
            )
        ]
    for stream, client in zip(streams, clients, strict=True):
        assert stream.read() is not None, "a clean end, not a broken connection"
        stream.close()
        client.close()


def test_a_client_that_takes_nothing_is_dropped(tmp_path: Path) -> None:
    service = FakeService(tmp_path, limits=Limits(taking_s=0.3))
    service.control.store.told = [Event(at=0.0, kind="trouble", text="y" * 5000)] * 8000
    with service.serving() as url:
        port = httpx.URL(url).port or 0
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        connection.sendall(
            b"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Accept: text/event-stream\r\n\r\n"
        )
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        until(lambda: len(service.server.premises.crowd) == 0)
        connection.settimeout(60)
        got = 0
        with suppress(ConnectionResetError):
            while part := connection.recv(1 << 20):
                got += len(part)
        connection.close()
    assert got < 8000 * 5000 / 2, "the stream was cut off, not kept for whenever it is taken"


def test_an_event_is_read_once_for_all_who_listen(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = Service(
        control=service.control,
        store=service.control.store,
        engine=service.engine,
        secret=SECRET,
        version="",
    )
    service.control.tell("submitted", "one")
    asked: list[int] = []
    real = service.control.store.events

    def events(**which: Any) -> Any:
        asked.append(which["after"])
        return real(**which)

    monkeypatch.setattr(service.control.store, "events", events)

    async def collect() -> list[bytes]:
        streams = [event_chunks(context, 0, None) for _ in range(30)]
        for stream in streams:
            await anext(stream)
        return list(await asyncio.gather(*(anext(stream) for stream in streams)))

    said = asyncio.run(collect())
    assert (len(said), len(set(said)), asked) == (30, 1, [0])


def test_what_could_not_be_made_is_tried_again() -> None:
    once: Once[int] = Once()
    tries: list[int] = []

    def make() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise StoreTrouble("locked")
        return 7

    async def ask() -> int:
        with pytest.raises(StoreTrouble):
            await once.of("key", make)
        return await once.of("key", make)

    assert asyncio.run(ask()) == 7
