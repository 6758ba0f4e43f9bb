"""Fixtures for tests of the command line."""

from pathlib import Path

import pytest

from integration.runner import JOBS, WORKLOAD, Boa


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
