"""The processes of a job: who this one is, and how they talk."""

import os
import threading
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist

from boa.train import context
from boa.train.torch.waking import cublas


@dataclass(frozen=True, slots=True)
class Ranks:
    rank: int
    world_size: int
    local_rank: int
    nodes: int
    device: torch.device

    @property
    def alone(self) -> bool:
        return self.world_size == 1

    @property
    def local_world(self) -> int:
        """Ranks of a node, if all have as many."""
        return self.world_size // self.nodes

    def dealt(self, copies: int) -> "Ranks":
        """As if so many neighbours were one: they work on the same samples."""
        return replace(self, rank=self.rank // copies, world_size=self.world_size // copies)


def join() -> Ranks:
    """Take this process's place. Tensors on the CPU go by Gloo, those on GPUs by NCCL.

    Without torchrun's variables, or with a world of one: a process on its own, and no group.
    """
    job = context()
    local_world = int(os.environ.get("LOCAL_WORLD_SIZE", job.world_size))
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    device = torch.device("cuda", job.local_rank % gpus) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
        torch.cuda.init()
        # have cuBLAS loaded when the first step needs it: that takes as long as building a model
        threading.Thread(target=cublas, args=[device], name="boa-wake", daemon=True).start()
    if job.world_size > 1 and not dist.is_initialized():
        # NCCL refuses two processes on one GPU
        dist.init_process_group("cpu:gloo,cuda:nccl" if gpus >= local_world else "gloo")
    nodes = -(-job.world_size // max(local_world, 1))
    return Ranks(job.rank, job.world_size, job.local_rank, nodes, device)
