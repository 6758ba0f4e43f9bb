"""Fixtures that every folder of tests may use."""

import atexit
import contextlib
import gc
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings

from kube.cluster import Cluster
from kube.places import NoKubernetes

pytest.register_assert_rewrite("cluster_contract")

# Every run is the same run; `HYPOTHESIS_PROFILE=explore` looks for new examples.
# How long anything takes says how busy the machine is, and nothing about what is tested.
settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile(
    "reproducible", settings.get_profile("unhurried"), derandomize=True, max_examples=60
)
settings.register_profile("explore", settings.get_profile("unhurried"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "reproducible"))

# How wide tables are must not depend on where the tests run.
os.environ.pop("COLUMNS", None)

# Services tell commands of the same user where they are: those of tests tell nobody else's.
_TOLD = tempfile.mkdtemp(prefix="boa-tests-")
atexit.register(shutil.rmtree, _TOLD, ignore_errors=True)
os.environ["XDG_STATE_HOME"] = os.environ["XDG_RUNTIME_DIR"] = _TOLD

ROOT = Path(__file__).resolve().parent.parent

gc.disable()  # all that is imported stays: see below


def pytest_collection_finish() -> None:
    """Look for garbage from now on, and not through all that was imported each time."""
    gc.freeze()
    gc.enable()


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
    if not folder.is_dir():
        _not_here(f"no public traces and profiles at {folder}; set BOA_SHARED_DATA")
    return folder


def _not_here(reason: str) -> NoReturn:
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextlib.contextmanager
def _cluster(folder: Path, *, real: bool) -> Iterator[Cluster]:
    with contextlib.ExitStack() as after:
        try:
            cluster = after.enter_context(Cluster.up(folder, real=real))
        except NoKubernetes as missing:
            _not_here(str(missing))
        yield cluster


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of the tests on Kubernetes one worker has those on fake nodes, another those on real ones,
    which have the word in their names: each begins one cluster."""
    from xdist.scheduler import LoadScopeScheduling

    class ByNodes(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            return "real" if "real" in nodeid else "fake"

    return ByNodes(config, log) if config.option.markexpr == "kubernetes" else None


@pytest.fixture(scope="session")
def kube_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Kubernetes control plane, for all tests of the session: whoever wants nodes adds them."""
    with _cluster(tmp_path_factory.mktemp("kube"), real=False) as cluster:
        yield cluster


@pytest.fixture
def kube(kube_cluster: Cluster) -> Iterator[Cluster]:
    """The same for one test: what nodes and namespaces it adds are gone afterwards."""
    with kube_cluster.clean_after():
        yield kube_cluster


@pytest.fixture(scope="session")
def real_kube_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two real nodes of 4 GPUs, for all tests of the session."""
    with _cluster(tmp_path_factory.mktemp("real-kube"), real=True) as cluster:
        cluster.add_nodes(2, gpus=4)
        yield cluster


@pytest.fixture
def real_kube(real_kube_cluster: Cluster) -> Iterator[Cluster]:
    """The same for one test: there are two nodes, whatever the one before did to them."""
    if missing := 2 - len(real_kube_cluster.nodes):
        real_kube_cluster.add_nodes(missing, gpus=4)
    with real_kube_cluster.clean_after():
        yield real_kube_cluster


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
