"""Evaluation by all ranks: each takes a part of the data, every sample once, and sums are exact."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Subset

from boa.train.torch.data import moved
from boa.train.torch.ranks import Ranks
from boa.train.torch.replicas import Replica
from boa.train.torch.streams import is_stream


class Evaluation:
    """This rank's part of a data set, in order, in batches on the device.

    Parts differ by one sample at most, and none comes twice: ranks may have a different number of
    batches, and none at all. Where it begins, all ranks take over rank 0's buffers.
    """

    def __init__(
        self,
        dataset: Any,
        ranks: Ranks,
        replicas: Sequence[Replica],
        *,
        batch_size: int,
        **options: Any,
    ) -> None:
        if is_stream(dataset) or not hasattr(dataset, "__len__"):
            raise TypeError(
                f"evaluation: got a {type(dataset).__name__}; expected a map-style data set "
                "(__getitem__ and __len__)"
            )
        for name in ("shuffle", "sampler", "batch_sampler", "drop_last"):
            if options.get(name):
                raise ValueError(f"{name} is not an option of an evaluation: it takes every sample")
        self._ranks, self._replicas = ranks, replicas
        share = range(*(len(dataset) * (ranks.rank + n) // ranks.world_size for n in (0, 1)))
        pinned = ranks.device.type == "cuda"
        self._batches: DataLoader[Any] = DataLoader(
            Subset(dataset, share), batch_size, **{"pin_memory": pinned, **options}
        )

    def __iter__(self) -> Iterator[Any]:
        with ExitStack() as gathered:
            for replica in self._replicas:
                replica.share_buffers()
                gathered.enter_context(replica.gathered())
            for batch in self._batches:
                yield moved(batch, self._ranks.device)

    def __len__(self) -> int:
        """Batches of this rank."""
        return len(self._batches)


def total(value: Any, ranks: Ranks, copies: int = 1) -> Any:
    """The sum over ranks of a number or a tensor, in 64 bits, on all of them. `copies`: so many
    ranks in a row work on the same samples, and count as one."""
    if not isinstance(value, bool | int | float | torch.Tensor):
        kind = type(value).__name__
        raise TypeError(f"total: got a {kind}; expected numbers or tensors")
    given = torch.as_tensor(value).detach()
    wide = torch.float64 if given.is_floating_point() else torch.int64
    on_cpu = ranks.alone or "cpu" in dist.get_backend_config()
    summed = given.to("cpu" if on_cpu else ranks.device, wide, copy=True)
    if not ranks.alone:
        dist.all_reduce(summed)
    if copies > 1:
        summed = summed / copies if given.is_floating_point() else summed // copies
    return summed.to(given.device) if isinstance(value, torch.Tensor) else summed.item()


def gathered(value: Any, ranks: Ranks, copies: int = 1) -> Any:
    """The tensors, or lists, of all ranks one after the other, on all of them."""
    if not isinstance(value, list | torch.Tensor):
        raise TypeError(f"gather: got a {type(value).__name__}; expected a tensor or a list")
    if ranks.alone:
        return value
    parts: list[Any] = [None] * ranks.world_size
    dist.all_gather_object(parts, value if isinstance(value, list) else value.detach().cpu())
    parts = parts[::copies]
    if isinstance(value, list):
        return [each for part in parts for each in part]
    return torch.cat([part for part in parts if len(part)] or parts[:1]).to(value.device)
