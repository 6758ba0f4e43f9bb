"""Fixtures for tests of the command line."""

from pathlib import Path

import pytest

import _rays
from boa.client import spawn
from integration.runner import JOBS, WORKLOAD, Boa

# For a service of a test to come up, on a machine that has other things to do.
spawn.PATIENCE_S = 600.0

# A node that is only too busy to answer within a second is not to be taken for dead. One that is
# dead refuses connections, and is known by that as soon as before.
_rays.SETTINGS["RAY_health_check_timeout_ms"] = "20000"


@pytest.fixture
def workload(tmp_path: Path) -> str:
    path = tmp_path / "workload.yaml"
    path.write_text(WORKLOAD)
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Boa:
    return Boa(capsys)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two classes that are soon over: a job every 15 minutes."""
    path = tmp_path / "trace.csv"
    rows = [f"job-{n},{n * 900},{'ncf' if n % 4 == 2 else 'cifar10'},2" for n in range(JOBS)]
    path.write_text("\n".join(["name,arrival_s,application,gpus", *rows]))
    return path
