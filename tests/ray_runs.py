"""Real runs on a real Ray cluster of this machine, for tests to wait on."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from boa.engines.ray import RayEngine
from boa.model.runs import Launch, NodeSlots, RunKey
from cluster_contract import ClusterRuns
from local_runs import alive

NAMESPACE = "boa-test"


class RayRuns(ClusterRuns):
    """`slots` are (index of a node, number of GPUs) of one type's nodes."""

    def __init__(
        self, root: Path, address: str, nodes: list[str], log_bytes: int = 1024**2
    ) -> None:
        self.root, self.log_bytes = root, log_bytes
        self.address, self.nodes = address, nodes
        self.events = {}
        self.crash()

    def crash(self) -> None:
        """The service is gone without a word, and another one begins."""
        self.engine: RayEngine = RayEngine(  # type: ignore[assignment]
            self.root / "runs",
            address=self.address,
            namespace=NAMESPACE,
            log_bytes=self.log_bytes,
        )
        self.events.clear()

    def launch(self, *run: str, **given: Any) -> Launch:
        slots = given.pop("slots", ((0, 1),))
        gpu_type = given.pop("gpu_type", "T4")
        launch = super().launch(*run, **given)
        return Launch(
            key=launch.key,
            spec=launch.spec,
            gpu_type=gpu_type,
            slots=tuple(NodeSlots(i, tuple(range(n)), self.nodes[i]) for i, n in slots),
            checkpoint_dir=launch.checkpoint_dir,
            env=launch.env,
        )

    def pids(self, key: RunKey, rank: int = 0) -> list[int]:
        """As the command printed them behind `up`."""
        self.until_printed(key, "up ", rank)
        return self._printed(key, rank)

    def living(self, key: RunKey) -> bool:
        return any(alive(pid) for rank in range(4) for pid in self._printed(key, rank))

    def _printed(self, key: RunKey, rank: int) -> list[int]:
        lines = (line for line in self.log(key, rank).splitlines() if line.startswith("up "))
        return [int(word) for line in lines for word in line.split()[1:]]


def raylet_of(node: str) -> int:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/raylet") and f"--node_id={node}".encode() in words:
                return int(pid)
    raise LookupError(node)
