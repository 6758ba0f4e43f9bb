"""Nodes with training state on no disk are given back when it is there, or the grace is over."""

import os
from pathlib import Path
from typing import Any

import pytest

from boa.model.cloud import CloudNode
from boa.runtime import actor
from boa.train import checkpoints
from boa.train.checkpoints import Manifest, Progress
from boa.train.keeper import pointer
from boa.train.keeper.pointer import Part, Pointer
from keeping import until
from live import LONG, Live, spec

MANIFEST = Manifest(Progress(), 1, {})


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actor, "RETRY_S", 0.1)


def left(live: Live, grace_s: float, node: str = "127.0.0.1") -> Path:
    """A job is paused, its state is in a node's memory; gives where its checkpoints are."""
    job = live.submit(spec("long", grace_s=grace_s))
    live.advance(200.0, tick=20.0)
    home = live.config.data_dir / "checkpoints" / job
    part = Part(segment=0, keeper="k", address=None, own=(0, 0), node=node)
    pointer.written(home, Pointer("first", 1, MANIFEST, (part,), (0, 0), (0, 0)))
    live.loop.pause(job)
    live.advance(600.0, tick=20.0)
    assert live.job(job).run is None
    return home


def rented(live: Live) -> list[CloudNode]:
    assert live.cloud is not None
    return [node for node in live.cloud.nodes() if node.gone_at is None]


def test_a_node_is_given_back_when_its_state_is_on_the_disk(lives: Any) -> None:
    live = lives(LONG)
    home = left(live, grace_s=3600.0)
    assert rented(live), "it is paid for meanwhile"
    checkpoints.publish(checkpoints.begin(home), MANIFEST)
    until(lambda: live.advance(20.0) is None and not rented(live))


def test_a_node_is_given_back_when_the_grace_of_its_job_is_over(lives: Any) -> None:
    live = lives(LONG)
    left(live, grace_s=0.0)
    assert not rented(live)


def test_a_node_waits_for_no_state_of_others(lives: Any) -> None:
    live = lives(LONG)
    left(live, grace_s=3600.0, node="another")
    assert not rented(live)


def test_a_pipe_in_the_place_of_the_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / pointer.NAME)
    assert pointer.nodes(tmp_path) == frozenset()


def test_a_service_that_comes_back_waits_for_state_that_was_left_before(lives: Any) -> None:
    live = lives(LONG)
    home = left(live, grace_s=3600.0)
    live.crash()
    live.advance(100.0, tick=20.0)
    assert rented(live)
    checkpoints.publish(checkpoints.begin(home), MANIFEST)
    until(lambda: live.advance(20.0) is None and not rented(live))


def test_a_node_that_is_waited_for_is_asked_about_once_at_a_time(
    lives: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor, "OVERDUE_S", 0.0)
    live = lives(LONG)
    left(live, grace_s=3600.0)
    live.advance(2000.0, tick=20.0)
    assert len(live.loop.actor._later) <= len(rented(live))


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "1e400"])
def test_a_file_with_an_endless_number_is_none(tmp_path: Path, number: str) -> None:
    part = Part(segment=0, keeper="k", address=None, own=(0, 0))
    pointer.written(tmp_path, Pointer("first", 1, MANIFEST, (part,), (0, 0), (0, 0)))
    file = tmp_path / pointer.NAME
    file.write_text(file.read_text().replace('"number": 1', f'"number": {number}'))
    assert pointer.newest(tmp_path) is None
