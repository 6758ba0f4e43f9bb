"""Everything that a page watches, over a real socket: at once, then as it changes."""

import asyncio
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool

from boa.api import answers
from boa.model.job import JobSpec
from boa.runtime.snapshot import Snapshot
from boa.server.context import Service
from boa.server.routes import live
from boa.server.routes.live import live_chunks
from boa.store.base import StoreTrouble
from fakes import NOW, SECRET, FakeControl, FakeService
from unit.server.routes.test_money import plan_state

STREAM = {"Accept": "text/event-stream"}
SOON_S = 300.0
"""Only what never comes takes so long."""
Message = dict[str, Any]


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path)


@contextmanager
def watching(url: str, headers: dict[str, str] | None = None) -> Iterator[Iterator[Message]]:
    asked = {**STREAM, **(headers or {})}
    with httpx.stream("GET", f"{url}/api/v1/live", headers=asked, timeout=SOON_S) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield messages(answer.iter_lines())


def messages(lines: Iterator[str]) -> Iterator[Message]:
    for line in lines:
        if line:
            assert line.startswith("data: ")
            yield checked(json.loads(line.removeprefix("data: ")))


def checked(message: Message) -> Message:
    """As promised, to the letter."""
    TypeAdapter(answers.Live).validate_python(message, strict=True)
    return message


def until_complete(found: Iterator[Message]) -> list[Message]:
    said = [next(found)]
    while not said[-1]["complete"]:
        said.append(next(found))
    return said


def until(found: Iterator[Message], key: str) -> Message:
    """The next message that has it."""
    deadline = time.monotonic() + SOON_S
    for message in found:
        if key in message:
            return message
        assert time.monotonic() < deadline, f"no {key}: {message}"
    raise AssertionError("the stream has ended")


def test_all_of_it_in_one_answer(service: FakeService) -> None:
    for _ in range(3):
        service.submit()
    service.control.run("1")
    service.control.plan = plan_state()
    live = checked(service.get("live"))
    assert [job["id"] for job in live["jobs"]] == ["3", "2", "1"]
    assert live["jobs"] == service.get("jobs")["jobs"]
    assert live["nodes"] == service.get("nodes")["nodes"]
    judged = {"needed_per_hour", "warnings"}
    budget = {k: v for k, v in service.get("budget").items() if k not in judged}
    assert live["budget"] == budget, "all but what looks at every job"
    assert (live["complete"], live["plan"], live["last_event"]) == (True, 3, 3)
    assert live["counts"] == {"waiting": 2, "running": 1}
    assert (live["version"], live["speed"], live["now"]) == ("1.2.3", 1.0, NOW)


def test_a_stream_begins_with_figures_and_goes_on_with_rows(service: FakeService) -> None:
    service.submit()
    service.control.run("1")
    with service.serving() as url, watching(url) as found:
        first, rows = until_complete(found)
    assert first.keys() == {
        *("now", "complete", "speed", "version", "budget", "plan", "last_event", "counts")
    }
    assert (first["plan"], first["counts"]) == (None, {"running": 1})
    assert rows.keys() == {"now", "complete", "jobs", "nodes"}
    assert rows["jobs"][0]["cost_usd"] == pytest.approx(2.0)
    assert rows["nodes"][0]["held"] == [{"job": "1", "node": 1, "gpus": 2}]


def test_where_there_is_nothing_the_stream_says_so_at_once(service: FakeService) -> None:
    with service.serving() as url, watching(url) as found:
        assert [message["complete"] for message in until_complete(found)] == [False, True]


def test_changes_come_as_they_happen(service: FakeService) -> None:
    for _ in range(2):
        service.submit()
    service.control.run("2")
    with service.serving() as url, watching(url) as found:
        until_complete(found)
        record = service.control.active["2"]
        service.control.put(replace(record, epoch=4))
        news = until(found, "jobs")
        assert [(job["id"], job["epoch"]) for job in news["jobs"]] == [("2", 4)]
        service.submit()
        news = until(found, "jobs")
        assert [job["id"] for job in news["jobs"]] == ["3"]
        assert (news["counts"], news["last_event"]) == ({"waiting": 2, "running": 1}, 3)
        service.control.rent(9)
        assert [node["id"] for node in until(found, "nodes")["nodes"]] == [9]
        del service.control.nodes[9]
        assert until(found, "gone")["gone"] == [9]
        service.control.plan = plan_state()
        assert until(found, "plan")["plan"] == 3


def test_a_job_that_ends_is_told_with_its_end(service: FakeService) -> None:
    service.submit()
    with service.serving() as url, watching(url) as found:
        until_complete(found)
        service.control.end("1", "failed", exit_code=3)
        news = until(found, "jobs")
        (job,) = news["jobs"]
        assert (job["state"], job["exit_code"], job["ended_at"]) == ("failed", 3, NOW)
        assert news["counts"] == {}


def test_a_store_in_trouble_only_delays_the_end_of_a_job(service: FakeService) -> None:
    service.submit()
    with service.serving() as url, watching(url) as found:
        until_complete(found)
        service.control.store.trouble = StoreTrouble("locked")
        service.control.end("1", "succeeded", exit_code=0)
        assert "jobs" not in until(found, "counts")
        service.control.store.trouble = None
        assert until(found, "jobs")["jobs"][0]["state"] == "succeeded"


def test_a_change_of_the_budget_is_told_soon(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    unasked = partial(live_chunks, heartbeat_s=math.inf)  # a heartbeat would tell it anyhow
    monkeypatch.setattr("boa.server.routes.live.live_chunks", unasked)
    with service.serving() as url, watching(url) as found:
        until_complete(found)
        service.control.set_budget(99.0)
        service.control.tell("budget", "the budget is $99/h")  # as the control loop does
        assert until(found, "budget")["budget"]["budget_per_hour"] == 99.0


def collected(
    service: FakeService, count: int, *, every_s: float, heartbeat_s: float
) -> list[Message]:
    context = Service(
        control=service.control,
        store=service.control.store,
        engine=service.engine,
        secret=SECRET,
        version="",
    )

    async def collect() -> list[bytes]:
        stream = live_chunks(context, every_s, heartbeat_s)
        return [await anext(stream) for _ in range(count)]

    said = asyncio.run(collect())
    return [checked(json.loads(chunk.removeprefix(b"data: "))) for chunk in said]


def test_where_nothing_happens_a_message_says_that_the_server_is_there(
    service: FakeService,
) -> None:
    said = collected(service, 4, every_s=0.01, heartbeat_s=0.02)
    for beat in said[2:]:
        assert beat.keys() == {"now", "complete", "budget", "counts"}


def test_the_budget_comes_now_and_then_however_much_changes(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.submit()
    real = vars(FakeControl)["snapshot"].fget

    def restless(control: FakeControl) -> Snapshot:
        record = control.active["1"]
        control.active["1"] = replace(record, progress=record.progress + 1)
        found: Snapshot = real(control)
        return found

    monkeypatch.setattr(FakeControl, "snapshot", property(restless))
    said = collected(service, 8, every_s=0.01, heartbeat_s=0.02)
    assert all("jobs" in message for message in said[2:])
    assert any("budget" in message for message in said[2:])


def test_many_jobs_come_in_pieces(service: FakeService) -> None:
    service.submit()
    record = service.control.active["1"]
    for n in range(2, 1602):
        service.control.put(replace(record, id=str(n)))
    first, *pieces = collected(service, 5, every_s=60, heartbeat_s=60)
    assert first["counts"] == {"waiting": 1601}
    assert len(json.dumps(first)) < 1000, "what is painted first is small"
    assert [len(piece["jobs"]) for piece in pieces] == [500, 500, 500, 101]
    assert [piece["complete"] for piece in pieces] == [False, False, False, True]
    told = [int(job["id"]) for piece in pieces for job in piece["jobs"]]
    assert told == list(range(1601, 0, -1))


def test_thousands_of_ends_at_once_are_looked_up_bit_by_bit(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boa.server.routes.live.MOST_ENDED", 3)
    for _ in range(8):
        service.submit()
    with service.serving() as url, watching(url) as found:
        until_complete(found)
        for n in range(8):
            service.control.end(str(n + 1), "stopped", exit_code=0)
        told: list[str] = []
        while len(told) < 8:
            rows = until(found, "jobs")["jobs"]
            assert len(rows) <= 3
            told += [job["id"] for job in rows]
    assert sorted(told) == [str(n + 1) for n in range(8)]


def test_the_stream_ends_with_the_server(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boa.server.http.run.GRACE_S", SOON_S)  # it ends by itself
    with httpx.Client(timeout=SOON_S) as client:
        with service.serving() as url:
            request = client.build_request("GET", f"{url}/api/v1/live", headers=STREAM)
            stream = client.send(request, stream=True)
            lines = stream.iter_lines()
            assert '"complete":false' in next(lines)
        for _ in lines:
            pass  # to a clean end, not a broken connection


@pytest.mark.parametrize("accept", [{}, STREAM])
def test_nothing_is_shown_to_who_has_no_token(tmp_path: Path, accept: dict[str, str]) -> None:
    service = FakeService(tmp_path, token="a token of the tests")
    for sent in ({}, {"Authorization": "Bearer wrong"}):
        answer = service.ask("GET", "/api/v1/live", headers={**accept, **sent})
        assert answer.status_code == 401
        assert answer.json()["error"]["exit_code"]
    right = {"Authorization": "Bearer a token of the tests"}
    assert service.get("live", headers=right)["complete"] is True
    with service.serving() as url, watching(url, right) as found:
        assert next(found)["version"] == "1.2.3"


def test_a_misspelt_parameter_is_refused(service: FakeService) -> None:
    assert service.ask("GET", "/api/v1/live", params={"job": "1"}).status_code == 422


def test_a_change_is_spelled_once_for_all_who_watch(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = Service(
        control=service.control,
        store=service.control.store,
        engine=service.engine,
        secret=SECRET,
        version="",
    )
    service.submit()
    made: list[bytes] = []
    real = live.spelled

    def spelled(message: answers.Live) -> bytes:
        made.append(real(message))
        return made[-1]

    monkeypatch.setattr(live, "spelled", spelled)

    async def collect() -> list[list[bytes]]:
        streams = [live_chunks(context, 0.05, math.inf) for _ in range(20)]
        first = [[await anext(stream), await anext(stream)] for stream in streams]
        later = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0)
        service.control.submit(JobSpec(job_class="a", run=("true",)))
        news = await asyncio.gather(*later)
        return [[*begun, last] for begun, last in zip(first, news, strict=True)]

    said = asyncio.run(collect())
    assert all(one == said[0] for one in said)
    assert [json.loads(part[6:])["complete"] for part in said[0]] == [False, True, True]
    assert len(made) < 20


def test_news_that_come_while_somebody_looks_for_what_he_missed_reach_him(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = Service(
        control=service.control,
        store=service.control.store,
        engine=service.engine,
        secret=SECRET,
        version="",
    )
    service.submit()
    late: list[object] = []

    async def slow(call: Any, *given: Any) -> Any:
        """Whoever looks first has all others told of another job before he is answered."""
        found = await run_in_threadpool(call, *given)
        (told,) = context.shared.values()
        if not late and call.__self__ is not told._teller:
            late.append(service.control.submit(JobSpec(job_class="a", run=("true",))))
            while not told.number:
                await asyncio.sleep(0)
        return found

    async def watched() -> bytes:
        stream = live_chunks(context, 0.001, math.inf)
        assert [await anext(stream), await anext(stream)]
        monkeypatch.setattr(live, "run_in_threadpool", slow)
        return await asyncio.wait_for(anext(stream), 60.0)

    news = json.loads(asyncio.run(watched())[6:])
    assert [row["class"] for row in news["jobs"]] == ["a"]
