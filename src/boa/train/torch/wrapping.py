"""A model on all ranks: built on the device, wrapped, and switched between syncing or not."""

from collections.abc import Callable

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel

from boa.train.torch.ranks import Ranks


def built(model: nn.Module | Callable[[], nn.Module], device: torch.device) -> nn.Module:
    """On the device. What is given as a callable (a class, say) never is on the CPU at all, where
    drawing the first weights of a large model takes seconds at every start."""
    if isinstance(model, nn.Module):
        return model.to(device)
    with device:
        return model().to(device)


def wrapped(model: nn.Module, ranks: Ranks, *, shard: bool, find_unused: bool) -> nn.Module:
    """In DDP, or sharded by FSDP2; alone, as it is.

    DDP puts gradients into another order after its first step, and sums over three or more ranks
    are rounded by their place in that order. So the first step after a restart differs in the last
    bit from what it would have been. Where DDP looks for unused parameters, in every step, it keeps
    the order that it began with.
    """
    if ranks.alone:
        return model
    if shard:
        for part in _blocks(model):
            fully_shard(part)
        fully_shard(model)  # in place: it is an FSDPModule from now on
        return model
    return DistributedDataParallel(
        model,
        device_ids=[ranks.device] if ranks.device.type == "cuda" else None,
        gradient_as_bucket_view=True,
        find_unused_parameters=find_unused,
    )


def synchronise(model: nn.Module, on: bool) -> None:
    """Whether the next forward and backward end in a sum over ranks."""
    if isinstance(model, DistributedDataParallel):
        model.require_backward_grad_sync = on
    elif isinstance(model, FSDPModule):
        model.set_requires_gradient_sync(on)


def sparse(model: nn.Module) -> bool:
    """Whether gradients of some parameters will be. DDP looks for the same."""
    tables = (m for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag))
    return any(table.sparse for table in tables)


def _blocks(model: nn.Module) -> list[nn.Module]:
    """The layers of its longest list: what is gathered and freed one by one."""
    lists = [list(p) for p in model.modules() if isinstance(p, nn.ModuleList | nn.Sequential)]
    return [
        part for part in max(lists, key=len, default=[]) if any(True for _ in part.parameters())
    ]
