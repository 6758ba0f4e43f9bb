"""Training scripts in a Python without site-packages: all that a training container may have."""

import subprocess
import sys
from pathlib import Path

import boa

_ALONE = f"""
import sys, types
sys.modules["boa"] = package = types.ModuleType("boa")
package.__path__ = [{str(Path(boa.__file__).parent)!r}]  # the rest of BOA needs NumPy
from boa import train
"""


def run_alone(code: str, *arguments: str, **environment: str) -> str:
    """What a script prints that has `train`."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _ALONE + code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
