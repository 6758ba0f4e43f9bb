"""Fixtures that every folder of tests may use."""

import atexit
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Every run is the same run; `HYPOTHESIS_PROFILE=explore` looks for new examples.
# How long anything takes says how busy the machine is, and nothing about what is tested.
settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("reproducible", settings.get_profile("unhurried"), derandomize=True)
settings.register_profile("explore", settings.get_profile("unhurried"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "reproducible"))

# How wide tables are must not depend on where the tests run.
os.environ.pop("COLUMNS", None)

# Services tell commands of the same user where they are: those of tests tell nobody else's.
_TOLD = tempfile.mkdtemp(prefix="boa-tests-")
atexit.register(shutil.rmtree, _TOLD, ignore_errors=True)
os.environ["XDG_STATE_HOME"] = os.environ["XDG_RUNTIME_DIR"] = _TOLD

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--screenshots",
        metavar="DIR",
        type=Path,
        help="Where the dashboard's screenshots go; by default a temporary folder.",
    )


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The public traces and profiles, which are no part of the project.

    A user's clone does not have them, and skips; in CI they must be there.
    """
    folder = Path(os.environ.get("BOA_SHARED_DATA") or ROOT.parent / "shared" / "data")
    if folder.is_dir():
        return folder
    reason = f"no public traces and profiles at {folder}; set BOA_SHARED_DATA"
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """A service that a test has begun logs to that test's output, which closes with it."""
    root, ours = logging.getLogger(), logging.getLogger("boa")
    levels = root.level, ours.level
    yield
    root.handlers[:] = [one for one in root.handlers if not type(one).__module__.startswith("boa.")]
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


@pytest.fixture(scope="session")
def examples() -> Path:
    return ROOT / "examples"
