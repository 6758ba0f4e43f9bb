"""A model on the device, in DDP; and its names without what is wrapped around it."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel

from boa.train.torch.ranks import Ranks

WHOLE = 0.4
"""Part of a device's memory that a model may take which is going to be cut."""
WRAPPERS = ("module", "_orig_mod")
"""Parts of names that DDP and torch.compile put there."""


def built(
    model: nn.Module | Callable[[], nn.Module], device: torch.device, *, cut: bool = False
) -> nn.Module:
    """On the device. What is given as a callable (a class, say) never is on the CPU at all, where
    drawing the first weights of a large model takes seconds at every start; but a model that is
    going to be `cut`, and would take much of the device, is moved piece by piece as it is."""
    made = model
    if not isinstance(model, nn.Module):
        whole = not cut or _bytes(outline(model)) <= WHOLE * _memory(device)
        with device if whole else nullcontext():
            made = model()
        if not isinstance(made, nn.Module):
            kind = type(made).__name__
            raise TypeError(f"wrap: got a {kind}; expected an nn.Module, or what makes one")
    assert isinstance(made, nn.Module)
    return made.to(device) if not cut or _bytes(made) <= WHOLE * _memory(device) else made


def outline(model: nn.Module | Callable[[], nn.Module]) -> nn.Module:
    """The model without its numbers, in hardly any time and memory."""
    if isinstance(model, nn.Module):
        return model
    with torch.device("meta"), torch.random.fork_rng(devices=[]):
        return model()


def _bytes(model: nn.Module) -> int:
    return sum(parameter.nbytes for parameter in model.parameters())


def _memory(device: torch.device) -> float:
    """Bytes of the device; without end where it is this machine's own."""
    if device.type != "cuda":
        return math.inf
    return float(torch.cuda.get_device_properties(device).total_memory)


def replicated(model: nn.Module, ranks: Ranks, *, find_unused: bool) -> DistributedDataParallel:
    """DDP over the model.

    DDP puts gradients into another order after its first step, and sums over three or more ranks
    are rounded by their place in that order. So the first step after a restart differs in the last
    bit from what it would have been. Where DDP looks for unused parameters, in every step, it keeps
    the order that it began with.
    """
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


def plain(model: nn.Module) -> nn.Module:
    """The model within what torch.compile made of it."""
    inner = getattr(model, "_orig_mod", None)
    return inner if isinstance(inner, nn.Module) else model


def sparse(model: nn.Module) -> bool:
    """Whether gradients of some parameters will be. DDP looks for the same."""
    tables = (m for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag))
    return any(table.sparse for table in tables)


def forget_wrappers(model: nn.Module, state: dict[str, Any], prefix: str, *_hooked: object) -> None:
    """Have a model read what was saved with DDP or torch.compile around it.

    A hook of `load_state_dict`: changes names in `state`, but for those that the model itself has.
    """
    own = model._modules.keys()
    for name in [name for name in state if name.startswith(prefix)]:
        rest = name[len(prefix) :]
        while (first := rest.partition(".")[0]) in WRAPPERS and first not in own:
            rest = rest.partition(".")[2]
        if rest and prefix + rest != name:
            state[prefix + rest] = state.pop(name)


def blocks(model: nn.Module) -> list[nn.Module]:
    """The layers of its longest list: what is gathered and freed, or recomputed, one by one."""
    lists = [list(p) for p in model.modules() if isinstance(p, nn.ModuleList | nn.Sequential)]
    return [
        part for part in max(lists, key=len, default=[]) if any(True for _ in part.parameters())
    ]
