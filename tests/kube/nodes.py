"""Machines of a cluster, fake or real, and what is asked of one."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kube import places
from kube.control_plane import ControlPlane
from kube.lines import Child

GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a node is to be."""

    name: str
    gpus: int = 4
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    gpus_after_s: float = 0.0
    """How long its device plugin takes, once the node is ready."""
    provider_id: str = ""
    cpus: int = 64
    """Of fake nodes; real ones have what the machine has."""
    memory: str = "256Gi"
    pods: int = 600


class Nodes(Protocol):
    """By their names."""

    def start(self, shape: Shape) -> None:
        """Begin it; it registers by itself."""

    def kill(self, name: str) -> None:
        """At once, with all that runs there; none is there: fine."""

    def import_image(self, archive: Path) -> None:
        """For every node, those to come included."""

    def import_no_more(self, archive: Path) -> None:
        """Nodes to come do without it."""

    def close(self) -> None: ...


class FakeNodes:
    """One process has all of them (`kube.fake`)."""

    def __init__(self, folder: Path, plane: ControlPlane, keeper: Child) -> None:
        state = folder / "fake"
        state.mkdir()
        admin, authority = plane.admin, plane.authority
        serving = authority.server("fake-kubelet", ["127.0.0.1"])
        told = {
            "server": plane.server,
            "authority": str(authority.certificate),
            "client": [str(admin.certificate), str(admin.key)],
            "serving": [str(serving.certificate), str(serving.key)],
            "folder": str(state),
        }
        begin = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if os.geteuid() != 0:  # root of a user namespace of its own may bind folders, too
            begin[1:1] = ["--user", "--map-root-user"]
        fake = ["-m", "kube.fake", json.dumps(told)]
        self._child = python(folder, "fake-nodes", *fake, begin=begin)
        keeper.ask(do="adopt", pid=self._child.pid)

    def start(self, shape: Shape) -> None:
        self._child.ask(do="start", **_plain(shape))

    def kill(self, name: str) -> None:
        self._child.ask(do="kill", name=name)

    def import_image(self, archive: Path) -> None:
        """They have every image."""

    def import_no_more(self, archive: Path) -> None:
        """They have."""

    def close(self) -> None:
        self._child.close()


def _plain(shape: Shape) -> dict[str, Any]:
    return {**asdict(shape), "taints": [dict(one) for one in shape.taints]}


def python(state: Path, name: str, *args: str, begin: Sequence[str] = ()) -> Child:
    """A child of this Python, which finds this package."""
    found = [str(places.TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
    return Child([*begin, sys.executable, *args], env, state / "log" / f"{name}.log")
