"""Trainings as people write them, at widths 1, 2 and 1 again: what came out on one, comes out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import TensorDataset

from boa.train.torch import Elastic
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


# Two of everything


class Generator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.body(x)
        return made


def adversarial(interrupt: Interrupt, *, shard: bool = False, every: int = 1) -> dict[str, Any]:
    """Its generator steps after `every` steps of the discriminator."""
    run = Elastic(batch_size=BATCH, shard=shard, save_every_s=0.0)
    generator, discriminator = run.wrap(Generator), run.wrap(network)
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-2)
    opt_d = torch.optim.SGD(discriminator.parameters(), lr=0.1, momentum=0.5)
    fading = [torch.optim.lr_scheduler.ExponentialLR(each, 0.9) for each in (opt_g, opt_d)]
    x, _ = data()
    noise = torch.randn(SAMPLES, 3, generator=torch.Generator().manual_seed(2))
    batches = run.loader(TensorDataset(x, noise))
    run.resume([generator, discriminator], [opt_g, opt_d], fading)
    begun = run.steps
    for _ in run.epochs(EPOCHS):
        for real, seeds in batches:
            fake = generator(seeds)
            good, bad = discriminator(real), discriminator(fake.detach())
            loss = binary_cross_entropy_with_logits(good, torch.ones_like(good))
            loss = loss + binary_cross_entropy_with_logits(bad, torch.zeros_like(bad))
            run.step(loss, optimizer=opt_d)
            if (run.steps + 1) % every == 0:
                fooled = discriminator(fake)
                loss = binary_cross_entropy_with_logits(fooled, torch.ones_like(fooled))
                run.step(loss, optimizer=opt_g)
            interrupt(run.steps - begun + 1)
        for scheduler in fading:
            scheduler.step()
    weights = {f"g.{name}": value for name, value in copied(generator).items()}
    weights |= {f"d.{name}": value for name, value in copied(discriminator).items()}
    if shard and not run.ranks.alone:
        weights = {name: whole(value) for name, value in weights.items()}
    counts = {float(state["step"]) for state in opt_g.state.values()}
    rates = [each.get_last_lr() for each in fading]
    return {"weights": weights, "same": (run.steps, counts, rates)}


@pytest.mark.slow
def test_both_halves_of_a_gan_train_alike_at_every_width(tmp_path: Path) -> None:
    found = same_as_alone(adversarial, tmp_path)
    torch.manual_seed(0)
    first = {f"g.{name}": value for name, value in copied(Generator()).items()}
    first |= {f"d.{name}": value for name, value in copied(network()).items()}
    for name, value in found["weights"].items():
        assert (value - first[name]).abs().max() > 1e-3, f"{name} has not been trained"


@pytest.mark.slow
def test_a_generator_that_steps_now_and_then_is_saved_before_its_first_step(
    tmp_path: Path,
) -> None:
    found = same_as_alone(adversarial, tmp_path, every=5)
    steps, counts, _ = found["same"]
    assert counts == {steps // 5}


@pytest.mark.slow
def test_both_halves_train_alike_in_shards(tmp_path: Path) -> None:
    (whole,) = play(adversarial, tmp_path / "whole", [Attempt(1)])
    attempts = [Attempt(2, 4), Attempt(1, 5), Attempt(2)]
    *_, last = play(adversarial, tmp_path / "pieces", attempts, shard=True)
    for name, wanted in told(whole)["weights"].items():
        torch.testing.assert_close(told(last)["weights"][name], wanted, rtol=1e-4, atol=1e-4)


# What holds the model


def averaged(interrupt: Interrupt) -> dict[str, Any]:
    """An average of the weights and a wrapper of the script's own, both kept."""
    run = Elastic(batch_size=BATCH, save_every_s=0.0)
    model = run.wrap(network)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    batches = run.loader(TensorDataset(*data()))
    run.resume(model, optimizer, ema=ema, best=float("inf"), seen=[])
    done = 0
    for epoch in run.epochs(EPOCHS):
        for x, y in batches:
            if run.step(mse_loss(model(x), y)):
                ema.update_parameters(model)
                done += 1
                interrupt(done)
        with torch.no_grad():
            x, y = data()
            run.kept.best = min(run.kept.best, round(float(mse_loss(ema(x), y)), 3))
            run.kept.seen = [*run.kept.seen, epoch]
    shadow = {f"shadow.{name}": p.detach().clone() for name, p in model.named_parameters()}
    held = {f"held.{name}": value for name, value in copied(nn.ModuleDict({"x": model})).items()}
    weights = copied(ema) | copied(model) | shadow | held
    return {"weights": weights, "same": (run.kept.best, run.kept.seen)}


@pytest.mark.slow
def test_averages_names_and_plain_values_are_the_same_at_every_width(tmp_path: Path) -> None:
    found = same_as_alone(averaged, tmp_path)
    assert set(copied(network())) < found["weights"].keys()
    assert {"module.0.weight", "shadow.0.weight", "held.x.0.weight"} < found["weights"].keys()
    assert found["same"][1] == [0, 1, 2]
