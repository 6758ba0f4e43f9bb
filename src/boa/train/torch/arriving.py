"""A number that is on its way from the device: asked for now, read when it is there."""

from collections import deque

import torch


class Arriving:
    """The sum of scalars of one iteration, without ever waiting for the device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._sum: torch.Tensor | None = None
        self._sent: deque[tuple[torch.Tensor, torch.cuda.Event | None]] = deque()

    def add(self, value: torch.Tensor) -> None:
        """One more summand of this iteration."""
        self._sum = value if self._sum is None else self._sum + value

    def send(self) -> None:
        """The iteration is over: start its sum on its way."""
        if self._sum is None:
            return
        if self._device.type == "cuda":
            host = torch.empty((), dtype=self._sum.dtype, pin_memory=True)
            host.copy_(self._sum, non_blocking=True)
            event = torch.cuda.Event()
            event.record()
            self._sent.append((host, event))
        else:
            self._sent.append((self._sum, None))
        self._sum = None

    def newest(self) -> float | None:
        """Of those that have arrived since the last time; None if there is none."""
        found = None
        while self._sent and (self._sent[0][1] is None or self._sent[0][1].query()):
            found = self._sent.popleft()[0]
        return None if found is None else float(found)
