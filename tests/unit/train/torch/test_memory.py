"""State that goes from one run to the next through memory: the same as through the disk."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from boa.train import Progress
from boa.train.checkpoints import leftovers, manifest_at, newest_first
from boa.train.keeper import pointer
from boa.train.keeper.client import KeeperClient
from boa.train.keeper.stripes import GRAIN, Stripes
from boa.train.torch.checkpoint import Checkpointer
from boa.train.torch.memory import flushing, handing
from boa.train.torch.memory.ring import Move, Ring, as_bytes
from boa.train.torch.pickles import put_down
from boa.train.torch.ranks import Ranks
from checkpoint_ranks import run, same, world
from keeping import HERE, keeper, kill, until
from memory_work import leave, leave_and_die, take

ALONE = Ranks(0, 1, 0, 1, torch.device("cpu"))
WAITING = ("--breath-s", "1000000")
"""Nothing is written to the disk."""


def some_state(value: float = 1.0) -> dict[str, Any]:
    """Of all kinds that models and optimisers have."""
    grown = torch.arange(30.0).reshape(2, 3, 5) * value
    return {
        "model": {
            "whole": torch.full((300, 7), value),
            "turned": grown.transpose(0, 2),
            "last": torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last),
            "half": torch.full((33,), value, dtype=torch.bfloat16),
            "count": torch.tensor(int(value)),
            "none": torch.empty(0, 4),
        },
        "optimizer": {"state": {"w": {"step": torch.tensor(value)}}, "groups": [{"lr": value}]},
    }


def left_alone(home: Path, folder: Path, state: dict[str, Any], step: int = 1) -> Checkpointer:
    saver = Checkpointer(home, ALONE, folder)
    saver.reserve(lambda: state)
    until(lambda: saver.has_memory)
    own = {"rank": 0}
    assert saver.save(
        tensors=state, shared=own, own=own, progress=Progress(step=step), leaving=True
    )
    return saver


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing, "LEAST_BYTES", 0)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 2 * GRAIN + 3), min_size=1, max_size=4), st.integers(0, 1000))
def test_the_ring_carries_every_byte_there_and_back(sizes: list[int], first: int) -> None:
    ring, memory = Ring(ALONE.device, 1), Stripes.made(first + sum(sizes) + 1)
    sources = [torch.randint(256, (size,), dtype=torch.uint8) for size in sizes]
    places = [first + sum(sizes[:n]) for n in range(len(sizes))]
    memory.fill(0, memory.size)
    ring.out([Move(s, memory, at) for s, at in zip(sources, places, strict=True)])
    targets = [torch.zeros_like(source) for source in sources]
    ring.into([Move(t, memory, at) for t, at in zip(targets, places, strict=True)])
    assert all(torch.equal(s, t) for s, t in zip(sources, targets, strict=True))
    memory.close()


def test_bytes_of_a_tensor_are_its_own() -> None:
    whole = torch.zeros(4, 3)
    as_bytes(whole).fill_(1)
    assert whole.count_nonzero() == 12


def test_what_is_left_in_memory_is_loaded_to_the_bit_and_gets_to_the_disk(tmp_path: Path) -> None:
    home, folder, state = tmp_path / "home", tmp_path / "keeper", some_state()
    with keeper(folder, "--breath-s", "1"):
        left_alone(home, folder, state).close()
        target = some_state(0.0)
        saver = Checkpointer(home, ALONE, folder)
        loaded = saver.load(target)
        assert loaded is not None
        assert loaded.own == loaded.shared == {"rank": 0}
        assert same(target, state)
        until(lambda: newest_first(home))
        until(lambda: pointer.newest(home) is None)
        saver.close()
        (path,) = newest_first(home)
        manifest = manifest_at(path)
        assert manifest is not None
        assert manifest.progress == Progress(step=1)
    again = some_state(0.0)
    assert Checkpointer(home, ALONE).load(again)
    assert same(again, state)
    dcp_to_torch_save(path, tmp_path / "plain.pt")  # an ordinary checkpoint of torch's
    assert same(torch.load(tmp_path / "plain.pt", weights_only=False), state)


def test_a_checkpoint_that_is_newer_counts_more_than_memory(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "keeper"
    with keeper(folder, *WAITING):
        saver = left_alone(home, folder, some_state(1.0))
        generation = pointer.generation_at(home)
        saver.save(tensors=some_state(2.0), shared={}, own={}, progress=Progress(step=2), wait=True)
        target = some_state(0.0)
        loaded = saver.load(target)
        assert loaded is not None
        assert loaded.progress.step == 2
        assert flushing.write_out(home, folder, generation) is None  # nothing older comes after it
        assert len(newest_first(home)) == 1
        saver.close()


def test_a_node_without_a_keeper_has_state_from_another(tmp_path: Path) -> None:
    home, folder, state = tmp_path / "home", tmp_path / "keeper", some_state(1.0)
    with keeper(folder, *WAITING, "--host", HERE, "--node", "there"):
        left_alone(home, folder, state).close()
        assert pointer.nodes(home) == {"there"}
        (tmp_path / "new").mkdir()
        target = some_state(0.0)
        saver = Checkpointer(home, ALONE, tmp_path / "new")
        assert saver.load(target) is not None
        assert same(target, state)
        saver.close()


def test_a_job_without_a_keeper_or_with_another_finds_what_was_left_here(tmp_path: Path) -> None:
    home, folder = tmp_path / "checkpoints", tmp_path / "keeper"
    with keeper(folder, *WAITING), keeper(tmp_path / "another"):
        left_alone(home, folder, some_state(3.0), step=7).close()
        for has in (None, tmp_path / "another"):
            found = some_state(9.0)
            with closing(Checkpointer(home, ALONE, has)) as loader:
                loaded = loader.load(found)
            assert loaded is not None
            assert loaded.progress.step == 7
            assert torch.equal(found["model"]["whole"], torch.full((300, 7), 3.0))


def test_without_its_keeper_and_without_a_checkpoint_it_begins_anew_and_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home, folder = tmp_path / "checkpoints", tmp_path / "keeper"
    with keeper(folder, *WAITING) as process:
        left_alone(home, folder, some_state(3.0), step=7).close()
        kill(process)
    capfd.readouterr()
    for has in (None, folder):
        with closing(Checkpointer(home, ALONE, has)) as loader:
            assert not loader.exists()
            assert loader.load({}) is None
        said = capfd.readouterr().err
        assert said.count("step 7 was in memory, and is not any more") == 1


def test_memory_has_room_for_all_that_a_script_keeps(tmp_path: Path) -> None:
    home, folder = tmp_path / "checkpoints", tmp_path / "keeper"
    kept = {"keeps": {"ema": [torch.full((3_000_000,), 2.0)]}}  # more than is spared
    with keeper(folder, *WAITING):
        with closing(Checkpointer(home, ALONE, folder)) as saver:
            saver.reserve(lambda: some_state(3.0), lambda: kept)
            until(lambda: saver.has_memory)
            saver.save(
                tensors=some_state(3.0), shared=kept, own={}, progress=Progress(), leaving=True
            )
        assert pointer.newest(home) is not None
        assert not newest_first(home)


def test_what_was_followed_meanwhile_is_not_written_in_the_place_of_what_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here, there = tmp_path / "home", tmp_path / "here", tmp_path / "there"

    def followed(*given: Any) -> None:
        put_down(*given)
        left_alone(home, there, some_state(2.0), step=2).close()

    with keeper(here, *WAITING), keeper(there, *WAITING):
        left_alone(home, here, some_state(1.0)).close()
        monkeypatch.setattr(flushing, "put_down", followed)
        assert flushing.write_out(home, here, pointer.generation_at(home)) is None
        assert not newest_first(home)
        found = pointer.newest(home)
        assert found is not None
        assert found.manifest.progress.step == 2


def test_two_that_publish_at_once_keep_their_order(tmp_path: Path) -> None:
    """Training saves while what its last run left is being written."""
    home, folder = tmp_path / "home", tmp_path / "keeper"
    with keeper(folder, *WAITING):
        saver = left_alone(home, folder, some_state(1.0))
        assert flushing.write_out(home, folder, pointer.generation_at(home)) is not None
        saver.save(tensors=some_state(2.0), shared={}, own={}, progress=Progress(step=2), wait=True)
        steps = [manifest.progress.step for p in newest_first(home) if (manifest := manifest_at(p))]
        assert steps == [2, 1]
        saver.close()


def test_without_a_keeper_it_falls_back_to_the_last_checkpoint(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home, folder = tmp_path / "home", tmp_path / "keeper"
    Checkpointer(home, ALONE).save(
        tensors=some_state(1.0), shared={}, own={}, progress=Progress(step=1), wait=True
    )
    with keeper(folder, *WAITING) as process:
        left_alone(home, folder, some_state(2.0), step=2).close()
        kill(process)
        target = some_state(0.0)
        saver = Checkpointer(home, ALONE, folder)
        loaded = saver.load(target)
        assert loaded is not None
        assert loaded.progress.step == 1
        assert same(target, some_state(1.0)) or target["model"]["whole"].eq(1.0).all()
        assert "step 2 was in memory, and is not any more" in capfd.readouterr().err
        saver.close()


def test_no_memory_means_the_disk_and_it_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home, folder = tmp_path / "home", tmp_path / "keeper"
    with keeper(folder, "--share", "0.0000001"):
        saver = Checkpointer(home, ALONE, folder)
        saver.reserve(lambda: {"model": {"large": torch.zeros(10**6)}})
        said = ""

        def refused() -> bool:
            nonlocal said
            said += capfd.readouterr().err
            return "stops save to the disk" in said

        until(refused)
        assert "MB are asked for" in said
        state = some_state()
        assert saver.save(tensors=state, shared={}, own={}, progress=Progress(), leaving=True)
        assert len(newest_first(home)) == 1
        saver.close()


def test_a_keeper_that_dies_during_the_hand_over_means_the_disk(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home, folder = tmp_path / "home", tmp_path / "keeper"
    with keeper(folder) as process:
        saver = Checkpointer(home, ALONE, folder)
        saver.reserve(lambda: some_state())
        until(lambda: saver.has_memory)
        kill(process)
        state = some_state()
        assert saver.save(tensors=state, shared={}, own={}, progress=Progress(), leaving=True)
        assert "it goes to the disk" in capfd.readouterr().err
        assert len(newest_first(home)) == 1
        assert pointer.newest(home) is None
        saver.close()


def test_what_is_being_written_is_no_leftover(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "keeper"
    with keeper(folder, *WAITING):
        left_alone(home, folder, some_state()).close()
        generation = pointer.generation_at(home)
        writing, old = home / f".boa-new-{generation}-1", home / ".boa-new-77-1"
        writing.mkdir()
        old.mkdir()
        assert leftovers(home, spared=generation) == [old]
        assert set(leftovers(home)) == {old, writing}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 9}', '{"version": 1}', "\x00"])
def test_a_damaged_pointer_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / pointer.NAME).write_text(text)
    assert pointer.newest(tmp_path) is None


@pytest.mark.slow
@pytest.mark.parametrize("sharded", [False, True])
def test_any_width_and_any_nodes_to_any_other(tmp_path: Path, sharded: bool) -> None:
    """On three nodes that reach each other by sockets alone; from memory, then from the disk."""
    folders = [tmp_path / f"node-{n}" for n in range(3)]
    nodes = [str(folder) for folder in folders]
    with (
        keeper(folders[0], "--host", HERE, *WAITING),
        keeper(folders[1], "--host", HERE, *WAITING),
        keeper(folders[2], "--host", HERE, *WAITING),
    ):
        for step, (before, after, old, new) in enumerate(
            [(1, 2, nodes[:1], nodes[:2]), (3, 2, nodes[:2], nodes[1:]), (2, 1, nodes, nodes[2:])]
        ):
            home = str(tmp_path / f"home-{step}")
            run(before, leave, home, old, sharded, step)
            for rank, found in enumerate(run(after, take, home, new, sharded)):
                assert found == (step, True, {"rank": rank} if before == after else None)
            generation = pointer.generation_at(Path(home))
            assert flushing.write_out(Path(home), folders[0], generation) is not None
            with closing(KeeperClient(folders[0])) as client:  # which has written nothing itself
                client.release(generation)
            for found in run(after, take, home, new, sharded):
                assert found[:2] == (step, True)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["copying", "keeping", "telling"])
def test_a_rank_killed_during_the_hand_over_loses_nothing_that_was_published(
    tmp_path: Path, point: str
) -> None:
    home, folder = str(tmp_path / "home"), tmp_path / "keeper"
    with keeper(folder, "--breath-s", "0"):
        run(2, leave, home, [str(folder)], False, 1)
        until(lambda: newest_first(Path(home)))
        expected = Path(f"{home}.pt").read_bytes()
        with world(2, leave_and_die, home, [str(folder)], 2, point) as started:
            started.processes[1].join(120)
            assert started.processes[1].exitcode == -9
        Path(f"{home}.pt").write_bytes(expected)
        for found in run(2, take, home, [str(folder)], False):
            assert found[:2] == (1, True)
