"""Norms of gradients in a few launches on the device, without waiting for any of them."""

import math
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import nn
from torch.distributed.tensor import DTensor

Tensors: TypeAlias = tuple[torch.Tensor, ...] | list[torch.Tensor]


def norm(tensors: Tensors, weights: list[float] | None = None) -> torch.Tensor:
    """The norm of all together, at least in single precision; a tensor on their device.

    `weights` count the square of each. There has to be one at least.
    """
    double = any(tensor.dtype == torch.float64 for tensor in tensors)
    norms = torch._foreach_norm(tensors, 2, dtype=torch.float64 if double else torch.float32)
    if weights is not None:
        norms = torch._foreach_mul(norms, [math.sqrt(weight) for weight in weights])
    return joint(list(norms))


def joint(norms: list[torch.Tensor]) -> torch.Tensor:
    """The norm of the whole from the norms of its parts."""
    whole: torch.Tensor = torch.linalg.vector_norm(torch.stack(norms))
    return whole


def held(gradients: list[torch.Tensor], world: int) -> tuple[list[torch.Tensor], list[float]]:
    """Gradients that this rank holds, and the part of each it answers for.

    Of a shard that r ranks hold alike, each answers for 1/r.
    """
    pairs = [(local(gradient), 1.0 / _holders(gradient, world)) for gradient in gradients]
    pairs = [(gradient, weight) for gradient, weight in pairs if gradient.numel()]
    return [gradient for gradient, _ in pairs], [weight for _, weight in pairs]


def local(gradient: torch.Tensor) -> torch.Tensor:
    """This rank's shard, if it is one of those."""
    own = gradient.to_local() if isinstance(gradient, DTensor) else gradient
    return torch.view_as_real(own) if own.is_complex() else own


def _holders(gradient: torch.Tensor, world: int) -> int:
    """How many ranks hold the same shard; a gradient that is not sharded is with all of them."""
    if not isinstance(gradient, DTensor):
        return world
    mesh = gradient.device_mesh
    shards = [mesh.size(n) for n, at in enumerate(gradient.placements) if not at.is_replicate()]
    return world // math.prod(shards)


def clip(parameters: Sequence[torch.Tensor], most: float) -> None:
    """As `torch.nn.utils.clip_grad_norm_`, which takes no gradients of several kinds together:
    whole ones, and those of different meshes, as a model has whose layers are split."""
    kinds: dict[object, list[torch.Tensor]] = {}
    for parameter in parameters:
        gradient = parameter.grad
        if gradient is not None:
            kind = gradient.device_mesh if isinstance(gradient, DTensor) else None
            kinds.setdefault(kind, []).append(parameter)
    if len(kinds) < 2:
        nn.utils.clip_grad_norm_(parameters, most)
        return
    norms = [_whole(nn.utils.get_total_norm(_gradients(found))) for found in kinds.values()]
    for found in kinds.values():
        nn.utils.clip_grads_with_norm_(found, most, joint(norms))


def _gradients(parameters: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def _whole(value: torch.Tensor) -> torch.Tensor:
    return value.full_tensor() if isinstance(value, DTensor) else value
