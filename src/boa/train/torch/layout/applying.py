"""A model in its layout, and what it weighs."""

from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch.distributed._composable import checkpoint
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import parallelize_module

from boa.train.torch.layout.layouts import Layout
from boa.train.torch.layout.needs import Sizes
from boa.train.torch.layout.tensor_plans import TensorPlan, split_layers
from boa.train.torch.ranks import Ranks
from boa.train.torch.wrapping import blocks, outline, plain


def weighed(model: nn.Module | Callable[[], nn.Module], plan: TensorPlan | None) -> Sizes:
    """Without building it, if it is given as a callable."""
    model = plain(outline(model))
    weights = _bytes(model.parameters())
    parts = [_bytes(block.parameters()) for block in blocks(model)]
    layers = {} if plan is None else split_layers(model, plan)
    split = sum(_bytes(layer.parameters(recurse=False)) for layer in layers.values())
    return Sizes(
        weights=weights,
        trained=_bytes(p for p in model.parameters() if p.requires_grad),
        block=max([*parts, weights - sum(parts)]),
        split=split / weights if weights else 0.0,
    )


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def laid_out(model: nn.Module, layout: Layout, ranks: Ranks, plan: TensorPlan | None) -> None:
    """In place, but for DDP. All ranks must."""
    mesh = _mesh(layout, ranks)
    if layout.tensor > 1:
        assert plan is not None
        parallelize_module(plain(model), mesh["tensor"], dict(plan))
    if layout.recompute:
        for block in blocks(model):
            checkpoint(block)
    if layout.shards != "ddp" and layout.data_ranks(ranks.world_size) > 1:
        after = layout.shards == "fsdp"
        for block in blocks(model):
            fully_shard(block, mesh=mesh["data"], reshard_after_forward=after)
        fully_shard(model, mesh=mesh["data"], reshard_after_forward=after)
    model.to(ranks.device)  # what was not cut


def _mesh(layout: Layout, ranks: Ranks) -> DeviceMesh:
    """Ranks that split layers are neighbours, on one node."""
    shape = (layout.data_ranks(ranks.world_size), layout.tensor)
    return init_device_mesh(ranks.device.type, shape, mesh_dim_names=("data", "tensor"))
