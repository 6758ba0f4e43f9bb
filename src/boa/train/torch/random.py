"""The random number generators of a process: Python's, NumPy's, torch's, and its GPU's."""

import random
import sys
from typing import Any

import torch


def state() -> dict[str, Any]:
    """Everything drawn after `restore` of it is what would have been drawn now."""
    found: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if (numpy := sys.modules.get("numpy")) is not None:
        found["numpy"] = numpy.random.get_state()
    if torch.cuda.is_available():
        found["cuda"] = torch.cuda.get_rng_state()
    return found


def restore(state: dict[str, Any]) -> None:
    """Restore the random states; one that is not given, or that this process lacks, stays as it
    is."""
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if "numpy" in state:
        import numpy

        numpy.random.set_state(state["numpy"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def fresh(seed: int, step: int, rank: int) -> dict[str, Any]:
    """For a rank without a saved state: its own numbers, and the same ones every time.

    Changes nothing of this process.
    """
    import numpy

    words = numpy.random.SeedSequence([seed % 2**64, step, rank]).generate_state(4)
    mixed = [int(word) for word in words]
    found: dict[str, Any] = {
        "python": random.Random(mixed[0]).getstate(),
        "numpy": numpy.random.RandomState(mixed[1]).get_state(),
        "torch": torch.Generator().manual_seed(mixed[2]).get_state(),
    }
    if torch.cuda.is_available():
        generator = torch.Generator(device="cuda")
        found["cuda"] = generator.manual_seed(mixed[3]).get_state()
    return found
