"""Starts and stops of a small training on pods and on the local engine, by parts, cold and warm."""

import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from _kube_watch import Sightings
from _marked_runs import MarkedRuns
from _table import Cell, Measured
from boa.engines.base import Engine
from boa.engines.kubernetes import KubernetesEngine
from boa.engines.local import LocalEngine
from boa.kubelink import connect
from boa.model.job import JobSpec
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.runs import Launch, NodeSlots, RunKey
from kube.cluster import Cluster
from kube_torch import template
from restart import START, STOP

HERE = Path(__file__).resolve().parent
IMAGE, GPU = "boa.test/python:1", "T4"
PLACED = {
    "created": "create_s",
    "scheduled": "schedule_s",
    "running": "container_s",
    "let_in": "gate_s",
}
"""Marks of a run's pods, in order, and what is over with each; those of the job come after."""
ORDER = ("total_s", *PLACED.values(), *START.values(), *STOP.values())
Parts = dict[str, float]
Found = dict[tuple[int, str, str], list[Parts]]
"""By ranks, engine, and whether it was cold."""


@dataclass
class Starts(MarkedRuns):
    """One engine; every run goes on from the checkpoint of the one before."""

    patience_s = 180.0

    root: Path
    engine: Engine
    job: str
    """A script of this folder that writes down how far it got."""
    pods: Sightings | None = None
    attempt: int = 0

    def __post_init__(self) -> None:
        self.marks = self.root / "marks"
        self.marks.mkdir(parents=True)

    def pair(self, nodes: Sequence[str]) -> dict[str, tuple[Parts, Parts]]:
        return {how: self.restart(nodes, warm=how == "warm") for how in ("cold", "warm")}

    def restart(self, nodes: Sequence[str], *, warm: bool) -> tuple[Parts, Parts]:
        """Seconds of every part of a start with a rank on each node, and of the stop after it."""
        for left in self.marks.iterdir():
            left.unlink()
        self.attempt += 1
        key = RunKey("1", self.attempt)
        if self.pods is not None:
            self.pods.clear()
        decided = time.time()
        self.engine.start(self._launch(key, nodes, warm))
        marks = {"created": time.time()} if self.pods is not None else {}
        self._await(key, (self.marks / "started.json").exists)
        if self.pods is not None:
            marks |= self.pods.last()
        start = parts(decided, marks | self._read("started.json"), {**PLACED, **START}, "stepped")
        told, marks = self._stopped(key, f"{len(nodes)} ranks")
        return start, parts(told, marks, STOP, "ended")

    def _launch(self, key: RunKey, nodes: Sequence[str], warm: bool) -> Launch:
        spec = JobSpec(
            job_class="restart",
            run=(sys.executable, str(HERE / self.job), str(self.marks)),
            env={"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"},
            preload=None if warm else (),
        )
        return Launch(
            key=key,
            spec=spec,
            gpu_type=GPU,
            slots=tuple(NodeSlots(number, (0,), name) for number, name in enumerate(nodes)),
            checkpoint_dir=str(self.root / "checkpoints"),
        )


def parts(since: float, marks: Mapping[str, float], names: Mapping[str, str], last: str) -> Parts:
    """Seconds between one mark and the next. The API says that a container runs when it has begun
    already: a mark that came after a later one has taken the time until that, and no more."""
    reached = [name for name in names if name in marks]
    latest = {name: min(marks[one] for one in reached[n:]) for n, name in enumerate(reached)}
    found = {"total_s": marks[last] - since}
    for name in reached:
        at = max(latest[name], since)
        found[names[name]] = at - since
        since = at
    return found


class Side:
    """Pods on one kind of node, beside the local engine."""

    def __init__(self, name: str, cluster: Cluster, folder: Path, job: str) -> None:
        self.name, self.cluster = name, cluster
        namespace = cluster.namespace()
        kube = connect(str(cluster.kubeconfig), namespace=namespace)
        settings = KubernetesSettings(image=IMAGE, pod_template=template(folder))
        self.pods = Sightings(cluster, namespace)
        engine = KubernetesEngine(folder / "runs", kube=kube, settings=settings, log_bytes=1024**2)
        self.starts = Starts(folder, engine, job, self.pods)
        self._kube = kube

    def pair(self, ranks: int) -> dict[str, tuple[Parts, Parts]]:
        """On nodes that are new, and once more on the same."""
        nodes = self.cluster.add_nodes(ranks, gpus=1)
        try:
            return {how: self.starts.restart(nodes, warm=how == "warm") for how in ("cold", "warm")}
        finally:
            for node in nodes:
                self.cluster.remove_node(node)

    def close(self) -> None:
        self.pods.close()
        _end(self.starts.engine)
        self._kube.close()


def starts(
    clusters: Mapping[str, Cluster],
    folder: Path,
    widths: Sequence[int],
    repeat: int,
    job: str,
    say: Callable[[str], None],
) -> tuple[Measured, Measured]:
    """All of them `repeat` times in turn, after one start that does not count."""
    started: Found = defaultdict(list)
    stopped: Found = defaultdict(list)
    with ExitStack() as after:
        sides = [Side(name, cluster, folder / name, job) for name, cluster in clusters.items()]
        for side in sides:
            after.callback(side.close)
        here = LocalEngine(folder / "local" / "runs", log_bytes=1024**2)
        after.callback(_end, here)
        local = Starts(folder / "local", here, job)
        first, _ = local.restart(["here"], warm=True)
        say(f"first start, local: {first['total_s']:.2f} s")
        for turn in range(repeat):
            for ranks in widths:
                found = {"local": local.pair([f"node {n}" for n in range(ranks)])}
                found |= {side.name: side.pair(ranks) for side in sides}
                for name, pair in found.items():
                    for how, (start, stop) in pair.items():
                        started[ranks, name, how].append(start)
                        stopped[ranks, name, how].append(stop)
                        took = ", ".join(f"{part} {s:.2f}" for part, s in start.items())
                        say(f"{turn + 1}/{repeat}: {name}, {how}, {ranks} nodes: {took}")
    note = f"medians of {repeat}; a rank on each node; {os.path.basename(job)}"
    cold = "cold: a new node, locally without a warm parent; warm: the same class once more there"
    return (
        _table("from the decision to the end of the first step", f"{note}; {cold}", started),
        _table("from the stop to the end of the last process", note, stopped),
    )


def _end(engine: Engine) -> None:
    """Whoever interrupts a bench leaves no run behind."""
    for key in engine.runs():
        engine.stop(key, 0.0)
    engine.close()


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """What a run has not is nothing: a pod's container was not seen to run before the job had
    begun."""
    names = max((list(one) for one in runs), key=len)
    return {name: round(statistics.median(one.get(name, 0.0) for one in runs), 4) for name in names}


def _table(title: str, note: str, found: Found) -> Measured:
    table = Measured(title, note=note)
    known = {name for runs in found.values() for one in runs for name in one}
    columns = [name for name in ORDER if name in known]
    for (ranks, name, how), runs in found.items():
        middle = medians(runs)
        ratio: Cell = None
        if name != "local":
            ratio = round(middle["total_s"] / medians(found[ranks, "local", how])["total_s"], 2)
        shown = {column: middle.get(column) for column in columns}
        table.add(nodes=ranks, engine=name, start=how, over_local=ratio, **shown)
    return table
