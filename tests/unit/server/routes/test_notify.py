"""Whom notices go to, and a test of whether they arrive: over the API, the client, the commands."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from boa.client import Client
from boa.model.notices import Notice, NotifyTarget, SecretFrom
from fakes import FakeService
from integration.runner import Boa
from receivers import Posts, web_server
from unit.server.http.test_roles import OWN, ask, record


@pytest.fixture
def posts() -> Iterator[Posts]:
    with web_server() as found:
        yield found


@pytest.fixture
def told(
    tmp_path: Path, posts: Posts, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[FakeService, Posts]]:
    hidden = SecretFrom(file=tmp_path / "url")
    targets = (
        NotifyTarget(name="ops", kind="webhook", url=posts.url, tell=("failed",)),
        NotifyTarget(name="hidden", kind="slack", secret_url=hidden),
    )
    service = FakeService(tmp_path, targets=targets)
    with service.serving() as url:
        monkeypatch.setenv("BOA_SERVER", url)
        yield service, posts


def test_targets_are_listed_without_anything_secret(
    run: Boa, told: tuple[FakeService, Posts]
) -> None:
    service, _ = told
    failed = Notice(
        number=1, target="ops", kind="failed", at=1.0, text="x", tries=2, error="HTTP 5"
    )
    service.control.store.noticed = [failed]
    ops, hidden = run.json("notify", "list")["targets"]
    assert (ops["to"], ops["waiting"], ops["tell"]) == ("127.0.0.1", 1, ["failed"])
    assert hidden["to"] == ""
    assert "/hook" not in str(ops), "a path may be a secret"
    assert "tried 2×: HTTP 5" in run("notify", "list")


def test_a_notice_behind_others_does_not_hide_that_those_fail(
    run: Boa, told: tuple[FakeService, Posts]
) -> None:
    service, _ = told
    failed = Notice(
        number=1, target="ops", kind="failed", at=1.0, text="x", tries=2, error="HTTP 503"
    )
    behind = Notice(number=2, target="ops", kind="failed", at=2.0, text="y")
    service.control.store.noticed = [failed, behind]
    ops, _ = run.json("notify", "list")["targets"]
    assert (ops["waiting"], ops["last"]["number"]) == (2, 1)
    assert "tried 2×: HTTP 503" in run("notify", "list")


def test_a_test_arrives_at_once_and_says_where_it_does_not(
    run: Boa, told: tuple[FakeService, Posts]
) -> None:
    service, posts = told
    assert run("notify", "test", "ops") == "ops: delivered\n"
    assert b'"kind":"test"' in posts.got[0][2]
    said = run("notify", "test", code=1)
    assert said == "ops: delivered\n"
    assert "hidden: " in run.err
    assert "cannot be read" in run.err
    run("notify", "test", "nobody", code=2)
    assert "expected one of hidden, ops" in run.err
    assert service.control.store.noticed == [], "a test is not kept"
    lines = service.control.store.audited
    assert [(line.what, line.subject) for line in lines] == [
        ("notify test", "ops"),
        ("notify test", "ops"),
        ("notify test", "hidden"),
    ]


def test_a_service_without_targets_says_so(run: Boa, service: FakeService) -> None:
    assert "boa.yaml has no notify" in run("notify", "list")
    assert run("notify", "test") == ""
    with Client() as client:
        assert client.notify_targets() == []


def test_only_admins_see_targets_and_send_tests(tmp_path: Path, posts: Posts) -> None:
    ops = NotifyTarget(name="ops", kind="webhook", url=posts.url)
    service = FakeService(tmp_path, token=OWN, targets=(ops,))
    known = (record("mia", "member"), record("vera", "viewer"), record("ada", "admin"))
    service.control.tokens = {token.name: token for token in known}
    for who, allowed in {"mia": False, "vera": False, "ada": True, "own": True}.items():
        for method, path in (("GET", "notify"), ("POST", "notify/ops/test")):
            answer = ask(service, who, method, path)
            assert answer.status_code == (200 if allowed else 403), (who, path)
    assert len(posts.got) == 2
