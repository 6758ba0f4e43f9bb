"""Trackers as they are installed: what a script logs there is a report, and reports go there."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reporting import Service

WANDB = """\
import wandb
from boa import train

run = wandb.init(project="net")
for step in range(1, 4):
    run.log({"loss": 1 / step, "accuracy": 0.1 * step}, step=step)
run.finish()
"""
MLFLOW = """\
import mlflow

with mlflow.start_run():
    for step in range(1, 4):
        mlflow.log_metric("accuracy", 0.1 * step, step=step)
        mlflow.log_metrics({"loss": 1 / step}, step=step)
print(mlflow.last_active_run().data.tags["boa.job"])
"""
TENSORBOARD = """\
from boa import train
from torch.utils.tensorboard import SummaryWriter

with SummaryWriter("runs") as writer:
    for step in range(1, 4):
        writer.add_scalar("accuracy", 0.1 * step, step)
        writer.add_scalar("Loss/train", 1 / step, step)
"""
FORWARDED = """\
import mlflow, wandb
from boa import train

run = wandb.init(project="net")
mlflow.start_run()
train.forward("mlflow", "wandb", "tensorboard", every_s=0)
for step in range(1, 4):
    train.report(samples=8, step=step, loss=1 / step, accuracy=0.1 * step)
run.finish()
there = mlflow.get_run(mlflow.active_run().info.run_id).data.metrics
print("MLflow has", there["accuracy"])
"""


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


def ran(service: Service, folder: Path, script: str) -> str:
    """What a job says, trackers included, that runs it; they keep to its folder."""
    (folder / "train.py").write_text(script)
    job = {"BOA_JOB_ID": "1", "BOA_REPORT_URL": service.url, "BOA_REPORT_EVERY_S": "0", "RANK": "0"}
    local = {
        "WANDB_MODE": "offline",
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_TRACKING_URI": (folder / "mlruns").as_uri(),
    }
    env = {**os.environ, **job, **local, "BOA_CHECKPOINT_DIR": str(folder / "kept")}
    command = [sys.executable, "train.py"]
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", [WANDB, MLFLOW, TENSORBOARD], ids=["wandb", "mlflow", "tensorboard"]
)
def test_what_a_script_logs_to_a_real_tracker_is_a_report(
    service: Service, tmp_path: Path, script: str
) -> None:
    said = ran(service, tmp_path, script)
    last = service.reports[-1]
    assert last["metrics"]["accuracy"] == pytest.approx(0.3)
    assert last["loss"] == pytest.approx(1 / 3)
    assert last["step"] == 3
    assert script is not MLFLOW or said.split()[0] == "1"


@pytest.mark.slow
def test_reports_are_forwarded_to_real_trackers(service: Service, tmp_path: Path) -> None:
    said = ran(service, tmp_path, FORWARDED)
    assert "MLflow has 0.3" in said
    assert "accuracy 0.3" in said.partition("Run summary")[2], said
    assert list((tmp_path / "kept" / "tensorboard").glob("events.out.tfevents.*"))
    assert service.reports[-1]["units"] == 24
