"""A service with many pods: how long its steps take, and what it asks of the API server."""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from _kube_starts import GPU, IMAGE
from _planned import until_planned
from _table import Measured
from boa.client import Client
from boa.client.spawn import OwnService
from boa.model.job import JobSpec
from boa.model.profile import ClassProfile
from boa.sim.replay_jobs import write_profiles
from kube.cluster import Cluster

HERE = Path(__file__).resolve().parent
GPUS = 16
PATIENCE_S, LOOK_S = 1800.0, 0.5
RUN = ("sleep", "1000000")
"""Processes of jobs that cost nothing: what is measured is the service."""


class Counted(OwnService):
    """Which writes down what it does: see `_kube_counted`."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        super().__init__(folder, config)
        self.figures = folder / "figures.json"
        self.program = (sys.executable, str(HERE / "_kube_counted.py"), str(self.figures))

    def read(self) -> "Figures":
        told = json.loads(self.figures.read_text())
        return Figures(**{**told, "calls": Counter(told["calls"])})


@dataclass(frozen=True, slots=True)
class Figures:
    """Since the service began."""

    at: float
    cpu_s: float
    threads: int
    mb: float
    calls: Counter[str]
    steps: list[float]


def load(
    cluster: Cluster, folder: Path, pods: int, steady_s: float, say: Callable[[str], None]
) -> Measured:
    namespace = cluster.namespace()
    nodes = -(-pods // GPUS)
    cluster.add_nodes(nodes, gpus=GPUS, labels={"boa-constrictor.dev/gpu": GPU})
    say(f"{nodes} nodes of {GPUS} GPUs are there")
    table = Measured(
        f"a service with {pods} pods, each a job of one GPU, on {nodes} fake nodes",
        note=f"steady: {steady_s:g} s in which nothing happens; calls: the service's own",
    )
    service = Counted(folder, _config(cluster, namespace, folder, pods))
    with service, service.client() as client:
        until_planned(client)
        before = service.read()
        submitted = time.monotonic()
        for _ in range(pods):
            client.submit(JobSpec(job_class="load", run=RUN, epochs=1))
        say(f"{pods} submitted in {time.monotonic() - submitted:.1f} s")
        _until_running(client, pods, say)
        ramped = _settled(service)
        table.add(phase="all start", **_row(before, ramped), pods_per_s=_rate(pods, before, ramped))
        time.sleep(steady_s)
        _until(lambda: len(service.read().steps) > len(ramped.steps), "steps go on")
        steady = _settled(service)
        table.add(phase="steady", **_row(ramped, steady))
    return table


def _config(cluster: Cluster, namespace: str, folder: Path, pods: int) -> dict[str, Any]:
    """A class that gains nothing from a second GPU, and a budget that is no matter."""
    rates = np.array([[[0.0, 1.0], [0.0, 1.0]]])
    profile = ClassProfile(name="load", work=(36000.0,), rates={GPU: rates}, rescale_s=30.0)
    files = write_profiles({"load": profile}, folder / "profiles")
    return {
        "budget_per_hour": 4.0 * pods,
        "engine": "kubernetes",
        "gpu_types": {GPU: {"price": 1.0, "gpus_per_node": GPUS}},
        "kubernetes": {
            "kubeconfig": str(cluster.kubeconfig),
            "namespace": namespace,
            "nodes": "fixed",
            "image": IMAGE,
            "placed_s": 1800,
        },
        "classes": {
            "load": {
                "profile": str(files["load"]),
                "arrivals_per_hour": pods / 10,
                "arrivals_weight_h": 1e6,
                "measured_weight": 1e6,
            }
        },
    }


def _until_running(client: Client, pods: int, say: Callable[[str], None]) -> None:
    said = [0.0]

    def all_run() -> bool:
        running = sum(job["state"] == "running" for job in client.jobs())
        if time.monotonic() - said[0] > 10:
            said[0] = time.monotonic()
            say(f"{running} of {pods} run, load {os.getloadavg()[0]:.0f}")
        return running == pods

    _until(all_run, f"{pods} jobs run")


def _settled(service: Counted) -> Figures:
    """What was written down after this moment."""
    now = time.time()
    _until(lambda: service.read().at > now, "figures")
    return service.read()


def _until(done: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > until:
            raise SystemExit(f"not within {PATIENCE_S:.0f} s: {what}")
        time.sleep(LOOK_S)


def _row(before: Figures, after: Figures) -> dict[str, Any]:
    took, steps = after.at - before.at, np.array(after.steps[len(before.steps) :]) * 1e3
    calls = after.calls - before.calls
    by_verb = {f"{verb}_per_s": round(n / took, 2) for verb, n in sorted(calls.items())}
    return {
        "s": round(took, 1),
        "steps": len(steps),
        "step_p50_ms": round(float(np.median(steps)), 1),
        "step_p95_ms": round(float(np.quantile(steps, 0.95)), 1),
        "step_worst_ms": round(float(steps.max()), 1),
        "calls_per_s": round(calls.total() / took, 2),
        "cpu_share": round((after.cpu_s - before.cpu_s) / took, 3),
        "threads": after.threads,
        "service_mb": round(after.mb),
        "load": round(os.getloadavg()[0], 1),
        **by_verb,
    }


def _rate(pods: int, before: Figures, after: Figures) -> float:
    return round(pods / (after.at - before.at), 2)
