"""A training that writes down all it sees, and stops only where its state can stay in memory."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn
from torch.utils.data import TensorDataset

from boa.train.keeper import far, pointer
from boa.train.keeper.client import KeeperClient
from boa.train.torch import Elastic
from boa.train.torch.checkpoint import Checkpointer, Loaded
from boa.train.torch.memory import flushing, handing
from checkpoint_ranks import whole
from keeping import until

SAMPLES, BATCH = 96, 24
READY = 4
"""Steps of a run after which there is memory, if there is a keeper."""


def train(
    interrupt: Callable[[int], None],
    *,
    epochs: int,
    dropout: float = 0.0,
    shard: bool = False,
    exact: bool = False,
) -> dict[str, Any]:
    """The state at the end. On the way every rank keeps a diary: how it loaded, its losses to the
    bit, and numbers drawn of every kind."""
    home = Path(os.environ["BOA_CHECKPOINT_DIR"])
    handing.LEAST_BYTES = 0
    left, loaded = pointer.newest(home), _watched()
    run = Elastic(batch_size=BATCH, save_every_s=1e9, shard=shard, exact=exact)
    model = run.wrap(lambda: _network(dropout))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    source = torch.Generator().manual_seed(1)
    x = torch.randn(SAMPLES, 8, generator=source)
    y = torch.sin(x @ torch.randn(8, 1, generator=source))
    batches = run.loader(TensorDataset(x, y))
    run.resume(model, optimizer)
    diary = home.parent / f"{os.environ['BOA_ATTEMPT']}-{run.ranks.rank}.jsonl"
    _note(diary, loaded)
    if left is not None and run.ranks.rank == 0:
        _put_on_disk(home, left.generation)
    done = 0
    for _ in run.epochs(epochs):
        for inputs, wanted in batches:
            loss = ((model(inputs) - wanted) ** 2).mean()
            drawn = [torch.rand(1).item(), numpy.random.rand(), random.random()]
            _note(diary, [run.steps, *(float(n).hex() for n in (loss.item(), *drawn))])
            run.step(loss)
            done += 1
            if done == READY and "BOA_KEEPER" in os.environ:
                until(lambda: run.has_memory)
            interrupt(done)
    model.eval()
    with torch.no_grad():
        total = float(((model(x) - y) ** 2).mean())
    return {"loss": total, "state": whole(run.state()), "steps": run.steps}


def diaries(home: Path, attempts: int, rank: int) -> tuple[list[Any], list[Any]]:
    """How each attempt loaded on this rank, and what it wrote down of its steps, all together."""
    heads, steps = [], []
    for number in range(1, attempts + 1):
        head, *rest = map(json.loads, (home / f"{number}-{rank}.jsonl").read_text().splitlines())
        heads.append(head)
        steps += rest
    return heads, steps


def _network(dropout: float) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Dropout(dropout), nn.Linear(32, 1))


def _watched() -> dict[str, Any]:
    """Filled when the state is loaded: from where, and in how many pieces from other nodes."""
    load, fetch = Checkpointer.load, far.fetch
    seen: dict[str, Any] = {"from": "nothing", "fetched": 0}

    def loading(self: Checkpointer, tensors: dict[str, Any]) -> Loaded | None:
        found = load(self, tensors)
        if found is not None:
            seen["from"] = "memory" if found.path is None else "disk"
        return found

    def fetching(*given: Any) -> None:
        seen["fetched"] += 1
        fetch(*given)

    Checkpointer.load = loading  # type: ignore[method-assign]
    far.fetch = fetching  # type: ignore[assignment]
    return seen


def _put_on_disk(home: Path, generation: str) -> None:
    """At once, for keepers that wait: they lend no more before."""
    folder = Path(os.environ["BOA_KEEPER"])
    flushing.write_out(home, folder, generation)
    KeeperClient(folder).release(generation)


def _note(diary: Path, entry: Any) -> None:
    with diary.open("a") as file:
        file.write(json.dumps(entry) + "\n")
