"""Lines of a log that events, jobs and classes carry: for who may read that log alone."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from boa.model.access import Caller, Role
from boa.model.records import Event
from boa.scheduler.words.sentences import sentence, without_log
from boa.server.context import Service
from boa.server.routes.events import event_chunks
from fakes import NOW, SECRET, FakeService
from learned import learned, learned_on
from unit.server.http.test_roles import ask, service, submitted

assert service  # a fixture

LINE = "RuntimeError: the patient's name is not in the table"
READERS = {"mia": 1, "max": 1, "ada": 1, "own": 1, "otto": 0, "solo": 0, "vera": 0}
FAILED = {
    "name": "a",
    "jct_s": 60.0,
    "cost_usd": 1.0,
    "exit_code": 1,
    "why": "exit_code",
    "failures": 1,
    "said": LINE,
}


def fail(made: FakeService, job: str) -> None:
    text = sentence("failed", job, None, FAILED)
    assert LINE in text
    made.control.tell("failed", text, job=job, **FAILED)
    record = made.control.end(job, "failed", exit_code=1)
    made.control.put(replace(record, reason="exit code 1", said=LINE))


@pytest.mark.parametrize("who", READERS)
def test_a_line_of_a_log_is_told_to_who_may_read_the_log_alone(
    service: FakeService, who: str
) -> None:
    job = submitted(service, "mia")
    fail(service, job)
    kind = learned_on("T4")
    kind["failed"] = [
        {
            "width": 2,
            "across_nodes": False,
            "times": 1,
            "reason": "exit code 1",
            "said": LINE,
            "at": NOW,
            "job": job,
            "again_at": None,
        }
    ]
    service.control.documents = {"a": learned("a", [kind])}
    for path in ("events", f"events?job={job}", f"jobs/{job}", "classes/a"):
        answer = ask(service, who, "GET", path)
        assert answer.status_code == 200
        assert (LINE in answer.text) == bool(READERS[who]), path
        assert "exit code 1" in answer.text, "the rest is told to everybody"
    for path in ("jobs?all=true", "live", f"jobs/{job}/history"):
        assert LINE not in ask(service, who, "GET", path).text, "lists are the same for all"


@pytest.mark.parametrize(
    ("caller", "reads"),
    [
        (Caller(name="mia", role="member", team="vision"), True),
        (Caller(name="max", role="member", team="vision"), True),
        (Caller(name="x", role="admin"), True),
        (Caller(name="vera", role="viewer", team="vision"), False),
        (Caller(name="otto", role="member", team="speech"), False),
    ],
)
def test_streams_that_share_their_events_still_tell_everybody_only_his_own(
    service: FakeService, caller: Caller, reads: bool
) -> None:
    fail(service, submitted(service, "mia"))
    made = Service(
        control=service.control,
        store=service.control.store,
        engine=service.engine,
        secret=SECRET,
        version="test",
    )

    async def first(to: Caller) -> bytes:
        stream = event_chunks(made, 0, None, to=to)
        await anext(stream)
        return await anext(stream)

    async def both() -> tuple[bytes, bytes, bytes]:
        stranger = Caller(name="nobody", role="viewer")
        return await asyncio.gather(first(stranger), first(caller), first(stranger))

    before, mine, after = asyncio.run(both())
    assert LINE.encode() not in before + after
    assert (LINE.encode() in mine) == reads
    assert mine.count(b"event: failed") == before.count(b"event: failed") == 2


def test_an_event_of_another_version_hides_the_line_as_well() -> None:
    data = {"said": LINE, "unheard": 1}
    event = Event(at=0.0, kind="retry", text=f"job 1: {LINE}; again", job="1", data=data)
    hidden = without_log(event)
    assert LINE not in repr(hidden)
    assert without_log(hidden) is hidden


def test_roles_below_member_read_no_lines_even_of_their_own() -> None:
    from boa.server.http.log_readers import may_read

    roles: list[tuple[Role, bool]] = [("viewer", False), ("member", True), ("admin", True)]
    job: Any = type("Job", (), {"owner": "mia", "team": ""})()
    for role, may in roles:
        assert may_read(Caller(name="mia", role=role), job) == may
