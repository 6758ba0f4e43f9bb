"""The real loop on a virtual clock: secrets that jobs name, and that come and go."""

from typing import Any

import pytest

from boa.errors import InputError
from boa.model.access import Caller
from boa.model.job import SecretUse
from boa.model.runs import RunEvent, RunKey
from boa.runtime.vault import NoSuchSecret, NotTheirs
from live import LONG, Live, kinds, spec

VALUE = "hunter2-and-more"
KEY = (SecretUse("KEY", "KEY"),)


def told(live: Live, future: Any) -> Any:
    live.settle()
    return future.result(timeout=0)


def test_a_job_that_names_an_unknown_secret_is_refused(lives: Any) -> None:
    live = lives(LONG)
    with pytest.raises(InputError, match=r"^secrets\[0\]: got 'KEY'"):
        live.submit(spec("long", secrets=KEY))
    assert live.loop.snapshot.jobs == {}


def test_secrets_are_there_again_after_a_crash_and_a_removed_one_is_not(lives: Any) -> None:
    live = lives(LONG)
    told(live, live.loop.set_secret("KEY", VALUE, by=Caller(name="alice", role="member")))
    told(live, live.loop.set_secret("OTHER", VALUE))
    told(live, live.loop.remove_secret("OTHER"))
    live.crash()
    assert [(s.name, s.set_by) for s in live.loop.vault.secrets()] == [("KEY", "alice")]
    assert live.loop.vault.values(spec("long", secrets=KEY)) == {"KEY": VALUE}
    with pytest.raises(NoSuchSecret):
        told(live, live.loop.remove_secret("OTHER"))
    assert live.store is not None
    assert VALUE not in repr(live.store.load().meta)


def test_a_run_is_launched_with_its_secrets_and_the_job_shows_their_names_alone(lives: Any) -> None:
    live = lives(LONG)
    told(live, live.loop.set_secret("KEY", VALUE))
    asked: list[Any] = []
    start = live.engine.start

    def noted(launch: Any) -> None:
        asked.append(launch)
        start(launch)

    live.engine.start = noted
    live.submit(spec("long", secrets=KEY))
    assert [launch.secrets for launch in asked] == [{"KEY": VALUE}]
    assert VALUE not in repr(asked)


@pytest.mark.parametrize("first", ["alice", "admin"])
def test_a_name_that_anothers_job_waits_for_gets_no_value_that_is_not_for_it(
    lives: Any, first: str
) -> None:
    """Or who removes a secret while a job of theirs goes on would be given the next one's."""
    live = lives(LONG)
    setter = Caller(name=first, role="admin" if first == "admin" else "member")
    alice, bob = Caller(name="alice", role="member"), Caller(name="bob", role="member")
    told(live, live.loop.set_secret("KEY", VALUE, by=setter))
    told(live, live.loop.submit(spec("long", secrets=KEY), owner="alice", by=alice))
    told(live, live.loop.set_secret("KEY", "another value", by=setter))
    told(live, live.loop.remove_secret("KEY", force=True, by=setter))
    with pytest.raises(InputError, match="KEY is named by others' jobs that have not ended: 1; "):
        told(live, live.loop.set_secret("KEY", "of bob alone", by=bob))
    told(live, live.loop.set_secret("KEY", VALUE, by=alice))
    assert [secret.set_by for secret in live.loop.vault.secrets()] == ["alice"]


def test_a_secret_that_jobs_use_is_removed_only_by_force(lives: Any) -> None:
    live = lives(LONG)
    told(live, live.loop.set_secret("KEY", VALUE))
    job = live.submit(spec("long", secrets=KEY))
    with pytest.raises(InputError, match=f"KEY is used by jobs that have not ended: {job}; "):
        told(live, live.loop.remove_secret("KEY"))
    told(live, live.loop.remove_secret("KEY", force=True))
    assert live.job(job).state == "running", "what runs has it already"


def test_a_job_whose_secret_is_gone_waits_for_it_and_spends_no_retries(lives: Any) -> None:
    live = lives(LONG, backoff_s=5.0)
    told(live, live.loop.set_secret("KEY", VALUE))
    job = live.submit(spec("long", retries=1, secrets=KEY))
    told(live, live.loop.remove_secret("KEY", force=True))
    live.engine.kill(RunKey(job, 1), exit_code=1)
    live.settle()
    live.advance(600.0, tick=1.0)
    waiting = live.job(job)
    assert (waiting.state, waiting.failures) == ("waiting", 1)
    assert waiting.reason.startswith("secret KEY is not set any more: boa secret set KEY; next try")
    assert 4 <= kinds(live, job).count("retry") <= 9, "it waits longer each time"
    told(live, live.loop.set_secret("KEY", VALUE))
    live.advance(700.0, tick=1.0)
    assert live.job(job).state == "running"


def test_of_two_who_set_a_secret_at_one_moment_the_second_is_refused(lives: Any) -> None:
    live = lives(LONG)
    first = live.loop.set_secret("KEY", VALUE, by=Caller(name="alice", role="member"))
    second = live.loop.set_secret("KEY", "another", by=Caller(name="bob", role="member"))
    assert told(live, first).set_by == "alice"
    with pytest.raises(NotTheirs):
        told(live, second)
    assert live.loop.vault.values(spec("long", secrets=KEY)) == {"KEY": VALUE}


def test_what_the_engine_says_of_a_run_is_masked_before_it_is_stored(
    lives: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = lives(LONG, backoff_s=5.0)
    told(live, live.loop.set_secret("KEY", VALUE))
    job = live.submit(spec("long", secrets=KEY))
    said = RunEvent(
        key=RunKey(job, 1),
        ended=True,
        exit_code=1,
        reason=f"{VALUE} was killed",
        said=f"KeyError: {VALUE}",
    )
    monkeypatch.setattr(live.engine, "poll", lambda: [said])
    live.loop.actor.watch_engine()
    monkeypatch.undo()
    live.loop.step()
    assert live.store is not None
    events = [stored.event for stored in live.store.events(job=job)]
    assert VALUE not in repr(events) + repr(live.job(job))
    assert live.job(job).said.startswith("KeyError: ****")
    assert "**** was killed" in repr(events)
