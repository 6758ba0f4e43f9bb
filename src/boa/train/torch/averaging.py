"""The mean of gradients over ranks: in a hook of DDP's, or after a backward that DDP left alone."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel

from boa.train.torch.norms import Tensors, local

Reduced: TypeAlias = torch.futures.Future[torch.Tensor]

CHUNK = 64 * 2**20
"""Bytes that are sent together: enough to be quick, and little beside a model."""


def averaged(group: dist.ProcessGroup, bucket: GradBucket) -> Reduced:
    """The average as DDP makes it without a hook, to the last digit."""
    work = dist.all_reduce(
        bucket.buffer(), _prepared(bucket.buffer(), group), group=group, async_op=True
    )
    assert work is not None
    reduced: Reduced = work.get_future().then(lambda future: future.value()[0])
    return reduced


def reduced_by(model: DistributedDataParallel) -> list[torch.nn.Parameter]:
    """The parameters that DDP averages, in an order that all ranks share."""
    ignored = model.parameters_to_ignore
    named = model.module.named_parameters()
    return [p for name, p in named if p.requires_grad and name not in ignored]


def average(model: DistributedDataParallel, parameters: Sequence[torch.nn.Parameter]) -> None:
    """Average as DDP would have at the end of a backward that was not synchronised.

    All `parameters` take part on every rank, zeros standing for a gradient that is missing here,
    so ranks never disagree about what is sent. What is missing on all ranks stays missing; what any
    rank has, all have afterwards. These are DDP's rules where it looks for unused parameters;
    where it does not, it raises an error in a later step, as ever.
    """
    missing = [n for n, parameter in enumerate(parameters) if parameter.grad is None]
    held = torch.ones(len(parameters), device=model.device)
    for number in missing:
        held[number] = 0.0
        parameters[number].grad = torch.zeros_like(parameters[number])
    gradients = [local(p.grad) for p in parameters if p.grad is not None]
    for chunk in _chunks(gradients):
        _average(chunk, model.process_group)
    dist.all_reduce(held, group=model.process_group)
    if missing:  # only then has anybody to wait for the answer
        for number in {n for n, holders in enumerate(held.tolist()) if not holders}:
            parameters[number].grad = None
    # a forward that is not synchronised leaves out the next broadcast of buffers
    model.require_forward_param_sync = True


def _chunks(gradients: Iterable[torch.Tensor]) -> Iterator[Tensors]:
    """Chunks of one kind each; a gradient that is larger than a chunk is one by itself."""
    kinds: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
    for gradient in gradients:
        kinds.setdefault((gradient.dtype, gradient.device), []).append(gradient)
    for kind in kinds.values():
        chunk: list[torch.Tensor] = []
        size = 0
        for gradient in kind:
            if chunk and size + gradient.nbytes > CHUNK:
                yield chunk
                chunk, size = [], 0
            chunk.append(gradient)
            size += gradient.nbytes
        yield chunk


def _average(gradients: Tensors, group: dist.ProcessGroup) -> None:
    """In place."""
    if len(gradients) == 1 and gradients[0].is_contiguous():
        dist.all_reduce(gradients[0], _prepared(gradients[0], group), group=group)
        return
    flat = gradients[0].new_empty(sum(g.numel() for g in gradients))
    parts = flat.split([g.numel() for g in gradients])
    views = [part.view(g.shape) for part, g in zip(parts, gradients, strict=True)]
    torch._foreach_copy_(views, gradients)
    dist.all_reduce(flat, _prepared(flat, group), group=group)
    torch._foreach_copy_(gradients, views)


def _prepared(buffer: torch.Tensor, group: dist.ProcessGroup) -> dist.ReduceOp.RedOpType:
    """The operation that makes the sum of it the mean.

    NCCL multiplies on its way; a pass over the gradient for that alone would cost more than all
    measuring.
    """
    if buffer.is_cuda and "cuda:nccl" in dist.get_backend_config(group):
        return dist.ReduceOp.AVG
    buffer.mul_(1.0 / group.size())
    return dist.ReduceOp.SUM
