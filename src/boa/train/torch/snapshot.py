"""A copy of the training state, taken so fast that training hardly notices.

On a GPU with room for it, tensors are cloned there, which takes milliseconds; they travel to the
host in the background, beside the training. Without the room they go to the host straight away.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
from torch.distributed.tensor import DTensor

MARGIN_BYTES = 1 << 30
"""Left free on the GPU, for what training may still need."""


class Snapshots:
    """Takes them one at a time: the buffers on the host are used again for the next one."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._buffers = device, _Buffers()

    @torch.no_grad()
    def take(self, values: Mapping[str, Any]) -> "Snapshot":
        """Nothing that happens to the values from now on changes it."""
        frozen: dict[str, Any] = {}
        moving: dict[str, torch.Tensor] = {}
        for name, value in values.items():
            local = local_of(value)
            if not isinstance(local, torch.Tensor):
                frozen[name] = deepcopy(local)
            elif local.is_cuda:
                moving[name] = local
            else:
                frozen[name] = self._buffers.get(name, local).copy_(local)
        snapshot = Snapshot(self._buffers, frozen, moving, self._device)
        if not (moving and self._has_room(moving) and snapshot.clone()):
            snapshot.land()
        return snapshot

    def hold(self, values: Mapping[str, Any]) -> "Snapshot":
        """A snapshot with host values as they are: for who changes nothing before all is
        written."""
        local = {name: local_of(value) for name, value in values.items()}
        moving = {name: value for name, value in local.items() if getattr(value, "is_cuda", False)}
        return Snapshot(self._buffers, local, moving, self._device)

    def _has_room(self, tensors: Mapping[str, torch.Tensor]) -> bool:
        needed = sum(tensor.nbytes for tensor in tensors.values())
        free, _ = torch.cuda.mem_get_info(self._device)
        cached = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(
            self._device
        )
        # what is cached lies in pieces, so it only counts where there is plenty
        return needed + MARGIN_BYTES <= free + cached // 2


class Snapshot:
    def __init__(
        self,
        buffers: "_Buffers",
        frozen: dict[str, Any],
        moving: dict[str, torch.Tensor],
        device: torch.device,
    ) -> None:
        self._buffers, self._frozen, self._moving, self._device = buffers, frozen, moving, device
        self._cloned: torch.cuda.Event | None = None

    def clone(self) -> bool:
        """On the GPU, in the order of training's stream; False if there is no room after all."""
        try:
            self._moving = {name: tensor.clone() for name, tensor in self._moving.items()}
        except torch.OutOfMemoryError:
            return False
        self._cloned = torch.cuda.Event()
        self._cloned.record(torch.cuda.current_stream(self._device))
        return True

    @torch.no_grad()
    def land(self) -> dict[str, Any]:
        """All of it on the host. Calling it again costs nothing."""
        if not self._moving:
            return self._frozen
        stream = torch.cuda.current_stream(self._device)
        if self._cloned is not None:  # we are in the background: not to queue behind training
            stream = torch.cuda.Stream(self._device)
            stream.wait_event(self._cloned)
        with torch.cuda.stream(stream):
            for name, tensor in self._moving.items():
                self._frozen[name] = self._buffers.get(name, tensor).copy_(
                    tensor, non_blocking=True
                )
        stream.synchronize()
        self._moving = {}  # after their last use, so that training may have the memory
        return self._frozen


class _Buffers:
    """Memory on the host that stays ours, because new memory is slow.

    It is not page-locked: getting a gigabyte of that stops all work on the GPU for most of a
    second. And it is written to by all cores before the GPU's driver does it with one, page by
    page: ten times as fast.
    """

    def __init__(self) -> None:
        self._known: dict[str, torch.Tensor] = {}

    def get(self, name: str, like: torch.Tensor) -> torch.Tensor:
        buffer = self._known.get(name)
        if buffer is None or (buffer.shape, buffer.dtype) != (like.shape, like.dtype):
            buffer = torch.zeros_like(like, device="cpu")
            self._known[name] = buffer
        return buffer


def tensor_bytes(value: Any) -> int:
    """Bytes of all tensors in dictionaries, lists and tuples."""
    if isinstance(value, torch.Tensor):
        return int(local_of(value).nbytes)
    if isinstance(value, Mapping):
        return sum(map(tensor_bytes, value.values()))
    return sum(map(tensor_bytes, value)) if isinstance(value, list | tuple) else 0


def local_of(value: Any) -> Any:
    if isinstance(value, DTensor):
        value = value.to_local()
    return value.detach() if isinstance(value, torch.Tensor) else value
