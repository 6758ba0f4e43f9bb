"""Copies between a GPU and memory that processes share, about as fast as the bus is.

The driver copies straight only to memory that is locked, and locking that of a large model takes
seconds in which the GPU stands still. So a few threads have a small locked buffer each, and carry.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch

from boa.train.keeper.stripes import GRAIN, Stripes
from boa.train.torch.memory import carrier

MOST_THREADS = 14


@dataclass(frozen=True, slots=True)
class Move:
    """Bytes on the device, and where they are in shared memory."""

    near: torch.Tensor
    memory: Stripes
    at: int

    def grains(self) -> list["Move"]:
        """In pieces that lie in one file each."""
        found, done = [], 0
        while done < self.near.numel():
            length = min(GRAIN - (self.at + done) % GRAIN, self.near.numel() - done)
            found.append(Move(self.near[done : done + length], self.memory, self.at + done))
            done += length
        return found


class Buffer:
    """Memory that a thread carries in: a grain, or what the compiled carrier needs."""

    def __init__(self, *, locked: bool) -> None:
        size = 2 * carrier.BLOCK if locked and carrier.cuda() is not None else GRAIN
        self._content = torch.empty(size, dtype=torch.uint8, pin_memory=locked)
        self._view = view_of(self._content)

    @property
    def address(self) -> int:
        return self._content.data_ptr()

    def first(self, count: int) -> tuple[torch.Tensor, memoryview]:
        """So many of its bytes, for torch and for the system."""
        if count == GRAIN:  # nearly always: threads wait for one another in whatever is done here
            return self._content, self._view
        return self._content[:count], self._view[:count]


_ahead: list[Buffer] = []
"""Made before there was a ring."""


def threads_of(ranks_here: int) -> int:
    """Threads to carry with, of each of so many ranks on a node."""
    cores = len(os.sched_getaffinity(0)) // max(ranks_here, 1)
    return max(min(MOST_THREADS, cores - 1), 2)


def make_ahead(ranks_here: int) -> None:
    """Locked buffers, for the ring that this process will have."""
    _ahead.extend(Buffer(locked=True) for _ in range(threads_of(ranks_here) - len(_ahead)))


class Ring:
    """One user at a time."""

    def __init__(self, device: torch.device, ranks_here: int) -> None:
        self._device, self._threads = device, threads_of(ranks_here)
        self._buffers: list[Buffer] = []
        self._making = threading.Lock()

    def prepare(self) -> None:
        """Lock the buffers, before somebody waits for it."""
        with self._making:
            while len(self._buffers) < self._threads:
                locked = self._device.type == "cuda"
                ahead = _ahead.pop() if locked and _ahead else None
                self._buffers.append(ahead or Buffer(locked=locked))

    def out(self, moves: Sequence[Move]) -> None:
        """From the device to shared memory."""

        def carry(buffer: Buffer, stream: torch.cuda.Stream | None, move: Move) -> None:
            staged, view = buffer.first(move.near.numel())
            staged.copy_(move.near, non_blocking=True)
            if stream is not None:
                stream.synchronize()
            move.memory.write(move.at, view)

        self._carry(moves, carry, out=True)

    def into(self, moves: Sequence[Move]) -> None:
        """From shared memory to the device."""

        def carry(buffer: Buffer, stream: torch.cuda.Stream | None, move: Move) -> None:
            if stream is not None:
                stream.synchronize()  # what the buffer had is there
            staged, view = buffer.first(move.near.numel())
            move.memory.read_into(move.at, view)
            move.near.copy_(staged, non_blocking=True)

        self._carry(moves, carry, out=False)

    def _carry(
        self,
        moves: Sequence[Move],
        carry: Callable[[Buffer, torch.cuda.Stream | None, Move], None],
        *,
        out: bool,
    ) -> None:
        self.prepare()
        driver = None
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()  # what is copied is there
            driver = carrier.cuda()
        if driver is not None:
            self._carry_compiled(driver, moves, out=out)
            return
        left, taking = iter([grain for move in moves for grain in move.grains()]), threading.Lock()

        @torch.no_grad()
        def work(buffer: Buffer) -> None:
            stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
            with torch.cuda.stream(stream):
                while True:
                    with taking:
                        move = next(left, None)
                    if move is None:
                        break
                    carry(buffer, stream, move)
            if stream is not None:
                stream.synchronize()

        self._together(work)

    def _carry_compiled(self, driver: carrier.Driver, moves: Sequence[Move], *, out: bool) -> None:
        grains = [
            carrier.Grain(move.near.data_ptr() + span.at, span.file, span.offset, span.length)
            for move in moves
            for span in move.memory.spans(move.at, move.near.numel())
        ]
        with torch.cuda.device(self._device):
            carried = carrier.Carrier(driver, carrier.context(), grains, out=out)

        def work(buffer: Buffer) -> None:
            first, second = (torch.cuda.Stream(self._device) for _ in range(2))
            carried.work((first.cuda_stream, second.cuda_stream), buffer.address)

        self._together(work)

    def _together(self, work: Callable[[Buffer], None]) -> None:
        with ThreadPoolExecutor(self._threads, "boa-ring") as pool:
            for done in [pool.submit(work, buffer) for buffer in self._buffers]:
                done.result()


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory, if it lies in one piece, or else a copy."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def view_of(content: torch.Tensor) -> memoryview:
    """The memory of a tensor of bytes on the host."""
    return memoryview(content.numpy())  # type: ignore[arg-type]
