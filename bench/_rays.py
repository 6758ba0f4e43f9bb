"""Real Ray clusters on this machine's loopback, for tests and benches.

`fixed_cluster`: a head and nodes with faked GPUs. `autoscaled_cluster`: a head alone, whose real
autoscaler (v2) launches nodes and takes them away, through Ray's own fake provider.

A cluster belongs to a process of its own (`_rays_head`), which ends with its parent and takes all
that it began with it. Who is left over is found by MARK=<its name> in the environment, or by being
begun by such a one (some of Ray's processes write over their environment). `ray stop` would kill
other people's clusters.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

MARK = "BOA_RAYS"
OBJECT_STORE = 80_000_000
"""Bytes, of every node: the least that Ray takes is 75 MB."""
END_S = 10.0
HERE = Path(__file__).parent
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # nodes take 127.0.0.1, not this machine's address
    "RAY_enable_autoscaler_v2": "1",
    "AUTOSCALER_UPDATE_INTERVAL_S": "1",
    "AUTOSCALER_METRIC_PORT": "0",  # any that is free, not always the same
    # a dead node is known after 3 missed checks, not after 10 s and more
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    # no worker processes in advance: they take a core for a second each
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what Ray itself advises, in a warning
}
HEAD_IP = "127.0.0.2"
"""On the loopback too; of 127.0.0.1, Ray would think that another machine could not reach it, and
look for the head at this machine's own address."""
HEAD_ID = "f" * 51 + "00000"
"""What Ray's fake provider takes for the head."""
HEAD_TYPE = "ray.head.default"


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of node that the autoscaler may launch."""

    gpus: int
    max: int
    cpus: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A node in the fake provider's diary; times of the wall."""

    node: str
    kind: str
    asked_at: float
    up_at: float
    """Its processes were started."""
    terminated_at: float | None = None


@dataclass(slots=True)
class Rays:
    """A cluster that is up."""

    address: str
    folder: Path
    mark: str
    process: "subprocess.Popen[str]" = field(repr=False)

    def kill_node(self, node_id: str) -> None:
        """SIGKILL to all processes of a node at once, as if its machine were gone."""
        raylets = [pid for pid in _marked(self.mark) if _is_raylet(pid, node_id)]
        if not raylets:
            raise LookupError(f"no raylet of node {node_id}")
        _kill(_trees(raylets))

    def diary(self) -> Sequence[Launched]:
        """What the provider launched and took away, the oldest first."""
        found: dict[str, Launched] = {}
        path = self.folder / "diary.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            entry = json.loads(line)
            node, at = entry["node"], entry["at"]
            if entry["event"] == "launch":
                found[node] = Launched(
                    node=node, kind=entry["kind"], asked_at=at, up_at=entry["up_at"]
                )
            else:
                found[node] = replace(found[node], terminated_at=at)
        return list(found.values())


@contextlib.contextmanager
def fixed_cluster(nodes: Sequence[tuple[str, int]]) -> Iterator[Rays]:
    """A head without GPUs, and these: (GPU type, GPUs)."""
    with _folder() as folder, _started({"nodes": nodes}, folder) as rays:
        yield rays


@contextlib.contextmanager
def autoscaled_cluster(
    types: Mapping[str, Kind], *, idle_s: float, launch_delay_s: float = 0.0
) -> Iterator[Rays]:
    """A head alone, and an autoscaler that may launch these, and takes idle ones away."""
    with _folder() as folder:
        config = _autoscaling(types, idle_s, launch_delay_s, folder)
        with _started({"autoscaling": config}, folder) as rays:
            yield rays


def _autoscaling(
    types: Mapping[str, Kind], idle_s: float, launch_delay_s: float, folder: Path
) -> dict[str, object]:
    """What Ray's autoscaler reads: JSON is YAML. The head adds its own address."""
    workers = {
        name: {
            "resources": {
                "CPU": kind.cpus,
                "GPU": kind.gpus,
                name: kind.gpus,
                "object_store_memory": OBJECT_STORE,
            },
            "node_config": {},
            "min_workers": 0,
            "max_workers": kind.max,
        }
        for name, kind in types.items()
    }
    head = {"resources": {"CPU": 4}, "node_config": {}, "max_workers": 0}
    return {
        "cluster_name": "boa",
        "max_workers": sum(kind.max for kind in types.values()),
        "idle_timeout_minutes": idle_s / 60,
        "provider": {
            "type": "external",
            "module": "_rays_provider.DiaryProvider",
            "head_node_id": HEAD_ID,
            "disable_node_updaters": True,  # nothing to install
            "launch_delay_s": launch_delay_s,
            "diary": str(folder / "diary.jsonl"),
        },
        "available_node_types": {**workers, HEAD_TYPE: head},
        "head_node_type": HEAD_TYPE,
        "upscaling_speed": 100,
        # what its reader looks for, and an `external` provider has no defaults for
        "auth": {},
        "docker": {},
        "file_mounts": {},
        "cluster_synced_files": [],
        "initialization_commands": [],
        "setup_commands": [],
        "head_setup_commands": [],
        "worker_setup_commands": [],
        "head_start_ray_commands": [],
        "worker_start_ray_commands": [],
    }


@contextlib.contextmanager
def _started(settings: Mapping[str, object], folder: Path) -> Iterator[Rays]:
    mark = uuid.uuid4().hex
    errors = (folder / "errors").open("w+")
    process = subprocess.Popen(
        [
            sys.executable,
            str(HERE / "_rays_head.py"),
            json.dumps({"object_store": OBJECT_STORE, **settings}),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=True,
        env=_environment(mark, folder, autoscaled="autoscaling" in settings),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            process.wait()
            errors.seek(0)
            raise RuntimeError(f"no Ray cluster: {errors.read()[-2000:]}")
        yield Rays(json.loads(line)["address"], folder, mark, process)
    finally:
        with errors, process.stdin, process.stdout:
            process.stdin.close()  # it kills and buries the others, and ends
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
            end(mark)
            process.wait()


def _environment(mark: str, folder: Path, *, autoscaled: bool) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    ours = {MARK: mark, "PYTHONPATH": path, "RAY_TMPDIR": str(folder), **SETTINGS}
    if autoscaled:
        ours |= {
            "RAY_FAKE_CLUSTER": "1",
            "RAY_CLOUD_INSTANCE_ID": HEAD_ID,
            "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD_ID,
        }
    return inherited | ours


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A short path: Ray's sockets are in it, and their names may have 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="rays", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# Processes


def end(mark: str, but: int = 0) -> None:
    """SIGKILL to every process of this cluster, and to those that they begin meanwhile."""
    deadline = time.monotonic() + END_S
    while pids := [pid for pid in _trees(_marked(mark)) if pid != but and not _is_zombie(pid)]:
        _kill(pids)
        if time.monotonic() > deadline:
            raise RuntimeError(f"processes that do not end: {pids}")
        time.sleep(0.02)


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> list[int]:
    """Those with our mark in their environment; one that has ended has none."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for pid in _pids():
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def _is_raylet(pid: int, node_id: str) -> bool:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return words[0].endswith(b"/raylet") and f"--node_id={node_id}".encode() in words
    return False


def _trees(roots: Sequence[int]) -> list[int]:
    """These processes with all that they began."""
    children = defaultdict(list)
    for pid in _pids():
        with contextlib.suppress(OSError):
            children[int(_stat(pid)[1])].append(pid)
    found = dict.fromkeys(roots)
    for pid in (waiting := list(found)):  # which grows
        new = [child for child in children[pid] if child not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def _is_zombie(pid: int) -> bool:
    try:
        return _stat(pid)[0] == "Z"
    except OSError:
        return True


def _stat(pid: int) -> list[str]:
    """State, parent, and more: what comes after the name."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
