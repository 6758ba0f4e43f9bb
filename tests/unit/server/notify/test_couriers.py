"""Notices on their way out, to real servers on loopback."""

import contextlib
import hashlib
import hmac
import json
import socketserver
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.errors import InputError
from boa.model.access import Caller
from boa.model.notices import Notice, NotifyTarget, SecretFrom
from boa.runtime.vault import Vault
from boa.server.notify import mail, post
from boa.server.notify.couriers import (
    FIRST_WAIT_S,
    MOST_TRIES,
    Courier,
    Couriers,
    Sender,
    check_files,
)
from boa.server.notify.errors import NotDelivered
from fakes import FakeControl, locked
from receivers import Posts, web_server

WALL = 1_790_000_000.0


@pytest.fixture
def posts() -> Iterator[Posts]:
    with web_server() as found:
        yield found


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "secret.key", {})


def notice(number: int = 1, **fields: Any) -> Notice:
    given = {"target": "ops", "kind": "ended", "at": 5.0, "text": f"job {number} succeeded"}
    return Notice(number=number, job=str(number), **{**given, **fields})


def hook(posts: Posts, **fields: Any) -> NotifyTarget:
    return NotifyTarget(**{"name": "ops", "kind": "webhook", "url": posts.url, **fields})


def secret_file(folder: Path, text: str, mode: int = 0o600) -> SecretFrom:
    path = folder / "a-secret"
    path.write_text(text + "\n")
    path.chmod(mode)
    return SecretFrom(file=path)


class Clock:
    def __init__(self) -> None:
        self.now = WALL

    def __call__(self) -> float:
        return self.now


def courier(
    control: FakeControl, target: NotifyTarget, vault: Vault, clock: Clock | None = None
) -> Courier:
    store: Any = control.store
    return Courier(target, store, control, Sender(vault, "boa-test"), clock or Clock())


# Webhooks


def test_a_webhook_is_signed_and_named_so_that_who_gets_it_can_tell(
    posts: Posts, vault: Vault, tmp_path: Path
) -> None:
    key = "a key that both know"
    target = hook(posts, key=secret_file(tmp_path, key))
    Sender(vault, "boa-test")(target, [notice(7, data={"cost_usd": 1.5})])
    ((path, headers, body),) = posts.got
    assert path == "/hook?x=1"
    assert json.loads(body) == {
        "id": "boa-test/7.5",
        "kind": "ended",
        "at": 5.0,
        "text": "job 7 succeeded",
        "job": "7",
        "data": {"cost_usd": 1.5},
    }
    said = headers["boa-timestamp"].encode() + b"." + body
    expected = hmac.new(key.encode(), said, hashlib.sha256).hexdigest()
    assert headers["boa-signature"] == f"v1={expected}"
    assert headers["boa-notice"] == "boa-test/7.5"
    assert headers["content-type"] == "application/json"


def test_a_key_may_be_a_secret_of_the_vault_but_only_one_that_an_admin_set(
    posts: Posts, vault: Vault
) -> None:
    target = hook(posts, key=SecretFrom(name="HOOK"))
    send = Sender(vault, "boa-test")
    with pytest.raises(NotDelivered, match="secret"):
        send(target, [notice()])
    member = Caller(name="eve", role="member")
    vault.adopt(vault.seal("HOOK", "her-own-value", by=member, now=0.0))
    with pytest.raises(NotDelivered, match="not set by an admin"):
        send(target, [notice()])
    assert posts.got == []
    vault.adopt(vault.seal("HOOK", "the-real-value", by=Caller(), now=0.0))
    send(target, [notice()])
    assert "boa-signature" in posts.got[0][1]


def test_a_redirect_is_not_followed(posts: Posts, vault: Vault) -> None:
    posts.status, posts.headers = 307, {"location": posts.url}
    with pytest.raises(NotDelivered, match="HTTP 307"):
        Sender(vault, "boa-test")(hook(posts), [notice()])
    assert len(posts.got) == 1


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "http://a@b/", "gopher://x/", "http://x\r\nHost: y/", "http://[::1", ""],
)
def test_what_is_no_address_of_a_web_server_is_never_asked(url: str) -> None:
    with pytest.raises(NotDelivered, match="its URL is none"):
        post.post(url, b"{}", {})


def test_where_nobody_listens_that_is_said(vault: Vault) -> None:
    with web_server() as gone:
        url = gone.url
    with pytest.raises(NotDelivered, match="refused"):
        post.post(url, b"{}", {})


# Slack


def test_slack_gets_all_that_waits_in_one_text_and_nobody_is_called_by_a_job_s_name(
    posts: Posts, vault: Vault, tmp_path: Path
) -> None:
    target = NotifyTarget(
        name="ops", kind="slack", secret_url=secret_file(tmp_path, posts.url), tell=("ended",)
    )
    Sender(vault, "boa-test")(target, [notice(1), notice(2, text="job 2 (<!channel> & co) failed")])
    ((_, _, body),) = posts.got
    assert json.loads(body) == {
        "text": "boa: job 1 succeeded\nboa: job 2 (&lt;!channel&gt; &amp; co) failed"
    }


# Again and again


def test_what_was_delivered_is_marked_so_and_sent_once(posts: Posts, vault: Vault) -> None:
    control = FakeControl()
    control.store.noticed = [notice(1), notice(2), notice(3, target="another")]
    ours = courier(control, hook(posts), vault)
    assert ours.turn() == 0.0
    assert ours.turn() > 0.0
    assert [json.loads(body)["id"] for _, _, body in posts.got] == ["boa-test/1.5", "boa-test/2.5"]
    assert [one.state for one in control.store.noticed] == ["delivered", "delivered", "waiting"]


def test_what_fails_waits_longer_each_time_and_arrives_when_the_target_is_back(
    posts: Posts, vault: Vault
) -> None:
    control, clock = FakeControl(), Clock()
    control.store.noticed = [notice(1), notice(2)]
    ours, posts.status = courier(control, hook(posts), vault, clock), 503
    waits = []
    for _ in range(4):
        waits.append(ours.turn())
        clock.now += waits[-1]
    assert waits == [FIRST_WAIT_S, 2 * FIRST_WAIT_S, 4 * FIRST_WAIT_S, 8 * FIRST_WAIT_S]
    assert len(posts.got) == 4, "a target that fails is not asked for every notice"
    assert control.store.noticed[0].error == "HTTP 503"
    posts.status = 204
    while any(one.state == "waiting" for one in control.store.noticed):
        clock.now += max(ours.turn(), 1.0)
    assert [one.error for one in control.store.noticed] == ["", ""]


def test_after_days_of_failures_it_is_given_up_and_others_go_on(posts: Posts, vault: Vault) -> None:
    control, clock = FakeControl(), Clock()
    control.store.noticed = [notice(1, tries=MOST_TRIES - 1), notice(2)]
    ours, posts.status = courier(control, hook(posts), vault, clock), 500
    clock.now += ours.turn()
    assert control.store.noticed[0].state == "given_up"
    posts.status = 200
    ours.turn()
    assert control.store.noticed[1].state == "delivered"


def test_a_crash_between_delivery_and_its_record_sends_it_again_and_a_busy_store_does_not(
    posts: Posts, vault: Vault
) -> None:
    control = FakeControl()
    control.store.noticed, control.busy = [notice(1)], locked()
    ours = courier(control, hook(posts), vault)
    ours.turn()
    ours.turn()
    assert len(posts.got) == 1, "it was delivered, though that is not written down"
    courier(control, hook(posts), vault).turn()  # another service, that knows only the store
    assert len(posts.got) == 2
    control.busy = None
    ours.turn()
    assert control.store.noticed[0].state == "delivered"


def test_what_is_delivered_within_a_second_is_written_down_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control, clock, written = FakeControl(), Clock(), list[int]()
    settle = control.settle_notices

    def settled(notices: Sequence[Notice]) -> Any:
        written.append(len(notices))
        return settle(notices)

    def send(target: NotifyTarget, notices: Sequence[Notice]) -> None:
        clock.now += 0.11

    store: Any = control.store
    control.store.noticed = [notice(number) for number in range(1, 36)]
    monkeypatch.setattr(control, "settle_notices", settled)
    Courier(NotifyTarget(name="ops", kind="webhook", url="-"), store, control, send, clock).turn()
    assert written == [10, 10, 10, 5]
    assert {one.state for one in control.store.noticed} == {"delivered"}


@pytest.mark.parametrize("kind", ["webhook", "slack"])
def test_a_notice_that_the_target_refuses_keeps_no_other_waiting(kind: Any) -> None:
    control, clock, taken = FakeControl(), Clock(), list[int]()

    def send(target: NotifyTarget, notices: Sequence[Notice]) -> None:
        if any(one.number == 1 for one in notices):
            raise NotDelivered("HTTP 400", refused=True)
        taken.extend(one.number for one in notices)

    store: Any = control.store
    control.store.noticed = [notice(1), notice(2), notice(3)]
    ours = Courier(NotifyTarget(name="ops", kind=kind, url="-"), store, control, send, clock)
    ours.turn()
    assert taken == [2, 3]
    for _ in range(9):  # by now it waits for an hour and more
        clock.now += max(ours.turn(), 1.0)
    control.settle_notices([notice(4)])
    assert not ours.is_failing
    ours.turn()
    assert taken == [2, 3, 4]
    assert control.store.noticed[0].state == "waiting"


@pytest.mark.parametrize("kind", ["webhook", "email"])
def test_who_answers_a_byte_at_a_time_is_waited_for_only_so_long(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setattr(post, "WHOLE_S", 0.2)
    monkeypatch.setattr(mail, "WHOLE_S", 0.2)
    over = threading.Event()

    class Dripping(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while not over.wait(0.01):
                    self.request.sendall(b"2")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dripping) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        place = f"127.0.0.1:{server.server_address[1]}"
        target = NotifyTarget(
            name="ops",
            kind=kind,
            url=f"http://{place}/" if kind == "webhook" else "",
            to=("a@example.com",),
            sender="b@example.com",
            smtp=place,
            security="none",
        )
        with pytest.raises(NotDelivered, match="within 0 s"):
            Sender(vault, "boa-test")(target, [notice(1)])
        over.set()
        server.shutdown()


def test_threads_deliver_what_is_new_and_end(posts: Posts, vault: Vault) -> None:
    control = FakeControl()
    store: Any = control.store
    control.store.noticed = [notice(9, target="gone")]
    couriers = Couriers([hook(posts)], store, control, Sender(vault, "boa-test"))
    couriers.start()
    assert control.store.noticed[0].state == "given_up", "nobody is called so any more"
    control.settle_notices([notice(10)])
    couriers.wake()
    assert posts.arrived.acquire(timeout=300)
    couriers.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("boa-notify-")]


def test_a_target_that_hangs_keeps_no_other_waiting(posts: Posts, vault: Vault) -> None:
    control, held = FakeControl(), threading.Event()
    store: Any = control.store
    real = Sender(vault, "boa-test")

    def send(target: NotifyTarget, notices: Sequence[Notice]) -> None:
        if target.name == "slow":
            held.wait(900)
        real(target, notices)

    control.store.noticed = [notice(1, target="slow"), notice(2)]
    couriers = Couriers([hook(posts, name="slow"), hook(posts)], store, control, send)
    couriers.start()
    assert posts.arrived.acquire(timeout=300)
    assert json.loads(posts.got[0][2])["id"] == "boa-test/2.5"
    held.set()
    couriers.close()


@pytest.mark.parametrize(("mode", "words"), [(0o644, "open to others"), (None, "cannot be read")])
def test_a_file_that_others_can_read_or_nobody_is_refused_before_anything_begins(
    tmp_path: Path, mode: int | None, words: str
) -> None:
    place = SecretFrom(file=tmp_path / "none")
    if mode is not None:
        place = secret_file(tmp_path, "x", mode)
    target = NotifyTarget(name="ops", kind="slack", secret_url=place)
    with pytest.raises(InputError, match=words) as wrong:
        check_files([target])
    assert wrong.value.field == "notify.ops.url_file"
    check_files([replace(target, secret_url=SecretFrom(name="X"))])
