"""Fixtures for tests of the command line."""

from pathlib import Path

import pytest

from integration.runner import WORKLOAD, Boa


@pytest.fixture
def workload(tmp_path: Path) -> str:
    path = tmp_path / "workload.yaml"
    path.write_text(WORKLOAD)
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Boa:
    return Boa(capsys)
