"""Numbers that are on their way from the device: sent now, read when they are there."""

from collections import deque

import torch


class Arriving:
    """Nobody waits for them."""

    def __init__(self, numbers: torch.Tensor) -> None:
        self._event: torch.cuda.Event | None = None
        self._host = numbers
        if numbers.is_cuda:
            self._host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            self._host.copy_(numbers, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()

    @property
    def here(self) -> bool:
        return self._event is None or self._event.query()

    def values(self) -> list[float] | None:
        """None while they are not there."""
        found: list[float] | None = self._host.tolist() if self.here else None
        return found


class Sums:
    """Sums of scalars, one for every iteration."""

    def __init__(self) -> None:
        self._sum: torch.Tensor | None = None
        self._sent: deque[Arriving] = deque()

    def add(self, value: torch.Tensor) -> None:
        self._sum = value if self._sum is None else self._sum + value

    def send(self) -> None:
        """The iteration is over."""
        if self._sum is not None:
            self._sent.append(Arriving(self._sum.reshape(1)))
            self._sum = None

    def newest(self) -> float | None:
        """The newest sum that has arrived since the last call; None if there is none."""
        found = None
        while self._sent and self._sent[0].here:
            found = self._sent.popleft().values()
        return None if found is None else found[0]
