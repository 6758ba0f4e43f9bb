"""Accelerate, Lightning and transformers: noise is measured, and batch sizes follow it."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import TensorDataset

from boa.train import session
from boa.train.torch import pace
from elastic import Attempt, play

SAMPLES, BATCH, EPOCHS = 1600, 8, 3
UNITS = SAMPLES / BATCH
ADAPTIVE: dict[str, Any] = {"max_batch": 64, "local_batch": (1, 64), "learning_rate": "adascale"}
Interrupt = Callable[[int], None]


def data(spread: float) -> TensorDataset:
    source = torch.Generator().manual_seed(1)
    inputs, noise = (torch.randn(SAMPLES, n, generator=source) for n in (4, 1))
    return TensorDataset(inputs, inputs.sum(1, keepdim=True) + spread * noise)


class Diary:
    """What a training did, step by step."""

    def __init__(self, interrupt: Interrupt) -> None:
        pace.WINDOW, pace.WINDOW_S = 5, 0.0
        self._interrupt, self.steps = interrupt, list[dict[str, float]]()
        self.used: list[float] = []

    def rates_of(self, optimizer: Any) -> None:
        optimizer.register_step_pre_hook(
            lambda own, *_: self.used.append(own.param_groups[0]["lr"])
        )

    def step(self, epoch: int) -> None:
        now = session.session()
        at = {"epoch": epoch, "progress": now.at.progress, "lr": self.used[-1]}
        self.steps.append({**at, **now.metrics})
        self._interrupt(len(self.steps))

    def told(self, model: nn.Module, statistics: Any) -> dict[str, Any]:
        weights = [p.detach().tolist() for p in model.parameters()]
        return {"same": (self.steps, weights), "steps": self.steps, "noise": statistics}


def with_accelerate(interrupt: Interrupt, spread: float, **options: Any) -> dict[str, Any]:
    from accelerate import Accelerator

    from boa.train.torch.accelerate import ElasticRun

    diary = Diary(interrupt)
    accelerator = Accelerator(cpu=True)
    run = ElasticRun(accelerator, batch_size=BATCH, save_every_s=0.2, **options)
    plain = nn.Linear(4, 1)
    sgd = torch.optim.SGD(plain.parameters(), lr=0.001)
    model, optimizer = accelerator.prepare(plain, sgd)
    batches = run.loader(data(spread))
    run.resume(model, optimizer)
    diary.rates_of(sgd)  # after ours: it sees the scaled one
    for epoch in run.epochs(EPOCHS):
        for x, y in batches:
            with accelerator.accumulate(model):
                accelerator.backward(run.weighted(mse_loss(model(x), y)))
                optimizer.step()
                optimizer.zero_grad()
            if run.step():
                diary.step(epoch)
    assert sgd.param_groups[0]["lr"] == 0.001
    return diary.told(plain, run.statistics)


def with_lightning(interrupt: Interrupt, spread: float, **options: Any) -> dict[str, Any]:
    from lightning.pytorch import LightningModule, Trainer
    from torch.utils.data import DataLoader

    from boa.train.torch.lightning import ElasticCallback

    diary = Diary(interrupt)
    elastic = ElasticCallback(batch_size=BATCH, save_every_s=0.2, **options)

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.validated = nn.Linear(4, 1), list[int]()

        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            return mse_loss(self.net(batch[0]), batch[1])

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            if batch_idx == 0 and not self.trainer.sanity_checking:
                self.validated.append(self.current_epoch)

        def on_train_batch_end(self, *_: Any) -> None:
            diary.step(self.current_epoch)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.net.parameters(), lr=0.001)

        def on_train_start(self) -> None:
            diary.rates_of(self.trainer.optimizers[0])

    trainer = Trainer(
        accelerator="cpu",
        max_epochs=EPOCHS,
        callbacks=[elastic],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **elastic.placement,
    )
    module = Module()
    validation = DataLoader(data(spread), batch_size=SAMPLES)
    trainer.fit(module, elastic.loader(data(spread)), validation)
    return {**diary.told(module.net, elastic.statistics), "validated": module.validated}


LIBRARIES = {"accelerate": with_accelerate, "lightning": with_lightning}


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_an_adaptive_epoch_is_as_much_progress_at_every_width(library: str, tmp_path: Path) -> None:
    # noise is known after 50 steps; ten more are within the first epoch, whatever they are worth
    attempts = [Attempt(1, 60), Attempt(2)]
    first, last = play(LIBRARIES[library], tmp_path, attempts, spread=5.0, **ADAPTIVE)
    assert (first.codes, last.codes) == ([0], [0, 0])
    assert last.told[0]["same"] == last.told[1]["same"], "on every rank"
    steps = last.told[0]["steps"]
    for epoch in range(1, EPOCHS):
        units = [step["progress"] for step in steps if step["epoch"] == epoch]
        assert units[-2] < UNITS <= units[-1]
    sizes = [step["batch_size"] for step in steps]
    assert max(sizes) > BATCH, "it has grown"
    for step in steps:
        assert step["lr"] == pytest.approx(0.001 * step["gain"])
    assert max(step["gain"] for step in steps) > 1.5
    if library == "lightning":
        assert last.told[0]["validated"][-2:] == [EPOCHS - 2, EPOCHS - 1]


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_noise_is_measured_and_reported_where_the_batch_stays(library: str, tmp_path: Path) -> None:
    (ended,) = play(LIBRARIES[library], tmp_path, [Attempt(2)], spread=0.5)
    steps = ended.told[0]["steps"]
    assert {step["batch_size"] for step in steps} == {BATCH}
    known = ended.told[0]["noise"].noise_scale
    assert 0 < known < math.inf
    # the last reading may have come after the last report
    assert steps[-1]["noise_scale"] == pytest.approx(known, rel=0.5)
