"""Trainings as people write them, at widths 1, 2 and 1 again: what came out on one, comes out."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import TensorDataset

from boa.train.torch import Elastic
from elastic import Attempt, play
from elastic_scripts import (
    BATCH,
    EPOCHS,
    SAMPLES,
    Interrupt,
    copied,
    data,
    network,
    same_as_alone,
    told,
    whole,
)

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


# Loops by hand


class Scaler(torch.amp.GradScaler):
    """As on a GPU: with a scale that grows, and gradients that are scaled."""

    def __init__(self) -> None:
        super().__init__("cpu", init_scale=64.0, growth_interval=3)


def by_hand(interrupt: Interrupt, *, accumulated: int = 1, scaled: bool = True) -> dict[str, Any]:
    """Clips by hand, unscaled before; steps with every so many batches."""
    run = Elastic(batch_size=BATCH, save_every_s=0.0)
    model = run.wrap(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    scaler = Scaler() if scaled else None
    batches = run.loader(TensorDataset(*data()))
    run.resume(model, optimizer, scaler=scaler)
    done = 0
    norms = []
    for _ in run.epochs(EPOCHS):
        for n, (x, y) in enumerate(batches, run.steps):
            whole = run.backward(mse_loss(model(x), y) / accumulated)
            if (n + 1) % accumulated == 0:
                assert whole
                if scaler is not None:
                    scaler.unscale_(optimizer)
                norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.05)))
                run.step()
            done += 1
            interrupt(done)
    assert max(norms) > 0.05
    scale = None if scaler is None else scaler.get_scale()
    return {"weights": copied(model), "same": (run.steps, scale), "norms": norms}


@pytest.mark.slow
@pytest.mark.parametrize("accumulated", [1, 2])
def test_clipping_and_accumulation_by_hand_are_the_same_at_every_width(
    tmp_path: Path, accumulated: int
) -> None:
    """A stop does not come between a backward and its step."""
    found = same_as_alone(by_hand, tmp_path, accumulated=accumulated)
    assert found["same"][1] > 64.0, "the scale has grown"
    (plain,) = play(
        by_hand, tmp_path / "plain", [Attempt(1)], accumulated=accumulated, scaled=False
    )
    torch.testing.assert_close(told(plain)["norms"], found["norms"], rtol=1e-4, atol=1e-6)


class Net(nn.Module):
    """With a method for the loss beside `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = network(4), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.body(x))
        return out

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return mse_loss(self.head(self.body(x)), y)


def within() -> Any:
    return torch.compile(Net(), backend="eager")


def compiled(interrupt: Interrupt, *, how: str) -> dict[str, Any]:
    run = Elastic(batch_size=BATCH, save_every_s=0.0)
    model: Any = run.wrap(within if how == "inside" else Net)
    called: Any = torch.compile(model, backend="eager") if how == "outside" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batches = run.loader(TensorDataset(*data()))
    run.resume(called, optimizer)
    done = 0
    for _ in run.epochs(EPOCHS):
        for x, y in batches:
            run.step(model.loss(x, y) if how == "method" else mse_loss(called(x), y))
            done += 1
            interrupt(done)
    names = sorted(run.state()["model"])
    return {"weights": copied(called), "same": (names, run.steps)}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["inside", "outside", "method"])
def test_compiled_models_and_methods_train_alike_under_plain_names(
    tmp_path: Path, how: str
) -> None:
    """`method`: the loss is computed by another method than `forward`, which DDP does not see."""
    found = same_as_alone(compiled, tmp_path, how=how)
    assert found["same"][0] == sorted(Net().state_dict())
    assert ("_orig_mod.head.weight" in found["weights"]) == (how != "method")


def evaluated(_interrupt: Interrupt) -> dict[str, Any]:
    """On seven samples, by as many ranks as there are."""
    run = Elastic(batch_size=BATCH)
    model = run.wrap(lambda: nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    x, y = data()
    batches = run.loader(TensorDataset(x, y))
    run.resume(model, optimizer)
    found: dict[str, Any] = {}
    for _ in run.epochs(1):
        for inputs, wanted in batches:
            run.step(mse_loss(model(inputs), wanted))
        model.eval()
        numbers, count, scores = list[int](), 0, [torch.empty(0)]
        with torch.no_grad():
            for inputs, index in run.evaluation(
                TensorDataset(x[:7], torch.arange(7)), batch_size=2
            ):
                scores.append(model(inputs).flatten())
                numbers += index.tolist()
                count += len(index)
        found["own"] = len(numbers)
        found["seen"], found["count"] = run.gather(numbers), run.total(count)
        found["scores"] = run.gather(torch.cat(scores))
        found["sum"] = run.total(torch.cat(scores).sum())
        model.train()
    return found


@pytest.mark.slow
def test_ranks_share_an_evaluation_and_no_sample_comes_twice(tmp_path: Path) -> None:
    """With one model on all of them: rank 0's statistics of batches count."""
    (three,) = play(evaluated, tmp_path, [Attempt(3)])
    assert three.codes == [0, 0, 0]
    assert [found["own"] for found in three.told] == [2, 2, 3]
    for found in three.told:
        assert found["seen"] == list(range(7))
        assert found["count"] == 7
        assert torch.equal(found["scores"], three.told[0]["scores"])
        assert float(found["sum"]) == pytest.approx(float(found["scores"].sum()), rel=1e-6)
