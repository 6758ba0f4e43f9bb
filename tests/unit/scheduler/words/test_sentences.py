"""Events are data, and every kind of them words itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.events import FIELDS, KINDS, EventKind, FailureCode, has_its_fields
from boa.model.records import Event
from boa.model.runs import RunEvent, RunKey
from boa.scheduler.lifecycle import _failure
from boa.scheduler.words.of_jobs import failure
from boa.scheduler.words.pieces import Part
from boa.scheduler.words.sentences import WORDS, parts, sentence
from boa.store.codec import event_of, event_row
from said import SAID


def event(kind: EventKind, data: dict[str, Any]) -> Event:
    text = sentence(kind, "3", 8, data)
    return Event(at=0.0, kind=kind, text=text, job="3", node=8, data=data)


def codes(kind: EventKind) -> set[str]:
    """Why an event of this kind can happen."""
    return set(_strings(get_type_hints(FIELDS[kind]).get("why")))


def _strings(hint: Any) -> Iterator[str]:
    for part in get_args(hint):
        if isinstance(part, str):
            yield part
        else:
            yield from _strings(part)


@pytest.mark.parametrize(("kind", "data", "said"), SAID, ids=lambda value: str(value)[:40])
def test_a_sentence_is_made_from_the_fields(
    kind: EventKind, data: dict[str, Any], said: str
) -> None:
    assert has_its_fields(kind, data)
    assert sentence(kind, "3", 8, data) == said


def test_every_kind_has_fields_and_words() -> None:
    assert set(KINDS) == FIELDS.keys() == WORDS.keys()
    assert {kind for kind, _, _ in SAID} == set(KINDS), "each stands above"


def test_every_code_is_worded_above() -> None:
    starts = {"started", "rescaled", "restarted"}
    for kind in KINDS:
        alike = starts if kind in starts else {kind}
        told = {data["why"] for of, data, _ in SAID if of in alike and "why" in data}
        assert codes(kind) - {"engine", "exit_code", "processes_lost"} <= told, kind
    told = {data["why"] for kind, data, _ in SAID if kind in ("failed", "retry")}
    assert codes("retry") <= told


@given(st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_an_event_with_its_fields_always_words_itself(kind: EventKind, data: st.DataObject) -> None:
    found = event(kind, dict(data.draw(st.from_type(FIELDS[kind]))))
    assert found.text
    pieces = parts(found)
    assert "".join(piece.text for piece in pieces) == found.text
    assert all(piece.text for piece in pieces)
    named = {found.data.get("for_job"), found.data.get("by_job"), *found.data.get("moved", ())}
    assert {piece.job for piece in pieces} <= {None, "3", *named}
    assert {piece.node for piece in pieces} <= {None, 8}


def test_parts_name_whom_and_how_long_without_being_read() -> None:
    data = {"name": "job 9 (7 s)", "jct_s": 7213.4, "cost_usd": 1.0, "exit_code": 0}
    assert parts(event("succeeded", data)) == [
        Part("job 3", job="3"),
        Part(" (job 9 (7 s)) succeeded: "),
        Part("2 h", seconds=7213.4),
        Part(" since submission, $1.00"),
    ]


def test_what_an_older_version_said_is_shown_as_it_was() -> None:
    old = Event(at=0.0, kind="succeeded", text="job 3 succeeded, hooray", job="3")
    assert parts(old) == [Part("job 3 succeeded, hooray")], "it had no fields"
    data = {"name": "net", "jct_s": 60.0, "cost_usd": 1.0, "exit_code": 0}
    other_words = Event(at=0.0, kind="succeeded", text="job 3 is done", job="3", data=data)
    assert parts(other_words) == [Part("job 3 is done")], "nor is anything reworded"


def test_a_kind_that_only_another_version_knows_is_still_shown() -> None:
    row = event_row(1, Event(at=0.0, kind="trouble", text="the budget is paced", job="3"))
    foreign = {**row, "record": row["record"].replace('"trouble"', '"pacing"')}
    read = event_of(foreign)
    assert (read.kind, read.text, read.job) == ("other", "the budget is paced", "3")
    assert parts(read) == [Part("the budget is paced")]


@pytest.mark.parametrize(
    ("exit_code", "reason", "code", "detail", "said"),
    [
        (3, "exit code 3", "exit_code", {}, "exit code 3"),
        (3, "", "exit_code", {}, "exit code 3"),
        (-9, "killed", "exit_code", {"detail": "killed"}, "killed"),
        (None, "", "processes_lost", {}, "its processes were lost"),
        (None, "no such file", "engine", {"detail": "no such file"}, "no such file"),
    ],
)
def test_why_a_run_failed_is_a_code_with_the_engines_words_where_they_say_more(
    exit_code: int | None, reason: str, code: FailureCode, detail: dict[str, str], said: str
) -> None:
    ended = RunEvent(key=RunKey("3", 1), ended=True, exit_code=exit_code, reason=reason)
    assert _failure(ended) == (code, detail)
    assert failure(code, exit_code, detail.get("detail", "")) == said


def test_every_kind_field_and_code_is_documented() -> None:
    page = (Path(__file__).parents[4] / "docs" / "api.md").read_text("utf-8")
    for kind in KINDS:
        for name in {kind, *FIELDS[kind].__annotations__, *codes(kind)}:
            assert f"`{name}`" in page, (kind, name)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("node_lost", {"gpu_type": "T4", "why": "spot_reclaimed"}),
        ("clock", {"by_s": "no number"}),
    ],
)
def test_an_event_that_only_a_newer_version_could_word_keeps_its_own_words(
    kind: EventKind, data: dict[str, Any]
) -> None:
    event = Event(at=1.0, kind=kind, text="newer words", node=3, data=data)
    assert parts(event) == [Part("newer words")]
