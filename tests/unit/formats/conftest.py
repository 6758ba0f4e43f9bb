"""A machine without GPUs, for tests of what the service is told."""

from pathlib import Path

import pytest


@pytest.fixture
def no_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No program is found but those that a test puts there."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("BOA_HOME", str(tmp_path / "home"))
    return programs
