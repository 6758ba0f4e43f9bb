"""The compiled carrier of grains, if this installation has it: `_carry.c`, through ctypes.

Threads of Python wait for one another between two grains: 48.8 GB left an H200 in 1.5 s with 14 of
them, and in 1.3 s so.
"""

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from boa import compiled

BLOCK = 4 << 20
"""Bytes on the bus at a time, of each thread; twice as many are locked. With 1 MB the driver cannot
keep up, and 8 do not stay in the cache."""


class Driver(ctypes.Structure):
    """Functions by which memory of a device is copied."""

    _fields_ = (
        ("set_context", ctypes.c_void_p),
        ("to_host", ctypes.c_void_p),
        ("to_device", ctypes.c_void_p),
        ("synchronize", ctypes.c_void_p),
    )


class Grain(NamedTuple):
    """Bytes of the device by address, and the file that they belong into."""

    near: int
    file: int
    offset: int
    length: int


class _Thread(ctypes.Structure):
    _fields_ = (
        ("driver", ctypes.POINTER(Driver)),
        ("context", ctypes.c_void_p),
        ("streams", ctypes.c_void_p * 2),
        ("blocks", ctypes.c_void_p * 2),
        ("block", ctypes.c_int64),
    )


_library = compiled.load(__file__, "_carry")


@cache
def cuda() -> Driver | None:
    """NVIDIA's; None: there is none, or nothing to use it with."""
    if _library is None:
        return None
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        names = ("cuCtxSetCurrent", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2")
        functions = [getattr(driver, name) for name in (*names, "cuStreamSynchronize")]
    except (OSError, AttributeError):
        return None
    return Driver(*(ctypes.cast(function, ctypes.c_void_p) for function in functions))


def context() -> int:
    """This thread's."""
    found = ctypes.c_void_p()
    ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(found))
    return found.value or 0


class Carrier:
    """All grains of one copy. Threads call `work`, each with streams and blocks of its own."""

    def __init__(self, driver: Driver, where: int, grains: Sequence[Grain], *, out: bool) -> None:
        """`where`: the context."""
        self._driver, self._where, self._out = driver, where, out
        flat = [number for grain in grains for number in grain]
        self._grains, self._count = (ctypes.c_int64 * len(flat))(*flat), len(grains)
        self._next = ctypes.c_int64(0)

    def work(self, streams: tuple[int, int], buffer: int) -> None:
        """Until there are none left. `buffer`: two blocks. OSError: what the files say;
        RuntimeError: what the driver does."""
        assert _library is not None
        thread = _Thread(
            ctypes.pointer(self._driver),
            self._where,
            (ctypes.c_void_p * 2)(*streams),
            (ctypes.c_void_p * 2)(buffer, buffer + BLOCK),
            BLOCK,
        )
        failed = _library.boa_carry(
            ctypes.byref(thread),
            self._grains,
            ctypes.c_int64(self._count),
            ctypes.byref(self._next),
            ctypes.c_int(self._out),
        )
        if failed > 0:
            raise OSError(failed, os.strerror(failed))
        if failed < 0:
            raise RuntimeError(f"the GPU's driver cannot copy: error {-failed}")
