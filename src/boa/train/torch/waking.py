"""Have a GPU's libraries loaded before there is anything to do with them.

A process that waits for its turn to train calls `wake` (the local engine does so in spare workers).
A context takes a sixth of a second to make, and the kernels and the libraries of one step of a
transformer a third of a second to load, all of which a first step would wait for.
"""

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress

import torch
from torch import nn
from torch.nn import functional as F

from boa.train.torch.memory import ring

SPARE_BYTES = 3 << 30
"""A GPU with less memory free than this is left to who uses it."""
SIZE, LENGTH, WORDS = 128, 128, 256


def wake() -> None:
    """The GPU that this process will have, by its variables; without one, nothing."""
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    if not torch.cuda.is_available():
        return
    number = local_rank % torch.cuda.device_count()
    free = free_bytes(number)
    if free is None or free < SPARE_BYTES:
        return
    torch.cuda.set_device(number)
    torch.cuda.init()
    ring.make_ahead(int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
    with torch.random.fork_rng(devices=[number]):
        for each in (cublas, text, pictures):
            with suppress(RuntimeError):  # a library that is not there, or not for this GPU
                each(torch.device("cuda", number))
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def cublas(device: torch.device) -> None:
    """The least that a model needs."""
    for kind in (torch.float32, torch.bfloat16):
        square = torch.zeros(64, 64, device=device, dtype=kind)
        torch.mm(square, square)


def text(device: torch.device) -> None:
    """A step of a small transformer: attention, norms, a loss, gradients and their size, AdamW."""
    words = nn.Embedding(WORDS, SIZE, device=device)
    body = nn.Sequential(
        nn.LayerNorm(SIZE, device=device),
        nn.Linear(SIZE, 3 * SIZE, device=device),
    )
    after = nn.Sequential(nn.Linear(SIZE, SIZE, device=device), nn.GELU())
    numbers = torch.zeros(4, LENGTH, dtype=torch.int64, device=device)

    def loss() -> torch.Tensor:
        first = words(numbers)
        q, k, v = body(first).view(4, LENGTH, 3, 2, SIZE // 2).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = first + after(seen.transpose(1, 2).reshape(4, LENGTH, SIZE))
        return F.cross_entropy(F.linear(x, words.weight).flatten(0, 1), numbers.flatten())

    _step([*words.parameters(), *body.parameters(), *after.parameters()], loss)


def pictures(device: torch.device) -> None:
    """A step of a small convolution."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 16),
    ).to(device)
    shown = torch.zeros(4, 3, 32, 32, device=device).to(memory_format=torch.channels_last)
    answers = torch.zeros(4, dtype=torch.int64, device=device)
    _step(list(model.parameters()), lambda: F.cross_entropy(model(shown), answers))


def _step(parameters: list[nn.Parameter], loss: Callable[[], torch.Tensor]) -> None:
    """As scripts take them: mixed precision, and an optimiser that is fused."""
    optimizer = torch.optim.AdamW(parameters, fused=True)
    with torch.autocast(parameters[0].device.type, torch.bfloat16):
        value = loss()
    value.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    torch._foreach_norm([p.grad for p in parameters if p.grad is not None])
    optimizer.step()
    value.item()


def free_bytes(number: int) -> int | None:
    """Memory of a visible GPU that nobody uses, as the driver says without being woken."""
    with suppress(OSError, AttributeError, ValueError):
        driver = ctypes.CDLL("libnvidia-ml.so.1")
        handle, sizes = ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
        ready = driver.nvmlInit_v2() == 0 and _handle(driver, number, handle) == 0
        if ready and driver.nvmlDeviceGetMemoryInfo(handle, sizes) == 0:
            return int(sizes[1])
    return None


def _handle(driver: ctypes.CDLL, number: int, handle: ctypes.c_void_p) -> int:
    """The GPU by its number or name, as it is visible."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    name = visible[number] if number < len(visible) and visible[number] else str(number)
    if name.isdigit():
        return int(driver.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(handle)))
    return int(driver.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)))
