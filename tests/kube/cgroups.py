"""Control groups of real nodes' containers: a machine that is gone at once leaves them behind."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kube.waiting import until

_TOP = Path("/sys/fs/cgroup")
_CONTAINERD = "k8s.io"
_PATIENCE_S = 10.0


def remove(node: Path) -> None:
    """Those of the containers in a node's folder, once their processes have ended."""
    known = [
        container.name
        for kind in ("sandboxes", "containers")
        for container in (node / "containerd" / "io.containerd.grpc.v1.cri" / kind).glob("*")
    ]
    with contextlib.suppress(TimeoutError):
        until(f"no process of {node.name}", lambda: _removed(known), _PATIENCE_S)


def _removed(containers: Iterable[str]) -> bool:
    left = False
    for top in _hierarchies():
        for name in containers:
            for folder, _, _ in os.walk(top / name, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    left = True
        with contextlib.suppress(OSError):  # other clusters' are there
            top.rmdir()
    return not left


def _hierarchies() -> Iterator[Path]:
    """All of them with version 1, one with version 2."""
    yield _TOP / _CONTAINERD
    if not (_TOP / "cgroup.controllers").exists():
        for one in os.scandir(_TOP):
            if one.is_dir(follow_symlinks=False):
                yield Path(one.path) / _CONTAINERD
