"""`boa token` and `boa audit`: tokens given out and taken back, and who did what."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from boa.cli.live.audit import changed
from boa.model.access import AuditEntry
from fakes import FakeService
from integration.runner import Boa

OWN = "the-service-s-own-token-7731"


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeService]:
    service = FakeService(tmp_path / "service", token=OWN)
    with service.serving() as url:
        monkeypatch.setenv("BOA_SERVER", url)
        monkeypatch.setenv("BOA_TOKEN", OWN)
        yield service


def test_a_token_is_printed_once_works_at_once_and_is_taken_back(
    run: Boa, guarded: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run("token", "add", "alice", "--role", "member", "--team", "vision", "--expires", "30d")
    token = said.strip()
    assert "not shown again" in run.err
    (listed,) = run.json("token", "list")["tokens"]
    assert (listed["name"], listed["role"], listed["team"]) == ("alice", "member", "vision")
    assert listed["expires_at"] == pytest.approx(time.time() + 30 * 86_400, abs=600)
    for shown in (run("token", "list"), json.dumps(listed)):
        assert "alice" in shown
        assert token not in shown
    monkeypatch.setenv("BOA_TOKEN", token)
    job = run("submit", "--class", "a", "--", "true").strip()
    (row,) = run.json("ps")["jobs"]
    assert (row["owner"], row["team"]) == ("alice", "vision")
    assert "alice, of team vision" in run("show", job)
    run("budget", "set", 3, code=2)
    assert "alice has the role member" in run.err
    assert "needs the role admin" in run.err
    monkeypatch.setenv("BOA_TOKEN", OWN)
    assert run("token", "revoke", "alice") == "alice: revoked\n"
    monkeypatch.setenv("BOA_TOKEN", token)
    run("ps", code=2)
    assert token not in run.err


def test_show_prints_where_the_page_opens_signed_in(run: Boa, guarded: FakeService) -> None:
    assert run("token", "show").strip().endswith(f"/#token={OWN}")
    assert "signed in as admin" in run.err
    assert run.json("token", "show")["role"] == "admin"


def test_show_has_nothing_to_show_where_no_token_is_wanted(run: Boa, service: FakeService) -> None:
    run("token", "show", code=2)
    assert "wants no token" in run.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "alice"], "--role"),
        (["add", "alice", "--role", "king"], "--role: got 'king'"),
        (["add", "alice", "--role", "viewer", "--expires", "soon"], "--expires: got 'soon'"),
        (["add", "two words", "--role", "viewer"], "name: got 'two words'"),
        (["revoke", "nobody"], "name: got 'nobody'"),
    ],
)
def test_a_bad_wish_is_one_clear_error(
    run: Boa, guarded: FakeService, words: list[str], said: str
) -> None:
    run("token", *words, code=2)
    assert said in run.err


def test_the_audit_log_is_listed_newest_first_by_time_and_by_who(
    run: Boa, guarded: FakeService
) -> None:
    assert "nothing was changed" in run("audit")
    now = time.time()

    def line(what: str, ago_s: float, **fields: object) -> AuditEntry:
        given = {"who": "alice", "role": "member", "address": "10.0.0.7", **fields}
        return AuditEntry(at=now - ago_s, what=what, **given)  # type: ignore[arg-type]

    guarded.control.store.audited += [
        line("stop", 7200, subject="17"),
        line("budget", 60, who="bob", before={"budget_per_hour": 4}, after={"budget_per_hour": 5}),
        line("refused", 5, who="", role="", subject="GET /api/v1/jobs", result="401", count=1200),
    ]
    said = run("audit").splitlines()
    assert [row.split()[2] for row in said[1:]] == ["nobody", "bob", "alice"]
    assert "budget_per_hour $4 → $5" in said[2]
    assert "refused ×1,200" in said[1]
    found = run.json("audit", "--since", "1h", "--who", "bob")["lines"]
    assert [one["what"] for one in found] == ["budget"]
    assert len(run.json("audit", "--limit", 2)["lines"]) == 2
    run("audit", "--since", "soon", code=2)
    assert "--since" in run.err


def test_a_change_is_told_in_words_and_times_as_times() -> None:
    assert changed({"cap": 30.0, "team": "a"}, {"cap": None, "team": ""}) == (
        "cap 30.0 → none, team a → none"
    )
    assert re.fullmatch(
        r"revoked_at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", changed(None, {"revoked_at": 1.8e9})
    )
    assert changed(None, {"role": "viewer", "team": "", "expires_at": None}) == "role viewer"
    assert changed(None, {"jobs": 2, "classes": ["a", "b"]}) == "jobs 2, classes a b"
