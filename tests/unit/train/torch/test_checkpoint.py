"""Checkpoints of real ranks: any width to any other, complete or invisible."""

import collections
import dataclasses
import io
import json
import os
import pickle
import random
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from boa.train import Progress
from boa.train.checkpoints import MANIFEST, newest_first
from boa.train.torch import random as randomness
from boa.train.torch.checkpoint import Checkpointer, NotLoaded, swept
from boa.train.torch.circle import Failed
from boa.train.torch.ranks import Ranks
from boa.train.torch.snapshot import Snapshots
from boa.train.torch.unpickling import IndexUnpickler
from checkpoint_ranks import run, same, world
from checkpoint_work import (
    KINDS,
    agree_and_fail,
    constant,
    fail_to_write,
    load_constant,
    load_damaged,
    load_trained,
    save_and_change,
    save_on_and_on,
    save_trained,
    save_while_saving,
    talk_while_saving,
)

CPU = torch.device("cpu")
ALONE = Ranks(0, 1, 0, 1, CPU)
WIDTHS = [1, 2, 3, 4]


def save(saver: Checkpointer, state: dict[str, Any], *, step: int = 1, **more: Any) -> bool:
    at = Progress(step=step)
    return saver.save(tensors=state, shared={}, own={}, progress=at, **more)


@pytest.mark.slow
def test_what_any_number_of_ranks_saved_any_other_number_loads_to_the_bit(tmp_path: Path) -> None:
    """Model and AdamW, whole on every rank and in FSDP2's shards."""
    for width in WIDTHS:
        run(width, save_trained, str(tmp_path))
    for width in WIDTHS:
        for rank, found in enumerate(run(width, load_trained, str(tmp_path), WIDTHS)):
            own = {"rank": rank}
            assert found == [
                (kind, size, True, own if size == width else None)
                for kind in KINDS
                for size in WIDTHS
            ]


@pytest.mark.parametrize("width", [1, 3])
def test_changes_made_after_save_returns_are_not_saved(tmp_path: Path, width: int) -> None:
    run(width, save_and_change, str(tmp_path))


@pytest.mark.slow
def test_ranks_killed_at_any_moment_leave_only_whole_checkpoints(tmp_path: Path) -> None:
    chance, steps = random.Random(5), [0]
    for _ in range(6):
        with world(3, save_on_and_on, str(tmp_path)) as started:
            for _ in range(chance.randint(1, 4)):
                started.hear(0)
            time.sleep(chance.uniform(0.0, 0.05))
            started.processes[chance.randrange(3)].kill()
        steps.extend(run(chance.choice([1, 2]), load_constant, str(tmp_path))[:1])
    assert steps == sorted(steps)  # never falls back
    assert steps[-1] > 6


def test_no_room_on_one_rank_is_heard_by_all_and_nothing_is_published(tmp_path: Path) -> None:
    results = run(3, fail_to_write, str(tmp_path))
    assert len(set(results)) == 1
    for raised in results[0]:
        assert re.match(r"rank 2: .*File too large", raised)
    state = constant(0.0)
    loaded = Checkpointer(tmp_path, ALONE).load(state)
    assert loaded is not None
    assert loaded.progress.step == 4
    assert same(state, constant(4.0))


def test_no_thread_that_writes_fails_unheard(tmp_path: Path) -> None:
    """Alone, where several threads write: those of torch's own writer would."""
    results = run(1, fail_to_write, str(tmp_path))
    assert all("File too large" in raised for raised in results[0])


@pytest.mark.parametrize("width", [1, 2])
def test_a_save_asked_for_while_one_is_written_waits_or_is_left_out_everywhere(
    tmp_path: Path, width: int
) -> None:
    for found in run(width, save_while_saving, str(tmp_path)):
        *made, between, parts, kept = found
        assert made == [True, False, True]
        assert between == ["checkpoint-00000002", "checkpoint-00000001"]
        assert parts == {"stop": 0.25}
        assert kept == ["checkpoint-00000003", "checkpoint-00000004"]


def test_training_and_writing_never_hear_each_other(tmp_path: Path) -> None:
    run(3, talk_while_saving, str(tmp_path))


def test_a_checkpoint_that_one_rank_cannot_read_is_passed_over_by_all(tmp_path: Path) -> None:
    for name, raised in run(2, load_damaged, str(tmp_path)):
        assert name == "checkpoint-00000001"
        assert "no checkpoint there can be loaded (rank 0" in raised


def test_passing_over_a_checkpoint_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saver = Checkpointer(tmp_path, ALONE)
    save(saver, constant(1.0), wait=True)
    save(saver, constant(2.0), wait=True)
    (newest_first(tmp_path)[0] / ".metadata").write_bytes(b"nonsense")
    state = constant(0.0)
    loaded = saver.load(state)
    assert loaded is not None
    assert same(state, constant(1.0))
    assert "boa: checkpoint checkpoint-00000002 cannot be loaded" in capsys.readouterr().err


def test_ranks_agree_and_hear_of_each_other_s_failures() -> None:
    for rank, found in enumerate(run(3, agree_and_fail)):
        assert found[:4] == [True, False, "by 0", rank]
        assert found[4] == "rank 2: OSError: [Errno 28] full"
        assert found[5].startswith("rank 0: ZeroDivisionError")
        assert found[6] == "and on"


def test_what_cannot_be_pickled_stops_no_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saver = Checkpointer(tmp_path, ALONE)
    asked: dict[str, Any] = {"tensors": constant(1.0), "own": {}, "progress": Progress()}
    assert saver.save(**asked, shared={"bad": lambda: 0})
    with pytest.raises(Failed, match="pickle"):
        saver.finish()
    assert "training goes on" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_a_home_nothing_is_saved_or_loaded() -> None:
    saver = Checkpointer(None, ALONE)
    assert not save(saver, constant(1.0), wait=True)
    saver.finish()
    assert not saver.exists()
    assert saver.load(constant(1.0)) is None


def test_the_manifest_says_who_saved_it_and_what_it_took(tmp_path: Path) -> None:
    saver = Checkpointer(tmp_path, ALONE)
    assert not saver.exists()
    assert saver.load(constant(1.0)) is None
    save(saver, constant(1.0), step=7, wait=True, parts=lambda: {"stop": 0.1, "save": 0.5})
    assert saver.exists()
    document = json.loads((newest_first(tmp_path)[0] / MANIFEST).read_text())
    assert document == {
        "version": 1,
        "epoch": 0,
        "progress": 0.0,
        "step": 7,
        "world_size": 1,
        "parts": {"stop": 0.1, "save": 0.5},
    }


def test_what_is_old_or_was_left_behind_is_removed_in_the_background(tmp_path: Path) -> None:
    (tmp_path / ".boa-new-1-2").mkdir()
    (tmp_path / ".boa-new-1-2" / "model").write_text("ha")
    saver = Checkpointer(tmp_path, ALONE)
    for step in range(4):
        save(saver, constant(1.0), step=step, wait=True)
    swept()
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["checkpoint-00000003", "checkpoint-00000004"]


def test_what_is_saved_is_an_ordinary_checkpoint_of_torch(tmp_path: Path) -> None:
    saver = Checkpointer(tmp_path / "home", ALONE)
    save(saver, constant(3.0), wait=True)
    dcp_to_torch_save(newest_first(tmp_path / "home")[0], tmp_path / "file.pt")
    assert same(torch.load(tmp_path / "file.pt"), constant(3.0))


def test_snapshots_use_their_buffers_again() -> None:
    snapshots = Snapshots(CPU)
    tensor, other = torch.ones(3), torch.ones(2, 2)
    first = snapshots.take({"a": tensor, "b": other}).land()
    assert first["a"].data_ptr() != tensor.data_ptr()
    second = snapshots.take({"a": tensor + 1, "b": torch.ones(5)}).land()
    assert second["a"].data_ptr() == first["a"].data_ptr()
    assert second["a"].tolist() == [2.0, 2.0, 2.0]
    assert second["b"].shape == (5,)


def draws() -> list[float]:
    return [random.random(), float(np.random.rand()), torch.rand(()).item()]


def test_a_restored_state_draws_the_same_numbers_again() -> None:
    before = randomness.state()
    drawn = draws()
    randomness.restore(before)
    assert draws() == drawn


def test_fresh_states_differ_by_seed_step_and_rank_and_come_again() -> None:
    seen = set()
    before = randomness.state()
    for place in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0)]:
        randomness.restore(randomness.fresh(*place))
        drawn = draws()
        randomness.restore(randomness.fresh(*place))
        assert draws() == drawn
        seen.update(drawn)
    assert len(seen) == 15
    randomness.restore(before)


class Trap:
    """Runs something where it is unpickled."""

    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.sprung}",)


@pytest.mark.parametrize("name", ["shared.pt", "own-0.pt", ".metadata"])
def test_a_checkpoint_that_says_what_to_run_is_not_obeyed(tmp_path: Path, name: str) -> None:
    saver, sprung = Checkpointer(tmp_path / "home", ALONE), tmp_path / "sprung"
    save(saver, constant(1.0), wait=True)
    trapped = newest_first(tmp_path / "home")[0] / name
    if name == ".metadata":
        trapped.write_bytes(pickle.dumps(Trap(sprung)))
    else:
        torch.save(Trap(sprung), trapped)
    with pytest.raises(NotLoaded):
        saver.load(constant(2.0))
    assert not sprung.exists()


def test_nor_is_a_value_in_it_that_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saver, sprung = Checkpointer(tmp_path / "home", ALONE), tmp_path / "sprung"
    monkeypatch.setattr("boa.train.torch.checkpoint.check", lambda content: None)
    save(saver, {**constant(1.0), "value": Trap(sprung)}, wait=True)
    with pytest.raises(NotLoaded):
        saver.load({**constant(2.0), "value": 0})
    assert not sprung.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [("os", "system"), ("torch", "os.system"), ("torch.serialization", "os"), ("torch", "load")],
)
def test_the_index_of_a_checkpoint_leads_nowhere_else(module: str, name: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match="nothing that an index is made of"):
        IndexUnpickler(io.BytesIO()).find_class(module, name)


def test_numbers_arrays_and_plain_containers_are_kept(tmp_path: Path) -> None:
    saver = Checkpointer(tmp_path, ALONE)
    kept = {
        "best": np.float64(0.5),
        "counts": collections.Counter("abca"),
        "order": collections.OrderedDict(a=(1, None, True, "x", b"y", {2}, float("inf"))),
        "extra": torch.ones(2),
    }
    whole = {"a": np.arange(3), "b": np.zeros((2, 2), "f4"), "c": np.array(["x"])}
    saver.save(
        tensors={**constant(1.0), "lr": 0.1, "betas": (0.9, np.float32(0.99))},
        shared=kept,
        own={"random": randomness.state(), **whole},
        progress=Progress(),
        wait=True,
    )
    tensors: dict[str, Any] = {**constant(2.0), "lr": 0.0, "betas": None}
    found = saver.load(tensors)
    assert found is not None
    assert found.own is not None
    assert same(found.shared, kept)
    assert all((found.own[name] == whole[name]).all() for name in whole)
    assert (tensors["lr"], tensors["betas"]) == (0.1, (0.9, np.float32(0.99)))


@dataclasses.dataclass
class Mine:
    """A type of a script's own."""

    value: int


def test_a_type_of_one_s_own_is_named_or_told_of_at_the_first_save(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"tensors": constant(1.0), "own": {}, "progress": Progress()}
    saver = Checkpointer(tmp_path, ALONE)
    with pytest.raises(Failed, match=r"could not be read again .*Mine.*add_safe_globals"):
        saver.save(**asked, shared={"mine": Mine(3)}, wait=True)
    with torch.serialization.safe_globals([Mine]):
        saver.save(**asked, shared={"mine": Mine(3)}, wait=True)
        found = saver.load(constant(2.0))
    assert found is not None
    assert found.shared == {"mine": Mine(3)}
