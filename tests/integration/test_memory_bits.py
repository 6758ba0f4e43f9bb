"""A stop through memory changes no bit, and rescalings through it no more than rounding does."""

import random
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.train.checkpoints import newest_first
from checkpoint_ranks import same
from elastic import Attempt, play
from keeping import HERE, keeper
from memory_training import READY, diaries, train

ROUNDING = 2e-5
"""How far losses may be apart, relatively: sums over ranks are rounded in another order."""
RESCALINGS, EPOCHS = 10, 24
WAITING = ("--breath-s", "1000000")
"""Runs have their state written to the disk themselves, once they have loaded it from memory."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "options"),
    [(1, {}), (2, {}), (2, {"shard": True}), (3, {"exact": True})],
    ids=["one", "two", "two in shards", "three"],
)
def test_no_bit_tells_whether_a_run_was_stopped_through_memory_or_the_disk(
    tmp_path: Path, width: int, options: dict[str, Any]
) -> None:
    """Of weights, moments, losses at every step, and random numbers of all kinds on every rank."""
    given = {"epochs": 4, "dropout": 0.3, **options}
    (whole,) = play(train, tmp_path / "whole", [Attempt(width)], **given)
    stops = [Attempt(width, READY), Attempt(width, READY + 1, width - 1), Attempt(width)]
    kept = [replace(stop, keepers=(tmp_path / "keeper",)) for stop in stops]
    with keeper(tmp_path / "keeper", *WAITING):
        through = {
            "memory": play(train, tmp_path / "memory", kept, **given),
            "disk": play(train, tmp_path / "disk", stops, **given),
        }
    for way, attempts in through.items():
        assert [set(ended.codes) for ended in attempts] == [{0}] * len(stops)
        for rank in range(width):
            heads, steps = diaries(tmp_path / way, len(stops), rank)
            assert [head["from"] for head in heads] == ["nothing", way, way]
            assert steps == diaries(tmp_path / "whole", 1, rank)[1]
            assert same(attempts[-1].told[rank]["state"], whole.told[rank]["state"])


@pytest.mark.slow
@pytest.mark.parametrize("shard", [False, True], ids=["whole", "in shards"])
def test_ten_rescalings_over_two_nodes_through_memory_end_with_the_loss_of_none(
    tmp_path: Path, shard: bool
) -> None:
    (whole,) = play(train, tmp_path / "whole", [Attempt(1)], epochs=EPOCHS)
    nodes = tmp_path / "node-0", tmp_path / "node-1"
    attempts = [replace(at, keepers=nodes) for at in _rescalings(seed=20 + shard)]
    with ExitStack() as stack:
        for node in nodes:
            stack.enter_context(keeper(node, "--host", HERE, *WAITING))
        pieces = play(train, tmp_path / "pieces", attempts, epochs=EPOCHS, shard=shard)
    assert [set(ended.codes) for ended in pieces] == [{0}] * len(attempts)
    expected = whole.told[0]
    for told in pieces[-1].told:
        assert told["steps"] == expected["steps"]
        assert told["loss"] == pytest.approx(expected["loss"], rel=ROUNDING)
    heads, steps = diaries(tmp_path / "pieces", len(attempts), 0)
    assert [head["from"] for head in heads] == ["nothing", *["memory"] * RESCALINGS]
    assert all(head["fetched"] for head in heads[1:])  # rank 0 is on the other node every time
    assert [step for step, *_ in steps] == list(range(expected["steps"]))  # none done twice
    assert len(newest_first(tmp_path / "pieces" / "checkpoints")) == 2


def _rescalings(seed: int) -> list[Attempt]:
    chance, width = random.Random(seed), 0
    found = []
    for _ in range(RESCALINGS + 1):
        width = chance.choice([w for w in (1, 2, 3, 4) if w != width])
        found.append(Attempt(width, chance.randint(READY, READY + 4), chance.randrange(width)))
    return [*found[:-1], Attempt(width)]
