"""Rescaling times as a live service learns them, on a virtual clock."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.clouds.local import LocalCloud
from boa.model.job import GpuLimits, JobSpec
from boa.model.runs import RunEvent, RunKey
from boa.scheduler import lifecycle
from boa.scheduler.moving import move
from boa.scheduler.state import Draft, State
from live import Live, asked, config, profile, spec
from stored import node, running

RESCALE_S = 40.0
WAITED_S = 3600.0
TRAIN = profile("train", work=(60_000.0,), alpha=0.0, rescale_s=RESCALE_S)
NODES = {number: node(number, state="ready") for number in (7, 9)}
HURRY = profile("hurry", work=(WAITED_S,), alpha=0.0, rescale_s=5.0)


def service(folder: Path) -> Live:
    live = Live(
        config(folder, budget=40.0, max_nodes={"T4": 1}),
        {"train": TRAIN, "hurry": HURRY},
    )
    live.engine.report_s = 10.0
    return live


def learned(live: Live) -> float:
    return live.loop.profiler.rescale_s("train")


def waits_an_hour(live: Live) -> None:
    """An urgent job has the GPUs for an hour."""
    live.submit(wide("hurry", priority="urgent"))
    live.advance(WAITED_S + 60.0, tick=10.0)


def is_paused(live: Live) -> None:
    asked(live, live.loop.pause("1"))
    live.advance(WAITED_S, tick=300.0)
    asked(live, live.loop.resume("1"))


def is_away(live: Live) -> None:
    """The service is killed, and comes back to a job that has trained on."""
    live.clock.advance_to(live.clock.now() + 60.0)
    live.crash()


def loses_its_node(live: Live) -> None:
    assert isinstance(live.cloud, LocalCloud)
    for rented in live.cloud.nodes():
        live.cloud.release(rented.token)
    live.advance(60.0, tick=10.0)


INTERRUPTIONS: dict[str, Callable[[Live], None]] = {
    found.__name__: found for found in (waits_an_hour, is_paused, is_away, loses_its_node)
}


def wide(name: str, **fields: object) -> JobSpec:
    return spec(name, gpus=GpuLimits(min=4, max=4), **fields)


def trains(folder: Path, interruptions: Sequence[str]) -> Live:
    live = service(folder)
    live.submit(wide("train", preemptible=True))
    live.advance(300.0, tick=10.0)
    for name in interruptions:
        INTERRUPTIONS[name](live)
        live.advance(300.0, tick=10.0)
    live.close()
    return live


@pytest.mark.parametrize("name", INTERRUPTIONS)
def test_only_what_a_job_was_stopped_for_is_learned_as_rescaling_time(
    tmp_path: Path, name: str
) -> None:
    live = trains(tmp_path, [name, name])
    assert live.job("1").attempts == (1 if name == "is_away" else 3)
    assert learned(live) == pytest.approx(RESCALE_S, rel=0.1)


@given(st.lists(st.sampled_from(list(INTERRUPTIONS)), max_size=5))
@settings(max_examples=10, deadline=None)
def test_no_row_of_interruptions_changes_the_learned_rescaling_time(rows: list[str]) -> None:
    with TemporaryDirectory() as folder:
        assert learned(trains(Path(folder), rows)) == pytest.approx(RESCALE_S, rel=0.1)


@pytest.mark.parametrize(("away_s", "counted_s"), [(0.0, 12.0), (1.5, 13.5), (900.0, 14.0)])
def test_the_stop_of_a_run_counts_and_the_absence_of_the_service_after_it_does_not(
    away_s: float, counted_s: float
) -> None:
    job = running(1)
    assert job.run is not None
    job = replace(job, run=replace(job.run, state="stopping", stopping_at=200.0))
    draft = Draft(State(jobs={"1": job}, nodes=NODES), 212.0 + away_s)
    event = RunEvent(key=RunKey("1", 3), ended=True, exit_code=0, stopped=True)
    lifecycle.run_ended(draft, event, 212.0, 10.0, lambda job: frozenset())
    assert draft.jobs["1"].stopped_s == counted_s
    later = Draft(State(jobs=draft.jobs, nodes=NODES), 5000.0)
    move(later)
    run = later.jobs["1"].run
    assert run is not None
    assert run.requested_at - run.decided_at == counted_s


def test_what_a_run_trains_until_its_next_checkpoint_is_no_part_of_its_stop() -> None:
    job = running(1)
    assert job.run is not None
    run = replace(job.run, state="stopping", stopping_at=200.0, trained_at=290.0)
    draft = Draft(State(jobs={"1": replace(job, run=run)}, nodes=NODES), 295.0)
    event = RunEvent(key=RunKey("1", 3), ended=True, exit_code=0, stopped=True)
    lifecycle.run_ended(draft, event, 295.0, 10.0, lambda job: frozenset())
    assert draft.jobs["1"].stopped_s == 5.0
