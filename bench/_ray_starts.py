"""Starts and stops of a small training on the Ray engine and on the local one, by parts."""

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from _marked_runs import MarkedRuns
from _rays import fixed_cluster
from _table import Cell, Measured
from boa import raylink
from boa.engines.base import Engine
from boa.engines.local import LocalEngine
from boa.engines.ray import RayEngine
from boa.model.job import JobSpec
from boa.model.runs import Launch, NodeSlots, RunKey
from restart import START, STOP, _medians, _parts

HERE = Path(__file__).resolve().parent
GPU, NODES = "T4", (2, 2)
NAMESPACE = "bench"
Parts = dict[str, float]
Found = dict[tuple[int, str], list[Parts]]


class Starts(MarkedRuns):
    """One engine; every run goes on from the checkpoint of the one before."""

    def __init__(self, root: Path, engine: Engine, nodes: Sequence[str]) -> None:
        self.engine, self.nodes = engine, nodes
        self.root, self.marks = root, root / "marks"
        self.marks.mkdir(parents=True)
        self.attempt = 0

    def restart(self, ranks: int) -> tuple[Parts, Parts]:
        """Seconds of every part of a start, and of the stop after it."""
        for left in self.marks.iterdir():
            left.unlink()
        self.attempt += 1
        key = RunKey("1", self.attempt)
        decided = time.time()
        self.engine.start(self._launch(key, ranks))
        self._await(key, (self.marks / "started.json").exists)
        start = self._started(key, decided)
        told, marks = self._stopped(key, f"{ranks} ranks")
        return start, _parts(told, marks, STOP)

    def _started(self, key: RunKey, decided: float) -> Parts:
        """The engine knows when it had its GPUs and its actors, the job the rest."""
        marks = dict(self._read("started.json"))
        if not isinstance(self.engine, RayEngine):
            return _parts(decided, marks, START)
        spent = self.engine.timings(key)
        marks["placed"] = decided + spent["place"]
        marks["prepared"] = marks["placed"] + spent["prepare"]
        return _parts(decided, marks, {"placed": "place_s", "prepared": "actors_s", **START})

    def _launch(self, key: RunKey, ranks: int) -> Launch:
        spec = JobSpec(
            job_class="restart",
            run=(sys.executable, str(HERE / "_restart_job.py"), str(self.marks)),
            env={"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"},
            preload=(),  # cold: there are no warm parents on Ray's nodes
        )
        return Launch(
            key=key,
            spec=spec,
            gpu_type=GPU,
            slots=tuple(self._slots(ranks)),
            checkpoint_dir=str(self.root / "checkpoints"),
        )

    def _slots(self, ranks: int) -> Sequence[NodeSlots]:
        """On the fewest nodes that have so many."""
        slots = []
        for number, (size, address) in enumerate(zip(NODES, self.nodes, strict=True)):
            if ranks > 0:
                slots.append(NodeSlots(number, tuple(range(min(size, ranks))), address))
            ranks -= size
        return slots


def starts(
    root: Path, widths: Sequence[int], repeat: int, say: Callable[[str], None]
) -> tuple[Measured, Measured]:
    """Both engines `repeat` times in turn, after one start of each that does not count."""
    started: Found = defaultdict(list)
    stopped: Found = defaultdict(list)
    with fixed_cluster([(GPU, size) for size in NODES]) as rays:
        ray = raylink.connect(rays.address, NAMESPACE)
        nodes = [n.id for n in raylink.nodes(ray) if n.alive and n.resources.get("GPU")]
        ours = RayEngine(
            root / "ray-runs", address=rays.address, namespace=NAMESPACE, log_bytes=1024**2
        )
        engines: dict[str, Engine] = {
            "ray": ours,
            "local": LocalEngine(root / "local-runs", log_bytes=1024**2),
        }
        both = {name: Starts(root / name, engine, nodes) for name, engine in engines.items()}
        for name, bench in both.items():
            first, _ = bench.restart(widths[0])
            say(f"first start, {name}: {first['total_s']:.2f} s")
        for turn in range(repeat):
            for ranks in widths:
                for name, bench in both.items():
                    start, stop = bench.restart(ranks)
                    started[ranks, name].append(start)
                    stopped[ranks, name].append(stop)
                    say(f"{turn + 1}/{repeat}: {name}, {ranks} ranks: {start['total_s']:.2f} s")
        for engine in engines.values():
            engine.close()
        ray.shutdown()
    note = f"medians of {repeat}; nodes of {' and '.join(map(str, NODES))} GPUs"
    return (
        _table("from the decision to the end of the first step", note, started),
        _table("from the stop to the end of the last process", note, stopped),
    )


def _table(title: str, note: str, found: Found) -> Measured:
    table = Measured(title, note=note)
    for (ranks, name), all_parts in found.items():
        medians = _medians(all_parts)
        ratio: Cell = None
        if name == "ray":
            local = _medians(found[ranks, "local"])["total_s"]
            ratio = round(medians["total_s"] / local, 2)
        parts = {part: value for part, value in medians.items() if part != "total_s"}
        table.add(ranks=ranks, engine=name, total_s=medians["total_s"], over_local=ratio, **parts)
    return table
