"""From BOA's wish to a node that jobs can start on, and back: whose time it is."""

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from _rays import Kind, Launched, Rays, autoscaled_cluster
from _table import Measured
from boa import raylink
from boa.clock import SteadyClock
from boa.clouds.ray.cloud import RayCloud
from boa.model.workload import GpuType

GPU, GPUS = "T4", 4
LAUNCH_S, IDLE_S = 2.0, 2.0
LOOK_S, PATIENCE_S = 0.05, 120.0
NAMESPACE = "bench"
UP = {
    "sent": "say_s",
    "asked": "autoscaler_s",
    "launched": "provider_s",
    "registered": "join_s",
    "seen": "seen_s",
}
DOWN = {"sent": "say_s", "left": "autoscaler_s", "seen": "seen_s"}
"""Marks in order, and what is over with each."""
Parts = dict[str, float]


class Watch:
    """When Ray itself first had so many nodes with GPUs, looked at from a thread of its own."""

    def __init__(self, ray: Any, done: Callable[[int], bool]) -> None:
        self._ray, self._done = ray, done
        self.at = 0.0
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            found = [n for n in raylink.nodes(self._ray) if n.alive and n.resources.get("GPU")]
            if self._done(len(found)):
                self.at = time.time()
                return
            time.sleep(LOOK_S)

    def join(self) -> float:
        self._thread.join()
        return self.at


class Scaling:
    def __init__(self, ray: Any, rays: Rays, cloud: RayCloud) -> None:
        self.ray, self.rays, self.cloud = ray, rays, cloud
        self.turn = self.before = 0

    def up(self, count: int) -> Parts:
        """So many nodes, from none: until the last of them is there."""
        self.turn += 1
        self.before = len(self.rays.diary())
        watch = Watch(self.ray, lambda found: found >= count)
        wished = time.time()
        for token in self._tokens(count):
            self.cloud.rent(token, GPU)
        marks = {"sent": time.time()}
        marks["seen"] = self._until(lambda: self._ready() == count)
        new = self._new(count)
        marks["asked"] = max(node.asked_at for node in new)
        marks["launched"] = max(node.up_at for node in new)
        marks["registered"] = watch.join()
        parts = _parts(wished, marks, UP)
        own = max(node.up_at - node.asked_at for node in new)
        return {**parts, "over_provider": parts["total_s"] / own}

    def down(self, count: int) -> Parts:
        """All of them given back: until the last is gone. Ray drains nodes itself, then tells the
        provider."""
        watch = Watch(self.ray, lambda found: found == 0)
        wished = time.time()
        for token in self._tokens(count):
            self.cloud.release(token)
        marks = {"sent": time.time()}
        marks["seen"] = self._until(lambda: not self._listed())
        marks["left"] = watch.join()
        self._until(lambda: all(node.terminated_at for node in self.rays.diary()))
        terminated = max(node.terminated_at or 0.0 for node in self._new(count))
        return {**_parts(wished, marks, DOWN), "terminated_after_s": terminated - wished}

    def _tokens(self, count: int) -> Sequence[str]:
        return [f"bench-{self.turn}-{number}" for number in range(count)]

    def _new(self, count: int) -> Sequence[Launched]:
        """The provider writes a launch down when it is over."""
        self._until(lambda: len(self.rays.diary()) >= self.before + count)
        return self.rays.diary()[self.before :]

    def _listed(self) -> int:
        return sum(node.gone_at is None for node in self.cloud.nodes())

    def _ready(self) -> int:
        nodes = self.cloud.nodes()
        return sum(node.ready_at is not None and node.gone_at is None for node in nodes)

    def _until(self, done: Callable[[], bool]) -> float:
        until = time.monotonic() + PATIENCE_S
        while not done():
            if time.monotonic() > until:
                raise SystemExit(f"not within {PATIENCE_S:.0f} s: {self.rays.diary()}")
            time.sleep(LOOK_S)
        return time.time()


def _parts(since: float, marks: Mapping[str, float], names: Mapping[str, str]) -> Parts:
    """A mark that came before the one that it should follow has taken no time of its own; what
    comes after the last one (the provider returns late) is nobody's wait."""
    parts, end = {"total_s": marks["seen"] - since}, marks["seen"]
    for mark, name in names.items():
        at = min(max(since, marks[mark]), end)
        parts[name] = at - since
        since = at
    return parts


def scaling(
    folder: Path, counts: Sequence[int], repeat: int, say: Callable[[str], None]
) -> tuple[Measured, Measured]:
    kinds = {GPU: Kind(gpus=GPUS, max=max(counts))}
    came: dict[int, list[Parts]] = defaultdict(list)
    went: dict[int, list[Parts]] = defaultdict(list)
    with autoscaled_cluster(kinds, idle_s=IDLE_S, launch_delay_s=LAUNCH_S) as rays:
        ray = raylink.connect(rays.address, NAMESPACE)
        cloud = RayCloud(
            folder / "ray.json",
            address=rays.address,
            namespace=NAMESPACE,
            nodes="autoscaler",
            gpu_types={GPU: GpuType(name=GPU, price=1.0, gpus_per_node=GPUS)},
            max_nodes={},
            clock=SteadyClock(),
        )
        bench = Scaling(ray, rays, cloud)
        for turn in range(repeat):
            for count in counts:
                came[count].append(bench.up(count))
                went[count].append(bench.down(count))
                up, down = came[count][-1]["total_s"], went[count][-1]["total_s"]
                say(f"{turn + 1}/{repeat}: {count} nodes in {up:.2f} s, gone in {down:.2f} s")
        ray.shutdown()
    note = f"medians of {repeat}; until the last node; looked at every {LOOK_S:g} s"
    boots = f"{note}; the provider waits {LAUNCH_S:g} s before a node's processes start"
    idles = f"{note}; idle timeout {IDLE_S:g} s, which is the autoscaler's"
    return (
        _table("from BOA's wish to nodes that are ready", boots, came),
        _table("from a node given back to gone", idles, went),
    )


def _table(title: str, note: str, found: Mapping[int, list[Parts]]) -> Measured:
    table = Measured(title, note=note)
    for count, runs in found.items():
        medians = {name: round(statistics.median(r[name] for r in runs), 3) for name in runs[0]}
        table.add(nodes=count, **medians)
    return table
