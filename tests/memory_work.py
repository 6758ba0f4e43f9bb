"""What ranks do in the tests of state that goes through memory."""

import os
import signal
from pathlib import Path
from typing import Any

import torch

from boa.train import Progress
from boa.train.keeper.client import KeeperClient
from boa.train.torch.checkpoint import Checkpointer
from boa.train.torch.memory import handing
from boa.train.torch.memory.pieces import PieceWriter
from boa.train.torch.ranks import Ranks
from checkpoint_ranks import same, trained, whole
from keeping import until


def on_node(home: str, keepers: list[str], ranks: Ranks) -> Checkpointer:
    """Ranks are dealt out over the nodes, whose keepers these are."""
    handing.LEAST_BYTES = 0
    return Checkpointer(Path(home), ranks, Path(keepers[ranks.rank % len(keepers)]))


def leave(ranks: Ranks, say: Any, home: str, keepers: list[str], sharded: bool, step: int) -> None:
    """Have a state and leave it in memory; what it is goes to a file."""
    state = trained(ranks, sharded=sharded, seed=step)
    expected = whole(state)
    saver = on_node(home, keepers, ranks)
    saver.reserve(lambda: state)
    until(lambda: saver.has_memory)
    own = {"rank": ranks.rank}
    if ranks.rank == 0:
        torch.save(expected, f"{home}.pt")
    assert saver.save(
        tensors=state, shared=own, own=own, progress=Progress(step=step), leaving=True
    )
    saver.close()


def take(
    ranks: Ranks, say: Any, home: str, keepers: list[str], sharded: bool
) -> tuple[int, bool, Any]:
    """The step that was found, whether all of it is the same, and what `own` is."""
    state = trained(ranks, sharded=sharded, seed=99)
    saver = on_node(home, keepers, ranks)
    loaded = saver.load(state)
    assert loaded is not None
    expected = torch.load(f"{home}.pt")
    found = loaded.progress.step, same(whole(state), expected), loaded.own
    saver.close()
    return found


def leave_and_die(
    ranks: Ranks, say: Any, home: str, keepers: list[str], step: int, point: str
) -> None:
    """Rank 1 is killed at this point of the hand-over."""
    if ranks.rank == 1:
        owner, name = {
            "copying": (PieceWriter, "write_data"),
            "keeping": (KeeperClient, "keep"),
            "telling": (KeeperClient, "where"),
        }[point]
        setattr(owner, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    leave(ranks, say, home, keepers, False, step)
