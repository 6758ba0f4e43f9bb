"""Worker processes of data loaders: they outlive the SIGTERM that asks the whole job to stop."""

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawValue
from multiprocessing.util import Finalize
from types import FrameType
from typing import Any

from torch.utils.data import get_worker_info


def guarded(
    loader: object, then: Callable[[int], None] | None, *, inner: bool = False
) -> "WorkerStart":
    """For `worker_init_fn`; `then` is the user's own.

    `loader`: whose end is the end of its workers.
    """
    closing = RawValue(ctypes.c_bool, False)
    # Before multiprocessing ends its children with SIGTERM and waits for them.
    Finalize(loader, _set, (closing,), exitpriority=100)
    return WorkerStart(closing, then, inner)


@dataclass(frozen=True, slots=True)
class WorkerStart:
    """First thing in a worker process: outlive the SIGTERM that asks the whole job to stop.

    The last iteration and the checkpoint come after it, and PyTorch raises an error in a rank whose
    worker died. The rank ends its workers itself, when it ends or lets go of the loader.
    """

    closing: Any  # a shared bool
    then: Callable[[int], None] | None
    inner: bool
    """Whether the worker's data set has the user's own in it."""

    def __call__(self, worker: int) -> None:
        parent = os.getppid()

        def on_stop(number: int, frame: FrameType | None) -> None:
            if self.closing.value or os.getppid() != parent:
                os._exit(0)

        signal.signal(signal.SIGTERM, on_stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        info: Any = get_worker_info()
        if self.inner:
            object.__setattr__(info, "dataset", info.dataset.dataset)  # for `then`
        if self.then is not None:
            self.then(worker)


@contextmanager
def no_stop() -> Iterator[None]:
    """Hold SIGTERM back while workers begin: they are born with it blocked, until they are safe."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _set(flag: Any) -> None:
    flag.value = True
