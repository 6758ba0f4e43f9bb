"""The elastic loop's own rules: what it refuses, what an epoch is, what it keeps."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from boa.train import checkpoints, session
from boa.train.torch import Elastic, pace
from boa.train.torch.tuner import Tuner
from elastic import Attempt, play

SAMPLES = 96
METRICS = ("batch_size", "accumulation", "gain")


def wrong_uses(_interrupt: Callable[[int], None]) -> dict[str, Any]:
    """What each of them says."""
    said: dict[str, str] = {}

    def attempt(name: str, use: Callable[[], object]) -> None:
        try:
            use()
        except (RuntimeError, ValueError) as problem:
            said[name] = str(problem)

    attempt("batch_size", lambda: Elastic(batch_size=0))
    attempt("max_batch", lambda: Elastic(batch_size=8, max_batch=4))
    attempt("local_batch", lambda: Elastic(batch_size=8, local_batch=(4, 2)))
    run = Elastic(batch_size=8)
    model = run.wrap(lambda: nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    attempt("resume first", lambda: run.resume(model, optimizer))
    batches = run.loader(TensorDataset(torch.ones(SAMPLES, 2)))
    attempt("epochs first", lambda: next(run.epochs(1)))
    attempt("batches first", lambda: next(iter(batches)))
    run.resume(model, optimizer)
    attempt("step first", lambda: run.step(torch.zeros((), requires_grad=True)))
    next(run.epochs(1))
    (inputs,) = next(iter(batches))
    attempt("left out", lambda: next(iter(batches)))
    run.step(model(inputs).mean())
    return said


def test_wrong_use_is_told_in_words(tmp_path: Path) -> None:
    (ended,) = play(wrong_uses, tmp_path, [Attempt(1)])
    said = ended.told[0]
    assert said["batch_size"] == "batch_size: got 0; expected at least 1"
    assert "expected at least batch_size, 8" in said["max_batch"]
    assert "1 <= least <= most" in said["local_batch"]
    for name in ("resume first", "epochs first", "batches first"):
        assert "expected wrap, loader, resume, epochs" in said[name]
    assert "without a batch" in said["step first"]
    assert "one step() for every batch" in said["left out"]


def adaptive(interrupt: Callable[[int], None], samples: int = SAMPLES) -> dict[str, Any]:
    """Batch sizes are judged so often that a short run sees several."""
    pace.WINDOW, pace.WINDOW_S = 5, 0.0
    chose = counted_choices()
    limits: dict[str, Any] = {"batch_size": 8, "max_batch": 64, "local_batch": (1, 32)}
    run = Elastic(**limits, learning_rate="adascale", save_every_s=0.2)
    model = run.wrap(lambda: nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    used: list[float] = []
    optimizer.register_step_pre_hook(lambda own, *_: used.append(own.param_groups[0]["lr"]))
    source = torch.Generator().manual_seed(1)
    inputs, noise = (torch.randn(samples, n, generator=source) for n in (4, 1))
    batches = run.loader(TensorDataset(inputs, inputs.sum(1, keepdim=True) + 5 * noise))
    run.resume(model, optimizer)
    steps: list[dict[str, float]] = []
    for epoch in run.epochs(3):
        for x, y in batches:
            if run.step(((model(x) - y) ** 2).mean()):
                now = session.session()
                at = {"epoch": epoch, "progress": now.at.progress, "lr": used[-1]}
                steps.append({**at, **{name: now.metrics[name] for name in METRICS}})
                interrupt(len(steps))
    weights = [p.detach().tolist() for p in model.parameters()]
    rate = optimizer.param_groups[0]["lr"]
    return {"same": (steps, weights, rate), "steps": steps, "rate": rate, "chose": len(chose)}


def counted_choices() -> list[None]:
    """One entry for every choice that this process makes."""
    found, choose = list[None](), Tuner.choose

    def counted(*given: Any, **named: Any) -> Any:
        found.append(None)
        return choose(*given, **named)

    Tuner.choose = counted  # type: ignore[method-assign]
    return found


@pytest.mark.slow
def test_an_adaptive_epoch_is_as_much_progress_at_every_width(tmp_path: Path) -> None:
    """Three epochs of N / B0 = 300 units each, the last iteration of each beyond that."""
    plan = [Attempt(1, 20), Attempt(2, 20, 1), Attempt(3)]
    *interrupted, last = play(adaptive, tmp_path, plan, samples=2400)
    assert [ended.codes for ended in (*interrupted, last)] == [[0], [0, 0], [0, 0, 0]]
    assert all(told["same"] == last.told[0]["same"] for told in last.told), "on every rank"
    assert [bool(told["chose"]) for told in last.told] == [True, False, False]
    steps = last.told[0]["steps"]
    for epoch in range(3):
        units = [step["progress"] for step in steps if step["epoch"] == epoch]
        assert units[-2] < 300 <= units[-1]
    sizes = [step["batch_size"] for step in steps]
    assert sizes[0] == 9, "three on each"
    assert len({size for size in sizes if sizes.count(size) > 3}) > 1, "it has changed"
    assert last.told[0]["rate"] == 0.001
    for step in steps:
        assert step["lr"] == pytest.approx(0.001 * step["gain"])
        assert step["gain"] <= max(step["batch_size"] / 8, 1) + 1e-9
    assert max(step["gain"] for step in steps) > 1.5


@pytest.mark.slow
def test_a_training_that_is_over_starts_and_ends_at_once(tmp_path: Path) -> None:
    first, again = play(adaptive, tmp_path, [Attempt(1), Attempt(2)])
    assert {step["epoch"] for step in first.told[0]["steps"]} == {0, 1, 2}
    assert [told["steps"] for told in again.told] == [[], []]
    assert again.codes == [0, 0]


def slow_to_remove(_interrupt: Callable[[int], None]) -> dict[str, Any]:
    """What is old is removed long after all is saved."""
    remove = checkpoints.abandon

    def later(folder: Path) -> None:
        release.wait()
        remove(folder)

    release = threading.Event()
    checkpoints.abandon = later  # type: ignore[assignment]
    run = Elastic(batch_size=8, save_every_s=0.0)
    model = run.wrap(lambda: nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = run.loader(TensorDataset(torch.ones(SAMPLES, 2)))
    run.resume(model, optimizer)
    for epoch in run.epochs(3):
        for (inputs,) in batches:
            run.step(model(inputs).mean())
        if epoch == 2:
            threading.Timer(0.2, release.set).start()
    return {}


def test_a_training_that_is_over_leaves_no_old_checkpoints(tmp_path: Path) -> None:
    play(slow_to_remove, tmp_path, [Attempt(1)])
    assert not [path.name for path in tmp_path.rglob(".boa-*") if path.is_dir()]


def reporting(_interrupt: Callable[[int], None], samples: int = 30) -> dict[str, Any]:
    run = Elastic(batch_size=8)
    model = run.wrap(lambda: nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = run.loader(TensorDataset(torch.ones(samples, 2)))
    run.resume(model, optimizer)
    now = session.session()
    seen = []
    for _ in run.epochs(3):
        for (inputs,) in batches:
            run.step(model(inputs).mean())
        seen.append((now.total, now.saves, now.done))
    return {"seen": seen, "end": (now.total, now.units, now.done, now.saved_s is not None)}


def test_elastic_reports_its_total_in_iterations_and_that_it_is_done_after_its_last_epoch(
    tmp_path: Path,
) -> None:
    (ended,) = play(reporting, tmp_path, [Attempt(1)])
    assert ended.told[0]["seen"] == [(12.0, True, False)] * 3
    assert ended.told[0]["end"] == (12.0, 12.0, True, True)
