"""A part of the campaign of `bench/campaign.py` that every machine can run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SEED, FAULTS = 20261116, 20
PATIENCE_S = 1800.0
CHEAP = (
    *("kill-worker", "kill-supervisor", "kill-child", "kill-parent", "kill-service"),
    *("stop-worker", "stop-supervisor", "stop-child"),
    *("damage-outcome", "damage-launch", "damage-log", "damage-lock", "stray-names"),
)
"""Faults that need neither root nor a compiler, and few of which start the service again."""


@pytest.mark.slow
def test_random_faults_lose_double_and_forget_nothing(tmp_path: Path) -> None:
    outcome = tmp_path / "outcome.json"
    script = [sys.executable, str(ROOT / "bench" / "campaign.py"), str(SEED), str(FAULTS)]
    options = ["--worlds", "local", "--plain", "--only", ",".join(CHEAP), "--most", "12"]
    ran = subprocess.run(
        [*script, *options, "--json", str(outcome)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    struck = json.loads(outcome.read_text())["faults"]
    assert sum(struck.values()) >= FAULTS
    assert len(struck) >= 8, "of many kinds"
