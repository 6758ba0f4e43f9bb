"""The compiled carrier, with a driver whose device is this machine's own memory."""

import ctypes
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.train.keeper.stripes import GRAIN, Stripes
from boa.train.torch.memory import carrier
from boa.train.torch.memory.carrier import BLOCK, Carrier, Driver, Grain

pytestmark = pytest.mark.skipif(
    carrier._library is None and not os.environ.get("CI"), reason="no C compiler was there"
)
ADDRESS, SIZE = ctypes.c_void_p, ctypes.c_size_t
FAILS = 719


class Device:
    """Copies at once, and notes what was asked of it."""

    def __init__(self, fails_at: int | None = None) -> None:
        self._fails_at, self.copies, self.contexts = fails_at, 0, set[int]()
        copy = ctypes.CFUNCTYPE(ctypes.c_int, ADDRESS, ADDRESS, SIZE, ADDRESS)
        told = ctypes.CFUNCTYPE(ctypes.c_int, ADDRESS)
        self._kept: list[Any] = [told(self._enter), copy(self._copy), copy(self._copy), told(_fine)]
        self.driver = Driver(*(ctypes.cast(each, ADDRESS) for each in self._kept))

    def _enter(self, context: int) -> int:
        self.contexts.add(context)
        return 0

    def _copy(self, to: int, source: int, count: int, _stream: int) -> int:
        if self.copies == self._fails_at:
            return FAILS
        self.copies += 1
        ctypes.memmove(to, source, count)
        return 0


def _fine(_stream: int) -> int:
    return 0


@pytest.fixture(scope="module")
def memory() -> Iterator[Stripes]:
    made = Stripes.made(3 * GRAIN)
    yield made
    made.close()


def carried(device: Device, memory: Stripes, near: bytearray, at: int, *, out: bool) -> None:
    address = ctypes.addressof(ctypes.c_char.from_buffer(near))
    spans = memory.spans(at, len(near))
    grains = [Grain(address + span.at, *span[1:]) for span in spans]
    work = Carrier(device.driver, 7, grains, out=out)
    buffers = [ctypes.create_string_buffer(2 * BLOCK) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(work.work, (1, 2), ctypes.addressof(b)) for b in buffers]:
            done.result()


@settings(max_examples=25)
@given(st.integers(0, GRAIN + 5), st.integers(1, 2 * GRAIN - 5), st.integers(0, 255))
def test_what_was_carried_out_comes_back(memory: Stripes, at: int, size: int, seed: int) -> None:
    content = bytes((seed + n) % 256 for n in range(256)) * (size // 256 + 1)
    near, device = bytearray(content[:size]), Device()
    carried(device, memory, near, at, out=True)
    assert memory.read(at, size) == near
    back = bytearray(size)
    carried(device, memory, back, at, out=False)
    assert back == near
    assert device.contexts <= {7}


def test_an_error_of_the_driver_is_told(memory: Stripes) -> None:
    for out in (True, False):
        with pytest.raises(RuntimeError, match=str(FAILS)):
            carried(Device(fails_at=1), memory, bytearray(2 * GRAIN), 0, out=out)


def test_files_that_end_too_soon_are_told() -> None:
    short = Stripes.made(GRAIN)
    with pytest.raises(OSError, match="data"):
        carried(Device(), short, bytearray(GRAIN), 0, out=False)
    short.close()
    with pytest.raises(OSError, match="descriptor"):
        carried(Device(), Stripes([-1] * 16, GRAIN), bytearray(GRAIN), 0, out=True)
