"""Real ranks for the tests of checkpoints: forked from a parent that has imported torch."""

import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from boa.train.torch.checkpoint import Checkpointer
from boa.train.torch.ranks import Ranks

WAIT_S = 300.0
_context = multiprocessing.get_context("forkserver")
# the parent does not see the tests' folder; an optimiser imports torch._dynamo when it is made
_context.set_forkserver_preload(
    ["torch._dynamo", "torch.distributed.fsdp", "boa.train.torch.checkpoint"]
)


class World:
    def __init__(self, processes: list[ForkServerProcess], pipes: list[Connection]) -> None:
        self.processes, self.pipes = processes, pipes

    def hear(self, rank: int) -> Any:
        """What the rank says next."""
        assert self.pipes[rank].poll(WAIT_S), f"rank {rank} says nothing"
        return self.pipes[rank].recv()

    def results(self) -> list[Any]:
        found = [self.hear(rank) for rank in range(len(self.processes))]
        for ok, value in found:
            assert ok, value
        for process in self.processes:
            process.join(WAIT_S)
        return [value for _, value in found]


@contextmanager
def world(size: int, work: Callable[..., Any], *arguments: Any) -> Iterator[World]:
    """`work(ranks, say, *arguments)` on so many ranks; whatever is left of them is killed."""
    with tempfile.TemporaryDirectory() as meeting:
        pairs = [_context.Pipe() for _ in range(size)]
        processes = [
            _context.Process(
                target=_rank, args=(rank, size, f"{meeting}/store", pair[1], work, arguments)
            )
            for rank, pair in enumerate(pairs)
        ]
        try:
            for process in processes:
                process.start()
            for _, theirs in pairs:
                theirs.close()
            yield World(processes, [ours for ours, _ in pairs])
        finally:
            for process in processes:
                process.kill()
                process.join(WAIT_S)
            for ours, _ in pairs:
                ours.close()


def run(size: int, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What it gives on each rank."""
    with world(size, work, *arguments) as started:
        return started.results()


def _rank(
    rank: int,
    size: int,
    meeting: str,
    pipe: Connection,
    work: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    if size > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
    ranks = Ranks(rank, size, rank, 1, torch.device("cpu"))
    with suppress(BrokenPipeError):
        try:
            pipe.send((True, work(ranks, pipe.send, *arguments)))
        except Exception:
            pipe.send((False, traceback.format_exc()))
    if size > 1:
        dist.destroy_process_group()


def trained(ranks: Ranks, *, sharded: bool, seed: int) -> dict[str, Any]:
    """Model and optimiser after a step; the model in shards (FSDP2) if so wanted."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(301, 1001),  # large enough to be spread over ranks, and no multiple of them
        nn.BatchNorm1d(1001),
        nn.Linear(1001, 7),
    )
    if sharded and not ranks.alone:
        fully_shard(model, mesh=init_device_mesh("cpu", (ranks.world_size,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01 * (seed + 1))
    model(torch.randn(8, 301)).square().mean().backward()
    optimizer.step()
    states = get_state_dict(model, optimizer)
    return {"model": states[0], "optimizer": states[1]}


def whole(state: Any) -> Any:
    """With every shard, on every rank."""
    if isinstance(state, dict):
        return {key: whole(value) for key, value in state.items()}
    if isinstance(state, list):
        return [whole(value) for value in state]
    if isinstance(state, DTensor):
        return state.full_tensor().detach()
    return state.detach().clone() if isinstance(state, torch.Tensor) else state


def same(one: Any, other: Any) -> bool:
    """To the bit."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return bool(one == other)


def checkpointer(home: str, ranks: Ranks) -> Checkpointer:
    return Checkpointer(Path(home), ranks)
