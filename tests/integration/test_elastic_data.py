"""Loaders, samplers and streams as people have them: one order at every width."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import mse_loss
from torch.utils.data import IterableDataset, Subset, TensorDataset, WeightedRandomSampler
from torchdata.stateful_dataloader import StatefulDataLoader

from boa.train.torch import Elastic
from elastic_scripts import (
    BATCH,
    EPOCHS,
    SAMPLES,
    Interrupt,
    copied,
    data,
    network,
    same_as_alone,
)


class Numbered(IterableDataset[tuple[torch.Tensor, torch.Tensor]]):
    """Shuffled as it comes, by a buffer of eight, with a different order in every pass."""

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        waiting: list[tuple[torch.Tensor, torch.Tensor]] = []
        for sample in zip(*data(), strict=True):
            waiting.append(sample)
            if len(waiting) == 8:
                yield waiting.pop(random.randrange(8))
        yield from waiting


class Placed(IterableDataset[tuple[torch.Tensor, torch.Tensor]]):
    """It knows where it is, and that it was not read from its beginning again."""

    def __init__(self) -> None:
        self.at = 0
        self.begun_at = list[int]()

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        self.begun_at.append(self.at)
        x, y = data()
        while self.at < SAMPLES:
            self.at += 1
            yield x[self.at - 1], y[self.at - 1]
        self.at = 0

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


class Buckets:
    """Batches of neighbours, of 8 or 5 samples, in random order."""

    def __init__(self) -> None:
        rows = [list(range(n, n + 8)) for n in range(0, 40, 8)]
        self.batches = rows + [list(range(n, n + 5)) for n in range(40, 55, 5)]

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        return iter([self.batches[n] for n in torch.randperm(len(self)).tolist()])


def loader_of(run: Elastic, kind: str) -> Any:
    tensors = TensorDataset(*data())
    odd = Subset(tensors, range(SAMPLES - 3))
    match kind:
        case "weighted":
            return run.loader(tensors, sampler=WeightedRandomSampler(list(range(SAMPLES)), 50))
        case "bucketed":
            return run.loader(tensors, batch_sampler=Buckets())
        case "whole batches":
            return run.loader(odd, drop_last=True)
        case "stream":
            return run.loader(Numbered())
        case "stream that knows its place":
            return run.loader(Placed())
        case "stateful loader":
            return run.loader(StatefulDataLoader(odd, batch_size=BATCH, shuffle=True))
    raise AssertionError(kind)


def fitted(interrupt: Interrupt, *, kind: str) -> dict[str, Any]:
    run = Elastic(batch_size=BATCH, save_every_s=0.0)
    model = run.wrap(network)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    batches = loader_of(run, kind)
    run.resume(model, optimizer)
    done, samples = 0, 0
    for _ in run.epochs(EPOCHS):
        for x, y in batches:
            samples += run.total(len(x))
            run.step(mse_loss(model(x), y))
            done += 1
            interrupt(done)
    return {"weights": copied(model), "same": run.steps, "samples": samples}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "samples"),
    [
        ("weighted", 50 * EPOCHS),
        ("bucketed", 55 * EPOCHS),
        ("whole batches", 48 * EPOCHS),
        ("stream", SAMPLES * EPOCHS),
        ("stream that knows its place", SAMPLES * EPOCHS),
        ("stateful loader", 53 * EPOCHS),
    ],
)
def test_data_of_every_kind_come_in_one_order_at_every_width(
    tmp_path: Path, kind: str, samples: int
) -> None:
    found = same_as_alone(fitted, tmp_path, kind=kind)
    assert found["samples"] == samples


def half_labelled(interrupt: Interrupt, *, first: bool = True) -> dict[str, Any]:
    """Two loaders, the second longer and with a larger batch; its pass ends within an epoch."""
    run = Elastic(batch_size=BATCH, save_every_s=0.0)
    model = run.wrap(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = data()
    labelled = run.loader(TensorDataset(x[:40], y[:40]))
    others = run.loader(TensorDataset(x), batch_size=12, drop_last=True)
    run.resume(model, optimizer)
    done = 0
    pairs = _together if first else _swapped
    for _ in run.epochs(EPOCHS):
        for (inputs, wanted), (more,) in pairs(labelled, others):
            loss = mse_loss(model(inputs), wanted) + model(more).square().mean()
            run.step(loss)
            done += 1
            interrupt(done)
    return {"weights": copied(model), "same": run.steps}


def _together(labelled: Any, others: Any) -> Iterator[Any]:
    return zip(labelled, others, strict=False)


def _swapped(labelled: Any, others: Any) -> Iterator[Any]:
    return ((pair, more) for more, pair in zip(others, labelled, strict=False))


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False])
def test_a_second_loader_goes_on_where_it_was(tmp_path: Path, first: bool) -> None:
    same_as_alone(half_labelled, tmp_path, first=first)
