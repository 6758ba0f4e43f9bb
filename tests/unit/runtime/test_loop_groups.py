"""Commands in groups: many share a transaction, a batch is whole, answers come before decisions."""

from pathlib import Path
from typing import Any

import pytest

from boa.errors import InputError
from boa.model.changes import Changes
from boa.model.job import After, GpuLimits
from boa.runtime.loop import MOST_FLOOD_S, longest_pause_after
from boa.runtime.packages import PackageShelf
from boa.runtime.places import KnownPlaces
from boa.scheduler.refusals import NotNow
from boa.store.base import StoreTrouble
from live import Live, spec


@pytest.fixture
def commits(lives: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Live, list[Changes]]:
    """A service at rest, and what it stores from now on."""
    live: Live = lives()
    assert live.store is not None
    found: list[Changes] = []
    real = live.store.commit

    def commit(changes: Changes) -> int:
        found.append(changes)
        return real(changes)

    monkeypatch.setattr(live.store, "commit", commit)
    return live, found


def test_commands_that_wait_together_share_one_transaction(
    commits: tuple[Live, list[Changes]],
) -> None:
    live, stored = commits
    asked = [live.loop.submit(spec("halves")) for _ in range(20)]
    live.loop.accept()
    assert [future.result(timeout=0).id for future in asked] == [str(n) for n in range(1, 21)]
    assert [len(changes.jobs) for changes in stored] == [20]


def test_a_batch_is_one_transaction(commits: tuple[Live, list[Changes]]) -> None:
    live, stored = commits
    asked = live.loop.submit_many([spec("halves"), spec("halves")])
    live.loop.step()
    assert [(job.id, job.serial) for job in asked.result(timeout=0)] == [("1", 0), ("2", 1)]
    assert [len(changes.jobs) for changes in stored] == [2]


def test_of_a_batch_the_job_that_waits_for_nobody_is_looked_at_though_another_waits(
    lives: Any, tmp_path: Path
) -> None:
    live = lives()
    live.loop.places = KnownPlaces(PackageShelf(tmp_path / "packages"), dict)
    gone = str(tmp_path / "gone")
    waits = spec("halves", workdir=gone, after=(After(live.submit(spec("halves"))),))
    with pytest.raises(InputError, match=r"jobs\[1\]\.workdir"):
        live.loop.submit_many([waits, spec("halves", workdir=gone)])


def test_a_batch_with_one_wrong_job_stores_none_and_the_error_names_which(lives: Any) -> None:
    live = lives()
    wrong = spec("halves", gpus=GpuLimits(min=1, max=1, types=("H100",)))
    batch = live.loop.submit_many([spec("halves"), spec("halves"), wrong])
    beside = live.loop.submit(spec("halves"))
    live.loop.step()
    with pytest.raises(InputError, match=r"jobs\[2\]\.gpus\.types: got 'H100'"):
        batch.result(timeout=0)
    assert beside.result(timeout=0).id == "1"
    assert list(live.loop.snapshot.jobs) == ["1"]


def test_who_is_answered_finds_his_job_stored_and_the_next_step_decides_on_it(lives: Any) -> None:
    live = lives()
    asked = live.loop.submit(spec("halves"))
    assert live.loop.accept()
    assert live.store.job(asked.result(timeout=0).id) is not None
    assert (live.job("1").state, live.job("1").reason) == ("waiting", "new")
    assert not live.engine.started
    live.settle()
    assert live.job("1").state == "running"


def test_a_job_that_was_answered_for_and_not_decided_on_outlives_a_crash(lives: Any) -> None:
    live = lives()
    asked = live.loop.submit(spec("halves"))
    live.loop.accept()
    live.crash()
    assert live.job(asked.result(timeout=0).id).state == "running"


def test_a_stop_that_was_stored_in_a_pause_is_acted_on_by_the_next_step(lives: Any) -> None:
    live = lives()
    job = live.submit(spec("halves"))
    asked = live.loop.stop(job)
    live.loop.accept()
    assert asked.result(timeout=0).stop_requested
    live.settle()
    assert live.job(job).state == "stopped"


def test_what_engine_and_cloud_say_in_a_pause_waits_for_the_next_step(lives: Any) -> None:
    live = lives()
    job = live.submit(spec("halves"))
    live.clock.advance_to(live.clock.now() + 36_000)
    live.loop.actor.watch_engine()
    assert not live.loop.accept(), "nobody asked"
    assert live.job(job).state == "running"
    live.loop.step()
    assert live.job(job).state == "succeeded"


def test_nothing_is_answered_for_that_could_not_be_stored(
    lives: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = lives()

    def full(changes: Changes) -> int:
        raise StoreTrouble("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(live.store, "commit", full)
        asked = live.loop.submit_many([spec("halves")] * 3)
        live.loop.accept()
    with pytest.raises(NotNow, match="disk full"):
        asked.result(timeout=0)
    assert not live.loop.snapshot.jobs
    assert live.submit(spec("halves")) == "1"


def test_users_who_go_on_asking_delay_a_decision_by_a_few_seconds_at_most() -> None:
    assert longest_pause_after(0.02) == pytest.approx(0.08)
    assert longest_pause_after(0.5) == pytest.approx(2.0)
    assert max(map(longest_pause_after, (0.1, 0.5, 1.0, 2.0))) == MOST_FLOOD_S
