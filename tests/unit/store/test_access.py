"""Tokens and the audit log in the store: with the change, for long, and never the token itself."""

from collections.abc import Iterator

import pytest

from boa.model.access import AuditEntry, TokenRecord
from boa.store import writing
from boa.store.base import Store, StoreTrouble
from boa.store.sql import open_store
from postgresql import Database
from stored import changes, job

pytest_plugins = ("postgresql",)
ALICE = TokenRecord(
    name="alice", role="member", digest="ab" * 32, team="vision", created_at=5.0, created_by="admin"
)


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    opened = open_store(database.url)
    yield opened
    opened.close()


def line(what: str, **fields: object) -> AuditEntry:
    given = {"at": 10.0, "who": "alice", "role": "member", "address": "10.0.0.7", **fields}
    return AuditEntry(what=what, **given)  # type: ignore[arg-type]


def whats(store: Store, **asked: object) -> list[str]:
    return [stored.entry.what for stored in store.audit(**asked)]  # type: ignore[arg-type]


def test_tokens_and_audit_lines_are_there_after_a_restart(database: Database) -> None:
    said = line("budget", before={"budget_per_hour": 4.0}, after={"budget_per_hour": 5.0})
    store = open_store(database.url)
    store.commit(changes(tokens={"alice": ALICE}, audit=[said]))
    store.close()
    store = open_store(database.url)
    assert store.tokens() == [ALICE]
    assert [stored.entry for stored in store.audit()] == [said]
    store.commit(changes(audit=[line("stop", who="nul \0 and ü")]))
    assert [stored.number for stored in store.audit()] == [2, 1]
    assert whats(store, who="nul \0 and ü") == ["stop"]
    store.close()


def test_lines_are_found_newest_first_by_time_by_who_and_page_by_page(store: Store) -> None:
    who = ["alice", "bob"]
    said = [line(str(n), at=float(n), who=who[n % 2]) for n in range(1, 8)]
    store.commit(changes(audit=said))
    assert whats(store) == ["7", "6", "5", "4", "3", "2", "1"]
    assert whats(store, since=5.0) == ["7", "6", "5"]
    assert whats(store, who="alice") == ["6", "4", "2"]
    assert whats(store, limit=2, before=5) == ["4", "3"]


def test_a_change_and_its_line_are_stored_together_or_not_at_all(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boa.store.sql.prune_audit", _trouble)
    with pytest.raises(StoreTrouble):
        store.commit(changes(jobs=(job(1),), audit=[line("submit")]))
    assert store.job("1") is None
    assert store.audit() == []
    monkeypatch.undo()
    store.commit(changes(jobs=(job(1),), audit=[line("submit")]))
    assert [stored.number for stored in store.audit()] == [1]


def _trouble(*_: object) -> None:
    raise StoreTrouble("the disk is full")


def test_a_line_goes_only_when_it_is_old_and_there_are_many_newer_ones(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "PRUNE_EVERY", 1)
    monkeypatch.setattr(writing, "KEEP_AUDIT", 3)
    now = 1e9
    monkeypatch.setattr("boa.store.sql.time.time", lambda: now)
    monkeypatch.setattr(writing, "KEEP_AUDIT_S", 100.0)
    old, young = now - 101.0, now - 99.0
    ages = [old, old, young, old, old, old]
    for number, at in enumerate(ages, start=1):
        store.commit(changes(audit=[line(str(number), at=at)]))
    assert whats(store) == ["6", "5", "4", "3"]
