"""The PyTorch examples as jobs of a real service, growing and shrinking by plan."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boa.client import Client
from boa.client.spawn import OwnService
from boa.formats.job import load_job
from boa.model.job import ENDED, JobSpec
from boa.model.profile import ClassProfile
from boa.sim.replay_jobs import write_profiles

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FLAT = [0.0, 1.0, 1.01, 1.02, 1.03]
STEEP = [0.0, 1.0, 1.95, 2.8, 3.6]
EPOCHS = 3
UNIT_S = 2.0
"""What it believes of a step: long enough for a rescaling to pay, whatever it takes here."""
PATIENCE_S = 900.0


def spec_of(name: str) -> JobSpec:
    """The example as its file has it, but for three epochs."""
    spec = load_job(EXAMPLES / f"train_{name}.yaml")
    command = tuple(sys.executable if part == "python" else part for part in spec.run)
    units = (spec.total_work or 0.0) * EPOCHS / spec.epochs
    return replace(spec, run=command, epochs=EPOCHS, total_work=units)


@contextmanager
def service(folder: Path, name: str) -> Iterator[tuple[OwnService, Client]]:
    """That believes: epochs 0 and 2 gain nothing from a second GPU, epoch 1 does."""
    rates = np.array([[shape, shape] for shape in (FLAT, STEEP, FLAT)]) / UNIT_S
    units = spec_of(name).total_work or 0.0
    work = (units / EPOCHS,) * EPOCHS
    profile = ClassProfile(name=name, work=work, rates={"T4": rates}, rescale_s=0.0)
    files = write_profiles({name: profile}, folder / "profiles")
    config = {
        "budget_per_hour": 1.5 * units * UNIT_S / 3600,
        "billing": "gpu",  # by plan: a market would fill the node
        "gpu_types": {"T4": {"price": 1.0, "gpus_per_node": 4, "max_nodes": 1}},
        "local": {"provision_s": 0, "release_s": 0},
        "classes": {
            name: {
                "profile": str(files[name]),
                "arrivals_per_hour": 1.0,
                "arrivals_weight_h": 1e6,
                "measured_weight": 1e6,
            }
        },
    }
    with OwnService(folder / "service", config) as own, own.client() as client:
        yield own, client


def watched(client: Client, job_id: str) -> tuple[dict[str, Any], list[int]]:
    """The job when it has ended, and the widths that it was started at."""
    deadline = time.monotonic() + PATIENCE_S
    while (job := client.job(job_id))["state"] not in ENDED:
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {job}"
        time.sleep(0.2)
    starts = ("started", "rescaled", "restarted")
    events = client.history(job=job_id, limit=1000)
    return dict(job), [event["data"]["width"] for event in events if event["kind"] in starts]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cnn", "transformer"])
def test_an_example_grows_and_shrinks_by_plan_and_shows_what_it_measured(
    tmp_path: Path, name: str
) -> None:
    with service(tmp_path, name) as (own, client):
        job = client.submit(spec_of(name))
        ended, widths = watched(client, job["id"])
        assert ended["state"] == "succeeded", boa(own, "logs", job["id"])
        assert (widths[0], widths[-1]) == (1, 1)
        assert max(widths) > 1
        assert ended["metrics"]["noise_scale"] > 0
        shown = boa(own, "show", job["id"])
        assert "noise scale" in shown
        assert "batch size" in shown
        learned = client.job_class(name)
        measured = {at["width"]: at for at in learned["gpu_types"][0]["samples"]}
        assert measured.keys() >= set(widths)
        parts = learned["rescaling"]["local"]
        assert parts["total"]["count"] == len(widths)
        assert parts["stop"]["count"] == parts["save"]["count"] == len(widths) - 1
        shown = boa(own, "show", name)
        assert "noise scale" in shown
        assert "× 1 GPU" in shown


def boa(own: OwnService, *arguments: str) -> str:
    """What a user would see."""
    command = [sys.executable, "-m", "boa", *arguments]
    env = {**os.environ, "BOA_SERVER": own.url}
    said = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    print(said.stdout, said.stderr)
    return said.stdout
