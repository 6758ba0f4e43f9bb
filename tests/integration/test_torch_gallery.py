"""The gallery: small scripts as people write them, as jobs of one service, each widened by plan."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import changed_lines
from boa.client import Client
from boa.client.spawn import OwnService
from boa.formats.job import load_job
from boa.model.job import JobSpec
from boa.model.profile import ClassProfile
from boa.sim.replay_jobs import write_profiles
from boa.train import checkpoints
from integration.test_torch_examples import watched

ROOT = Path(__file__).resolve().parents[2]
GALLERY = {
    "gan": 6,
    "ema": 6,
    "weighted": 6,
    "streaming": 4,
    "compile": 6,
    "accelerate": 8,
    "lightning": 6,
    "transformers": 3,
    "untouched": 24,
}
"""Examples with their epochs: a few beyond the first, in which they are widened. The untouched one
is, at an end of an epoch, once the service has heard and answered: its epochs are the shortest."""
STEPS = 64
"""Steps of an epoch, in all of them."""
UNIT_S = 2.0
"""What the service believes of a step: long enough for a rescaling to pay, whatever it takes."""
IN_ONE_PROCESS = """
import itertools, runpy, sys
from torch.utils.data import DataLoader
whole = DataLoader.__iter__
DataLoader.__iter__ = lambda loader: itertools.islice(whole(loader), 2)
scripts = sys.argv[1:]
for script in scripts:
    backend = ["--backend", "eager"] if "compile" in script else []
    sys.argv = [script, "--epochs", "1", *backend]
    runpy.run_path(script, run_name="__main__")
"""
"""Runs two batches of each script, one after the other: torch is imported once."""


def spec_of(name: str, folder: Path) -> JobSpec:
    """The example as its file has it, but for its epochs, and on two GPUs at most."""
    spec = load_job(ROOT / "examples" / f"train_{name}.yaml")
    command = [sys.executable if part == "python" else part for part in spec.run]
    epochs = GALLERY[name]
    if name == "compile":
        command += ["--backend", "eager"]
    if name == "untouched":
        command[command.index("untouched/last.pt")] = str(folder / "last.pt")
        command += ["--out", str(folder), "--epochs", str(epochs)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return replace(
        spec,
        run=tuple(command),
        epochs=epochs,
        total_work=float(epochs * STEPS),
        checkpoint_dir=str(folder),
        gpus=replace(spec.gpus, max=2),
        env={**spec.env, "PATH": path},
    )


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service that believes: a second GPU is of no use in the first epoch, and of much later."""
    folder = tmp_path_factory.mktemp("gallery")
    profiles = {}
    for name, epochs in GALLERY.items():
        shapes = [[0.0, 1.0, 1.0], *[[0.0, 1.0, 1.95]] * (epochs - 1)]
        rates = np.array([[shape, shape] for shape in shapes]) / UNIT_S
        work = (float(STEPS),) * epochs
        profiles[name] = ClassProfile(name=name, work=work, rates={"T4": rates}, rescale_s=0.0)
    files = write_profiles(profiles, folder / "profiles")
    units = sum(GALLERY.values()) * STEPS
    believed = {"arrivals_per_hour": 1.0, "arrivals_weight_h": 1e6, "measured_weight": 1e6}
    config = {
        "budget_per_hour": 1.5 * units * UNIT_S / 3600,
        "billing": "gpu",  # by plan: a market would fill the node
        "gpu_types": {"T4": {"price": 1.0, "gpus_per_node": 4, "max_nodes": 1}},
        "local": {"provision_s": 0, "release_s": 0},
        "classes": {name: {"profile": str(files[name]), **believed} for name in GALLERY},
    }
    with OwnService(folder / "service", config) as own, own.client() as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("name", GALLERY)
def test_an_example_is_widened_and_goes_on_where_it_was(
    client: Client, tmp_path: Path, name: str
) -> None:
    job = client.submit(spec_of(name, tmp_path))
    ended, widths = watched(client, job["id"])
    said = "".join(client.logs(job["id"]))
    assert ended["state"] == "succeeded", said
    assert (widths[0], widths[-1]) == (1, 2), said
    assert ended["rescalings"] >= 1
    assert (ended["failures"], ended["restarts"]) == (0, 0), said
    epochs = GALLERY[name]
    if name == "untouched":
        steps = re.findall(r"epoch (\d+) step (\d+)/", said)
        # at width 1 or 2 an epoch has as many steps; what was half done is done again
        assert {(str(epoch), str(STEPS)) for epoch in range(epochs)} <= set(steps)
        return
    newest = checkpoints.latest(tmp_path)
    at = None if newest is None else checkpoints.progress_at(newest)
    assert at is not None
    assert (at.epoch, at.step) == (epochs, epochs * STEPS)
    if told := re.findall(r"^epoch (\d+)", said, re.MULTILINE):
        assert told == list(map(str, range(epochs))), "no epoch is done twice"


@pytest.mark.slow
def test_the_plain_scripts_that_lines_are_counted_against_train(tmp_path: Path) -> None:
    scripts = sorted((ROOT / "examples" / "plain").glob("plain_*.py"))
    told = subprocess.run(
        [sys.executable, "-c", IN_ONE_PROCESS, *map(str, scripts)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert told.returncode == 0, told.stderr
    # Lightning's and the Trainer's logs are their own
    assert told.stdout.count("epoch 0: ") == len(scripts) - 2


def test_the_table_of_changed_lines_is_what_is_counted() -> None:
    page = changed_lines.PAGE.read_text("utf-8")
    assert page == changed_lines.counted(page), "make tables"
    names = {name for _, name in changed_lines.ROW.findall(page)}
    assert names == {*GALLERY, "cnn", "transformer"}
    touched = {name for name in names if changed_lines.changed(name) != (0, 0)}
    assert names - touched == {"untouched"}
    plain = {path.stem.removeprefix("plain_") for path in (ROOT / "examples/plain").iterdir()}
    assert plain == touched
