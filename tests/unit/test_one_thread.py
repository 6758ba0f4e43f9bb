"""SciPy, loaded for one thread."""

import os
import subprocess
import sys

import pytest

from boa.one_thread import THREADS, for_one_thread

TOLD = """
import os
from boa.goodput.measured import MeasuredTimes
from boa.goodput.timing import Curve
curve = Curve((1.0, 2.0), (1.0, 2.0), (0.5, 1.0))
counts = {n: {g: curve for g in (n, 2 * n, 4 * n)} for n in (1, 2, 4)}
MeasuredTimes(placements={}, counts=counts).published((2, 1), 1)
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


def test_the_environment_is_as_it_was_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    with for_one_thread():
        assert os.environ[THREADS] == "1"
    assert THREADS not in os.environ
    monkeypatch.setenv(THREADS, "3")
    with for_one_thread():
        assert os.environ[THREADS] == "3", "somebody has said how many"
    assert os.environ[THREADS] == "3"


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted by Linux")
def test_times_between_measurements_start_no_threads() -> None:
    numpy_alone = "import os, numpy; print(len(os.listdir('/proc/self/task')))"
    plain = {name: value for name, value in os.environ.items() if name != THREADS}
    few, many = (
        subprocess.run(
            [sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=True
        ).stdout.split()
        for code in (numpy_alone, TOLD)
    )
    assert many == [few[0], "None"]
