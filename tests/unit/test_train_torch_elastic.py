"""The elastic loop's own rules: what it refuses, what an epoch is, what it keeps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from boa.train.torch import Elastic
from elastic import Attempt, play

SAMPLES = 96


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


def adaptive(interrupt: Callable[[int], None], **options: Any) -> dict[str, Any]:
    run = Elastic(batch_size=8, max_batch=64, local_batch=(2, 16), save_every_s=0.0, **options)
    model = run.wrap(lambda: nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    source = torch.Generator().manual_seed(1)
    inputs, noise = (torch.randn(SAMPLES, n, generator=source) for n in (4, 1))
    batches = run.loader(TensorDataset(inputs, inputs.sum(1, keepdim=True) + noise))
    run.resume(model, optimizer)
    rates, epochs, done = set(), [], 0
    for epoch in run.epochs(3):
        epochs.append(epoch)
        for x, y in batches:
            if run.step(((model(x) - y) ** 2).mean()):
                done += 1
                rates.add(optimizer.param_groups[0]["lr"])
                interrupt(done)
    from boa.train import session

    return {"steps": run.steps, "epochs": epochs, "rates": rates, "units": session.session().units}


@pytest.mark.slow
def test_an_adaptive_epoch_is_as_much_progress_at_every_width(tmp_path: Path) -> None:
    """Three epochs of N / B0 = 12 units each, the last iteration of each beyond that."""
    plan = [Attempt(1, 7), Attempt(3, 9), Attempt(2)]
    *_, last = play(adaptive, tmp_path, plan, learning_rate="sqrt")
    assert last.codes == [0, 0]
    told = last.told[0]
    assert told["epochs"][-1] == 2
    assert told["rates"] == {0.01}  # the factor holds for the step alone
    assert told["units"] <= 3 * (12 + 8)


@pytest.mark.slow
def test_a_training_that_is_over_starts_and_ends_at_once(tmp_path: Path) -> None:
    first, again = play(adaptive, tmp_path, [Attempt(1), Attempt(2)])
    assert first.told[0]["epochs"] == [0, 1, 2]
    assert [told["epochs"] for told in again.told] == [[], []]
    assert again.codes == [0, 0]
