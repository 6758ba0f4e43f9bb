"""What is run to wake a GPU's libraries: here on the CPU, where it runs as well."""

import ctypes
import os
import threading
from types import SimpleNamespace

import pytest
import torch

from boa.train.torch import ranks, waking
from boa.train.torch.memory import ring

CPU = torch.device("cpu")


@pytest.mark.filterwarnings("ignore:mkldnn_matmul")
@pytest.mark.parametrize("step", [waking.cublas, waking.text, waking.pictures])
def test_every_step_runs(step: object) -> None:
    step(CPU)  # type: ignore[operator]


def test_without_a_gpu_nothing_is_woken() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    before = torch.get_rng_state()
    waking.wake()
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.cuda.is_initialized()
    assert not ring._ahead


def test_a_machine_without_a_driver_has_no_free_memory_to_tell_of() -> None:
    if os.path.exists("/proc/driver/nvidia"):
        pytest.skip("there is one")
    assert waking.free_bytes(0) is None


class Driver:
    """Answers as NVIDIA's does, for the GPUs that it is asked for."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def nvmlDeviceGetHandleByIndex_v2(self, number: int, _handle: object) -> int:  # noqa: N802
        self.asked.append(number)
        return 0

    def nvmlDeviceGetHandleByUUID(self, name: bytes, _handle: object) -> int:  # noqa: N802
        self.asked.append(name)
        return 0


@pytest.mark.parametrize(
    ("visible", "number", "asked"),
    [("", 1, 1), ("4,6", 1, 6), ("GPU-12,GPU-34", 0, b"GPU-12"), ("3", 0, 3)],
)
def test_a_gpu_is_the_one_that_is_visible_under_its_number(
    visible: str, number: int, asked: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    driver = Driver()
    assert waking._handle(driver, number, ctypes.c_void_p()) == 0  # type: ignore[arg-type]
    assert driver.asked == [asked]


def test_each_rank_wakes_its_own_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread begins on the first one: there, every rank would have a context."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    for name in ("set_device", "init"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    woken: list[torch.device] = []
    monkeypatch.setattr(ranks, "cublas", woken.append)
    third = SimpleNamespace(rank=0, world_size=1, local_rank=2)
    monkeypatch.setattr(ranks, "context", lambda: third)
    device = ranks.join().device
    for thread in threading.enumerate():
        if thread.name == "boa-wake":
            thread.join()
    assert woken == [device] == [torch.device("cuda", 2)]
