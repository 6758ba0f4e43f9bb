"""Every command that somebody asks for leaves a line: who, what, before and after, and the end."""

from typing import Any

import pytest

from boa.errors import InputError
from boa.model.access import Caller, TokenRecord
from boa.model.job import GpuLimits
from boa.scheduler.refusals import NoSuchToken
from live import Live, asked, spec

ALICE = Caller(name="alice", role="member", team="vision", address="10.0.0.7")


def lines(live: Live) -> list[tuple[str, str, Any, Any]]:
    """Oldest first."""
    assert live.store is not None
    found = [stored.entry for stored in live.store.audit()]
    return [(one.what, one.subject, one.before, one.after) for one in reversed(found)]


def test_submitting_stopping_and_the_budget_are_written_down(lives: Any) -> None:
    live = lives()
    loop = live.loop
    job = asked(live, loop.submit(spec("halves"), owner="alice", team="vision", by=ALICE))
    assert (job.owner, job.team) == ("alice", "vision")
    asked(live, loop.set_budget(20.0, by=ALICE))
    asked(live, loop.stop(job.id, by=ALICE))
    submitted, budget, stopped = lines(live)
    assert submitted == (
        "submit",
        job.id,
        None,
        {"name": "halves", "class": "halves", "state": "waiting"},
    )
    assert budget == (
        "budget",
        "",
        {"budget_per_hour": 12.0, "max_spend_per_hour": None},
        {"budget_per_hour": 20.0, "max_spend_per_hour": None},
    )
    assert stopped == (
        "stop",
        job.id,
        {"state": "running", "stop_requested": False},
        {"state": "running", "stop_requested": True},
    )
    (newest, *_) = live.store.audit()
    assert (newest.entry.who, newest.entry.role, newest.entry.address, newest.entry.result) == (
        "alice",
        "member",
        "10.0.0.7",
        "done",
    )


def test_one_that_is_refused_is_written_down_with_why(lives: Any) -> None:
    live = lives()
    future = live.loop.submit(spec("halves", gpus=GpuLimits(types=("H999",))), by=ALICE)
    with pytest.raises(InputError):
        asked(live, future)
    (only,) = live.store.audit()
    assert only.entry.what == "submit"
    assert "H999" in only.entry.result


def test_one_that_is_refused_has_changed_nothing(lives: Any) -> None:
    live = lives()
    token = TokenRecord(name="bob", role="viewer", digest="cd" * 32, created_at=5.0)
    asked(live, live.loop.add_token(token, by=ALICE))
    with pytest.raises(InputError, match="there is such a token"):
        asked(live, live.loop.add_token(token, by=ALICE))
    (_, _, before, after) = lines(live)[-1]
    assert before["role"] == "viewer"
    assert after == before


def test_what_nobody_asked_for_leaves_no_line(lives: Any) -> None:
    live = lives()
    live.submit(spec("halves"))
    assert live.store.audit() == []


def test_tokens_are_good_once_stored_and_after_a_restart(lives: Any) -> None:
    live = lives()
    token = TokenRecord(name="bob", role="viewer", digest="cd" * 32, created_at=5.0)
    first, second = live.loop.add_token(token, by=ALICE), live.loop.add_token(token, by=ALICE)
    assert asked(live, first) == token
    with pytest.raises(InputError, match="there is such a token"):
        second.result(0)
    assert live.loop.snapshot.tokens == {"bob": token}
    live.crash()
    assert live.loop.snapshot.tokens == {"bob": token}
    revoked = asked(live, live.loop.revoke_token("bob", by=ALICE))
    assert revoked.revoked_at is not None
    assert live.loop.snapshot.tokens == {"bob": revoked}
    asked(live, live.loop.add_token(token, by=ALICE))
    assert live.loop.snapshot.tokens == {"bob": token}, "the name was free again"
    with pytest.raises(NoSuchToken):
        asked(live, live.loop.revoke_token("nobody", by=ALICE))
    with pytest.raises(InputError, match="service's own"):
        asked(live, live.loop.add_token(TokenRecord(**{**_fields(token), "name": "admin"})))
    assert token.digest not in str(lines(live))


def _fields(token: TokenRecord) -> dict[str, Any]:
    return {name: getattr(token, name) for name in TokenRecord.__dataclass_fields__}
