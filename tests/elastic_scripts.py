"""What trainings at several widths share: data, a network, and the comparison with one rank."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from elastic import Attempt, Ended, play

SAMPLES, BATCH, EPOCHS = 56, 8, 3
ROUNDING = 2e-5
WIDTHS = [Attempt(1, 3), Attempt(2, 8, 1), Attempt(1)]
Interrupt = Callable[[int], None]
Weights = dict[str, torch.Tensor]


def data() -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(1)
    x = torch.randn(SAMPLES, 6, generator=source)
    return x, torch.sin(x @ torch.randn(6, 1, generator=source))


def network(out: int = 1, inputs: int = 6) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, out))


def copied(module: nn.Module) -> Weights:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def whole(value: Any) -> torch.Tensor:
    """Of all shards."""
    found: torch.Tensor = value.full_tensor()
    return found


def same_as_alone(
    job: Callable[..., dict[str, Any]],
    home: Path,
    attempts: Sequence[Attempt] = WIDTHS,
    **given: Any,
) -> dict[str, Any]:
    """Weights, whatever they are called, are those of a training that ran on one rank at once."""
    (whole,) = play(job, home / "whole", [Attempt(1)], **given)
    pieces = play(job, home / "pieces", attempts, **given)
    assert [set(ended.codes) for ended in (whole, *pieces)] == [{0}] * (len(pieces) + 1)
    expected = told(whole)
    for found in (each for each in pieces[-1].told):
        assert found["weights"].keys() == expected["weights"].keys()
        for name, wanted in expected["weights"].items():
            torch.testing.assert_close(
                found["weights"][name], wanted, rtol=ROUNDING, atol=ROUNDING, msg=name
            )
        assert found.get("same") == expected.get("same")
    return expected


def told(ended: Ended) -> dict[str, Any]:
    return ended.told[0]
