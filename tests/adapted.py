"""What the training scripts of the adapter tests have in common: a small problem, and a diary."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # or every fork imports it for its optimiser
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import Dataset

from boa.train.torch.memory import handing
from boa.train.torch.memory.handing import Handing
from keeping import until

SAMPLES, BATCH, ACCUMULATED = 51, 8, 2
"""The last step of an epoch has three samples: on two ranks, one has more than the other."""
STEPS = -(-SAMPLES // BATCH)
EPOCHS = 2
Sample = tuple[int, torch.Tensor, torch.Tensor]


class Points(Dataset[Sample]):
    """Knows which sample it gives."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Sample:
        x = torch.randn(4, generator=torch.Generator().manual_seed(index))
        return index, x, x.sin().sum()


def network(dropout: float) -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))


class Diary:
    """What a process did, for the test to read; and a place where the test can catch it."""

    def __init__(self) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("folder", type=Path)
        parser.add_argument("--pause", type=int, help="wait for the test after so many steps")
        parser.add_argument("--dropout", type=float, default=0.0)
        parser.add_argument("--save-every", type=float, default=300.0)
        parser.add_argument("--tokens", action="store_true", help="a loss over all labels")
        options = parser.parse_args()
        self.folder, self._pause, self.dropout = options.folder, options.pause, options.dropout
        self.save_every_s: float = options.save_every
        self.tokens: bool = options.tokens
        self._rank = int(os.environ["RANK"])
        self._file = self.folder / f"{os.environ['BOA_ATTEMPT']}-{self._rank}.jsonl"
        self._reserving = _watched() if "BOA_KEEPER" in os.environ else []

    def note(self, **entry: Any) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def batch(self, epoch: int, step: int, indices: torch.Tensor, weight: float) -> None:
        """A batch is about to be trained on, `step` of them are done."""
        self.note(epoch=epoch, step=step, indices=indices.tolist() if weight else [])
        if step == self._pause:
            self._pause = None
            until(lambda: all(each.ready for each in self._reserving))
            print("paused", flush=True)
            sys.stdin.readline()

    def end(self, model: nn.Module, rate: float) -> None:
        """Training is over; rank 0 says what came out."""
        if self._rank == 0:
            result = {"weights": _flat(model.state_dict()), "loss": _loss(model), "rate": rate}
            (self.folder / "result.json").write_text(json.dumps(result))


def _watched() -> list[Handing]:
    """Those that reserve memory from now on, however little."""
    handing.LEAST_BYTES, reserve, found = 0, Handing.reserve, []

    def reserving(self: Handing, count: int) -> None:
        found.append(self)
        reserve(self, count)

    Handing.reserve = reserving  # type: ignore[method-assign]
    return found


def _loss(model: nn.Module) -> float:
    """Over all samples."""
    model.eval()
    points: Sequence[Sample] = [Points()[index] for index in range(SAMPLES)]
    x, y = (torch.stack([point[n] for point in points]) for n in (1, 2))  # type: ignore[misc]
    with torch.no_grad():
        return mse_loss(model(x).squeeze(1), y).item()


def _flat(state: Mapping[str, torch.Tensor]) -> list[float]:
    return torch.cat([value.flatten() for value in state.values()]).tolist()
