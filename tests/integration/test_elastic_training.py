"""Training on any sequence of widths is the training that was never interrupted."""

import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from boa.train.torch import Elastic
from elastic import Attempt, play
from gates import points

SAMPLES, BATCH, EPOCHS = 200, 24, 6
ROUNDING = 2e-5
"""How far losses may be apart, relatively: sums over ranks are rounded in another order."""


class Net(nn.Module):
    def __init__(self, dropout: float = 0.0, unused: bool = False) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(8, 32), nn.Tanh(), nn.Dropout(dropout), nn.Linear(32, 32), nn.Tanh()
        )
        self.last = nn.Linear(32, 1)
        if unused:
            self.unused = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(self.layers(x))
        return out


def data() -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(1)
    x = torch.randn(SAMPLES, 8, generator=source)
    return x, torch.sin(x @ torch.randn(8, 1, generator=source))


def train(
    interrupt: Callable[[int], None],
    *,
    dropout: float = 0.0,
    save_every_s: float = 0.0,
    shard: bool = False,
    unused: bool = False,
    **options: Any,
) -> dict[str, Any]:
    run = Elastic(batch_size=BATCH, save_every_s=save_every_s, shard=shard, **options)
    model = run.wrap(lambda: Net(dropout, unused), find_unused_parameters=unused)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=20)
    x, y = data()
    batches = run.loader(TensorDataset(x, y, torch.arange(SAMPLES)))
    run.resume(model, optimizer, scheduler, warm_up=warm_up)
    done = 0
    for _ in run.epochs(EPOCHS):
        for inputs, wanted, _numbers in batches:
            if run.step(((model(inputs) - wanted) ** 2).mean()):
                done += 1
                warm_up.step()
                interrupt(done)
        scheduler.step()
    model.eval()
    with torch.no_grad():
        loss = float(((model(x) - y) ** 2).mean())
    weights = {name: part.detach().clone() for name, part in run.state()["model"].items()}
    rate = scheduler.get_last_lr()
    return {"loss": loss, "weights": weights, "steps": run.steps, "rate": rate}


def _random_attempts(seed: int, count: int) -> list[Attempt]:
    source = random.Random(seed)
    signals = (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL)
    found = []
    width = 0
    for _ in range(count):
        width = source.choice([w for w in (1, 2, 3, 4) if w != width])
        found.append(
            Attempt(width, source.randint(2, 7), source.randrange(width), source.choice(signals))
        )
    return [*found, Attempt(source.choice([w for w in (1, 2, 3, 4) if w != width]))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", points([1, 2], [2]))  # that has kills at three widths
def test_ten_rescalings_with_kills_end_with_the_loss_of_none(tmp_path: Path, seed: int) -> None:
    (whole,) = play(train, tmp_path / "whole", [Attempt(1)])
    attempts = _random_attempts(seed, 10)
    pieces = play(train, tmp_path / "pieces", attempts)
    for ended, attempt in zip(pieces, attempts, strict=True):
        clean = attempt.signal == signal.SIGTERM or attempt.steps is None
        assert (set(ended.codes) == {0}) == clean
    expected = whole.told[0]
    for told in pieces[-1].told:
        assert told["steps"] == expected["steps"]
        assert told["rate"] == expected["rate"]
        assert told["loss"] == pytest.approx(expected["loss"], rel=ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2, 4])
def test_weights_after_a_restart_at_the_same_width_are_those_of_no_restart(
    tmp_path: Path, width: int
) -> None:
    """To the last bit, dropout and the moments of AdamW included."""
    options = {"dropout": 0.3, "exact": width > 2}
    (whole,) = play(train, tmp_path / "whole", [Attempt(width)], **options)
    stops = [Attempt(width, 5), Attempt(width, 7, width - 1), Attempt(width)]
    pieces = play(train, tmp_path / "pieces", stops, **options)
    assert [set(ended.codes) for ended in pieces] == [{0}] * 3
    for name, expected in whole.told[0]["weights"].items():
        assert torch.equal(pieces[-1].told[0]["weights"][name], expected), name


@pytest.mark.slow
def test_a_stop_around_the_end_of_an_epoch_changes_nothing(tmp_path: Path) -> None:
    """Schedulers by epoch and by step included; nor does one in the last steps of all."""
    steps = -(-SAMPLES // BATCH)
    (whole,) = play(train, tmp_path / "whole", [Attempt(1)])
    for last in (steps - 1, steps, steps * EPOCHS - 1, steps * EPOCHS):
        pieces = play(train, tmp_path / f"{last}", [Attempt(2, last), Attempt(1)])
        assert pieces[-1].told[0]["rate"] == whole.told[0]["rate"]
        assert pieces[-1].told[0]["steps"] == whole.told[0]["steps"]


@pytest.mark.slow
def test_a_parameter_without_any_gradient_is_no_hindrance(tmp_path: Path) -> None:
    (whole,) = play(train, tmp_path / "whole", [Attempt(1)], unused=True)
    plan = [Attempt(1, 5), Attempt(2, 7), Attempt(1)]
    pieces = play(train, tmp_path / "pieces", plan, unused=True)
    assert [set(ended.codes) for ended in pieces] == [{0}] * 3
    assert pieces[-1].told[0]["loss"] == pytest.approx(whole.told[0]["loss"], rel=ROUNDING)


@pytest.mark.slow
def test_sharded_by_fsdp2_it_is_the_same_training(tmp_path: Path) -> None:
    (whole,) = play(train, tmp_path / "whole", [Attempt(1)])
    plan = [Attempt(2, 9), Attempt(3, 11), Attempt(1, 5), Attempt(4)]
    pieces = play(train, tmp_path / "pieces", plan, shard=True)
    assert [set(ended.codes) for ended in pieces] == [{0}] * 4
    assert pieces[-1].told[0]["loss"] == pytest.approx(whole.told[0]["loss"], rel=ROUNDING)
