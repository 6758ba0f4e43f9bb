"""What a launch becomes in the cluster: Secrets that fit, process 1 of a pod, and their end."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from boa.engines.kubernetes import in_pod, luggage
from boa.engines.kubernetes.engine import KubernetesEngine
from boa.engines.kubernetes.frames import Unframed
from boa.engines.kubernetes.names import LAUNCH
from boa.engines.kubernetes.status import read
from boa.kubelink import Invalid, Kube, KubeTrouble, NotFound, Refused
from boa.model.job import JobSpec
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.runs import Launch, NodeSlots, RunKey

KEY = RunKey("7", 1)
MIB = 1024**2


def launch(*widths: int, env: Mapping[str, str] | None = None, **spec: Any) -> Launch:
    spec = {"run": ("python", "train.py"), **spec}
    return Launch(
        key=KEY,
        spec=JobSpec(job_class="c", env=dict(env or {}), **spec),
        gpu_type="T4",
        slots=tuple(NodeSlots(i, tuple(range(n)), f"n{i}") for i, n in enumerate(widths)),
        checkpoint_dir="/ckpt/7",
        env={"BOA_REPORT_TOKEN": "token"},
    )


class Stub:
    """A cluster that keeps what it is sent, in order, and refuses what it is told to."""

    namespace = "ns"

    def __init__(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.troubles: dict[str, KubeTrouble] = {}
        """By the beginning of what is asked: `POST /api/…`."""

    def _ask(self, verb: str, path: str) -> None:
        self.asked.append((verb, path))
        for asked, trouble in self.troubles.items():
            if f"{verb} {path}".startswith(asked):
                raise trouble

    def list(self, path: str, **_: str) -> list[dict[str, Any]]:
        self._ask("LIST", path)
        return [body for name, body in self.found.items() if name.startswith(path)]

    def get(self, path: str) -> dict[str, Any]:
        self._ask("GET", path)
        if path not in self.found:
            raise NotFound("none", status=404)
        return self.found[path]

    def create(self, path: str, body: dict[str, Any]) -> None:
        self._ask("POST", path)
        body["metadata"].setdefault("uid", "u")
        self.found[f"{path}/{body['metadata']['name']}"] = body

    def patch(self, path: str, body: Mapping[str, Any]) -> None:
        self._ask("PATCH", path)

    def delete(self, path: str, **_: Any) -> None:
        self._ask("DELETE", path)
        self.found.pop(path, None)


def engine(stub: Stub, root: Path) -> KubernetesEngine:
    settings = KubernetesSettings(image="img")
    return KubernetesEngine(root, kube=cast(Kube, stub), settings=settings, log_bytes=4096)


@pytest.mark.parametrize("widths", [(1,), (1, 1)])
def test_a_launch_that_fits_no_secret_fails_and_is_not_asked_for_again(
    tmp_path: Path, widths: tuple[int, ...]
) -> None:
    stub = Stub()
    runs = engine(stub, tmp_path)
    stub.troubles["POST /api/v1/namespaces/ns/secrets"] = Invalid("Too long: must have at most 1")
    runs.start(launch(*widths))
    (event,) = runs.poll()
    assert event.ended
    assert (event.exit_code, event.node_lost, event.run_lost) == (None, False, False)
    assert event.reason == "its launch cannot be sent to its pods: Too long: must have at most 1"
    runs.forget(KEY)
    runs.poll()
    assert not stub.found


def test_secrets_go_before_the_pods_that_name_them(tmp_path: Path) -> None:
    stub = Stub()
    runs = engine(stub, tmp_path)
    runs.start(launch(1, 1))
    assert len(stub.found) == 3
    stub.asked.clear()
    runs.stop(KEY, 0.0)
    runs.poll()
    runs.forget(KEY)
    runs.poll()
    assert not stub.found
    deleted = [path.split("/")[5] for verb, path in stub.asked if verb == "DELETE"]
    assert deleted[:1] == ["secrets"]
    assert set(deleted[1:]) == {"pods"}


def test_pods_go_also_where_secrets_may_not_be_removed(tmp_path: Path) -> None:
    stub = Stub()
    runs = engine(stub, tmp_path)
    runs.start(launch(1, 1))
    stub.troubles["DELETE /api/v1/namespaces/ns/secrets"] = Refused("no")
    runs.stop(KEY, 0.0)
    runs.poll()
    assert not [path for path in stub.found if "/pods/" in path]


def test_of_pods_that_nobody_knows_the_secrets_go_first(tmp_path: Path) -> None:
    stub = Stub()
    engine(stub, tmp_path / "one").start(launch(1, 1))
    stub.found.popitem()  # of a gang that is not whole
    stub.asked.clear()
    engine(stub, tmp_path / "two")
    assert not stub.found
    deleted = [path.split("/")[5] for verb, path in stub.asked if verb == "DELETE"]
    assert deleted == ["secrets", "pods"]


# What travels


def carried(started: Launch, nodes: int) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    """The first Secret, and the launches of its pods as they were before."""
    parts = luggage.parts_of(started, [f"p{n}" for n in range(nodes)])
    documents = luggage.documents(
        started, parts, tag="t", port=1, workdir="/w", log_bytes=1, image="i", kept=True
    )
    return dict(luggage.contents(["s"], documents, {}, []))["s"], documents


@pytest.mark.parametrize("launcher", ["workers", "torchrun", "single"])
def test_what_ranks_share_travels_once_and_each_pod_has_all_of_its_own(launcher: str) -> None:
    started = launch(4, 2, env={"BIG": "x" * 100_000}, launcher=launcher)
    secret, documents = carried(started, 2)
    assert sum(map(len, secret.values())) < len(luggage.code()) + 120_000
    for number, document in enumerate(documents):
        joined = in_pod.joined(secret[in_pod.COMMON], secret[f"{in_pod.LAUNCH}{number}"])
        assert joined["plans"] == document["plans"]
        assert joined.items() >= document.items()


def test_a_thousand_ranks_fit_a_secret() -> None:
    started = launch(*[8] * 128, env={"BIG": "x" * 100_000}, run=("python", "y" * 100_000))
    secret, _ = carried(started, 128)
    assert sum(map(len, secret.values())) < MIB


RANK = """
import ctypes, os
print("dumpable", ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), os.environ["MINE"], flush=True)
raise SystemExit(int(os.environ["CODE"]))
"""


@pytest.mark.parametrize("code", [0, 3])
def test_process_one_runs_what_travelled_and_its_exit_code_is_the_runs(
    tmp_path: Path, code: int
) -> None:
    run = (sys.executable, "-c", RANK)
    secret, _ = carried(launch(1, run=run, env={"MINE": "so", "CODE": str(code)}), 1)
    for name in ("launch", "run", "work"):
        tmp_path.joinpath(name).mkdir()
    for key, data in secret.items():
        tmp_path.joinpath("launch", key.removesuffix("0")).write_bytes(data)
    message = tmp_path / "message"
    script = f"""
import ctypes
from boa.engines.kubernetes import in_pod
from boa.engines.processes import run_supervisor
look_after = run_supervisor.look_after
def looked(*given):
    print("!own", ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), flush=True)
    look_after(*given)
run_supervisor.look_after = looked
in_pod.main({str(tmp_path)!r}, {str(message)!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stderr
    said = json.loads(message.read_text())
    assert (said["code"], said["up"]) == (code, True)
    assert b"!own 0" in done.stdout.splitlines(), "closed to its ranks"
    printed = b"".join(data for _, _, data in Unframed().feed(done.stdout))
    assert printed == b"dumpable 1 so\n", "who are as open as ever"
    ended = {"exitCode": done.returncode, "message": message.read_text()}
    state = {"terminated": {**ended, "finishedAt": "2099-01-01T00:00:00Z"}}
    pod = {
        "metadata": {"name": "p", "uid": "u", "annotations": {LAUNCH: "{}"}},
        "status": {"phase": "Failed", "containerStatuses": [{"name": "job", "state": state}]},
    }
    outcome = read(pod).outcome
    assert outcome is not None
    assert (outcome.told, outcome.code) == (True, code)
