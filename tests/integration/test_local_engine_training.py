"""A real training, rescaled: it goes on from its checkpoint and ends as if it had not been."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from boa.formats.job import load_job
from boa.model.runs import NodeSlots, RunEvent, RunKey
from local_runs import Runs

EPOCHS, STEPS = 12, 50
TOLERANCE = 1e-9
"""Relative, of the loss: sums over two workers are rounded differently."""


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    runs.close()


def train(runs: Runs, examples: Path, job: str, attempt: int, width: int) -> RunKey:
    """The example as it is submitted, on so many GPUs."""
    spec = load_job(examples / "train_numpy.yaml")
    spec = replace(spec, epochs=EPOCHS, run=(sys.executable, *spec.run[1:]))
    launch = runs.launch(job=job, attempt=attempt)
    slots = (NodeSlots(0, tuple(range(width))),)
    runs.engine.start(replace(launch, spec=spec, slots=slots))
    return launch.key


def losses(text: str) -> dict[int, float]:
    """By step, at the end of every epoch."""
    found = {int(step): float(loss) for step, loss in re.findall(r"step (\d+): loss (\S+)", text)}
    return {step: loss for step, loss in found.items() if step % STEPS == 0}


def stopped(runs: Runs, key: RunKey) -> RunEvent:
    runs.engine.stop(key, 120.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (0, True), runs.log(key)
    return end


@pytest.mark.slow
def test_a_training_rescaled_twice_ends_with_the_loss_of_one_that_never_was(
    runs: Runs, examples: Path
) -> None:
    whole = train(runs, examples, "1", 1, width=1)
    assert runs.end(whole).exit_code == 0, runs.log(whole)
    expected = losses(runs.log(whole))
    assert len(expected) == EPOCHS

    first = train(runs, examples, "2", 1, width=1)
    runs.until_printed(first, "step 100:")
    stopped(runs, first)
    second = train(runs, examples, "2", 2, width=2)
    runs.until_printed(second, "step 250:")
    stopped(runs, second)
    third = train(runs, examples, "2", 3, width=1)
    end = runs.end(third)
    assert (end.exit_code, end.stopped) == (0, False), runs.log(third)

    assert "resumed" not in runs.log(first)
    assert "with 2 workers" in runs.log(second)
    assert "with 1 workers" in runs.log(third)
    pieces = [losses(runs.log(key)) for key in (first, second, third)]
    assert all(pieces)
    assert sum(map(len, pieces)) == EPOCHS  # no epoch was done twice
    assert {**pieces[0], **pieces[1], **pieces[2]} == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.slow
def test_a_training_whose_worker_is_killed_goes_on_from_its_last_checkpoint(
    runs: Runs, examples: Path
) -> None:
    first = train(runs, examples, "3", 1, width=2)
    runs.until_printed(first, "step 100:")
    supervisor = runs.supervisor(first)
    workers = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    os.kill(int(workers[1]), signal.SIGKILL)
    end = runs.end(first)
    assert (end.exit_code, end.reason) == (-9, "worker 1: killed by SIGKILL")
    second = train(runs, examples, "3", 2, width=1)
    assert runs.end(second).exit_code == 0, runs.log(second)
    resumed = re.search(r"resumed at step (\d+) ", runs.log(second))
    assert resumed is not None
    assert int(resumed[1]) >= 100  # that of step 100, or rank 0's own on its way out
