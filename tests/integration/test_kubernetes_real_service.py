"""`boa serve` on a cluster whose nodes come and go by claims or by placeholders, and is killed.

The API server, the scheduler, kubelets and the service are real; Karpenter and the autoscaler are
doubles. Jobs are replayed, each behind a lock that shows if it ever ran twice at once.
"""

import json
import re
import secrets
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from boa.client import Client
from boa.client.spawn import OwnService, ServiceFailed
from boa.formats.profile import load_profile
from boa.sim.replay_jobs import replay_spec
from boa.store.sql import open_store
from forwarding import forwarding
from kube.autoscaler import Autoscaler, Group
from kube.cluster import Cluster
from kube.doubles import Double
from kube.karpenter import CLAIMS, Karpenter
from kube.waiting import until
from kube_torch import template

pytestmark = pytest.mark.kubernetes

TOKEN = secrets.token_hex(32)
JOBS = 3
WORK_S = 4.0
PRICE = 2.0
IDLE_S = 3.0
"""Seconds that the autoscaler keeps a node of no use: they are paid for too."""
EARLY_S = {"karpenter": 2.0, "autoscaler": 60.0}
"""Seconds by which a charge may begin before the machine does: claims tell when that was, to the
second; an autoscaler is charged from the wish, and finds it when the machine is free to look."""
LATE_S = 30.0
"""Seconds that it may take us to see that a node is gone, on a busy machine."""
LOCKED = """
import fcntl, os, sys
if os.environ.get("RANK", "0") == "0":
    os.makedirs(os.environ["BOA_CHECKPOINT_DIR"], exist_ok=True)
    lock = os.open(os.environ["BOA_CHECKPOINT_DIR"] + ".lock", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(lock, True)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        open(sys.argv[1], "a").write(os.environ["BOA_JOB_ID"] + "\\n")
os.execv(sys.argv[2], sys.argv[2:])
"""


class World:
    def __init__(self, cluster: Cluster, folder: Path, mode: str, double: Double) -> None:
        self.cluster, self.folder, self.mode, self.double = cluster, folder, mode, double
        self.namespace = cluster.namespace()
        self.twice = folder / "twice"
        self.url = ""
        document = {
            "version": 1,
            "class": "wide",
            "work": [WORK_S],
            "rates": {"T4": {"one_node": [[1.0]], "across": [[1.0]]}},
        }
        self.profile = folder / "wide.json"
        self.profile.write_text(json.dumps(document))

    @contextmanager
    def service(self) -> Iterator[OwnService]:
        """One that pods reach, whose loopback is not this machine's."""
        host = urlsplit(self.cluster.server).hostname
        assert host is not None
        with forwarding(host, lambda: ("127.0.0.1", service.port)) as port:
            self.url = f"http://{host}:{port}"
            service = OwnService(self.folder / "service", self.config(), TOKEN)
            with service:
                yield service

    def config(self) -> dict[str, Any]:
        return {
            "engine": "kubernetes",
            "url": self.url,
            "budget_per_hour": 40,
            "keep_warm_s": 0,
            "refused_s": 1,
            "gpu_types": {"T4": {"price": PRICE, "gpus_per_node": 1, "max_nodes": 2}},
            "classes": {
                "wide": {
                    "profile": str(self.profile),
                    "arrivals_per_hour": 1,
                    "arrivals_weight_h": 100,
                    "measured_weight": 100,
                }
            },
            "kubernetes": {
                "kubeconfig": str(self.cluster.kubeconfig),
                "namespace": self.namespace,
                "nodes": self.mode,
                "image": "boa.test/python:1",
                "pod_template": template(self.folder),
                "karpenter": {"machines": {"T4": {"instance_types": ["one"]}}},
                "autoscaler": {"image": "boa.test/python:1"},
            },
        }

    def submit(self, client: Client) -> str:
        spec = replay_spec(load_profile(self.profile), self.profile)
        locked = (sys.executable, "-c", LOCKED, str(self.twice), *spec.run)
        return str(client.submit(replace(spec, run=locked))["id"])

    def left(self) -> list[str]:
        """Names of what was made to get nodes, and is still there."""
        pods = self.cluster.api.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        claims = self.cluster.api.found(CLAIMS) or {"items": []}
        return [one["metadata"]["name"] for one in (*pods, *claims["items"])]


@pytest.fixture
def world(real_kube: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    double: Double
    if request.param == "karpenter":
        double = Karpenter(real_kube, boot_s=0.5)
    else:
        double = Autoscaler(real_kube, {"T4": Group(gpus=1)}, boot_s=0.5, idle_s=IDLE_S)
    with double:
        yield World(real_kube, tmp_path, request.param, double)


@pytest.mark.parametrize("world", ["karpenter", "autoscaler"], indirect=True)
def test_a_stream_of_jobs_outlives_its_service_and_every_machine_is_paid_for_once(
    world: World,
) -> None:
    with world.service() as service, service.client() as client:
        jobs = [world.submit(client) for _ in range(JOBS)]
        until("jobs run", lambda: "running" in _states(client, jobs))
        service.kill()
        service.start()
        with _second_that_is_refused(world):
            for job in jobs:
                end = client.wait(job)
                assert (end["state"], end["restarts"], end["failures"]) == ("succeeded", 0, 0)
        until("no node is rented", lambda: not client.nodes())
        until("nothing is left", lambda: not world.left())
        assert not world.twice.exists(), "a job ran twice at once"
        cost = client.cost()
        if world.mode == "karpenter":
            _check_that_it_ends_without_its_lease(world, service)
    _check_ledger(world, cost)


def _states(client: Client, jobs: list[str]) -> set[str]:
    return {client.job(job)["state"] for job in jobs}


@contextmanager
def _second_that_is_refused(world: World) -> Iterator[None]:
    """Meanwhile, another service of the same owner is tried, once for both modes."""
    if world.mode != "karpenter":
        yield
        return
    second = OwnService(world.folder / "second", world.config())
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(second.start)
        yield
        with pytest.raises(ServiceFailed, match=r"kubernetes.owner: .* is its service"):
            started.result()


def _check_that_it_ends_without_its_lease(world: World, service: OwnService) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{world.namespace}/leases/boa"
    world.cluster.api.patch(path, {"spec": {"holderIdentity": "elsewhere_7_another"}})
    said = r"lease boa in namespace \S+ is held by elsewhere \(process 7\) now"
    until("the service has ended", lambda: service.ended() == 1)
    assert re.search(said, service.log.read_text().splitlines()[-1])


def _check_ledger(world: World, cost: Any) -> None:
    """Charged is what machines lived, each from birth to end, and nothing else."""
    lives = world.double.lives()
    assert 1 <= len(lives) <= JOBS
    charged = _charged(world)
    assert charged.keys() == {life.node for life in lives}, "each machine, and no other"
    for life in lives:
        assert life.gone is not None
        begins = min(begin for begin, _ in charged[life.node])
        ends = max(end for _, end in charged[life.node])
        # The service's clock and the wall may lie a little apart.
        assert life.born - EARLY_S[world.mode] <= begins <= life.born + 1
        assert life.gone - 1 <= ends <= life.gone + LATE_S, "the autoscaler's idle time too"
    paid_s = sum(end - begin for each in charged.values() for begin, end in each)
    assert cost["total_usd"] == pytest.approx(paid_s * PRICE / 3600)
    parts = sum(cost[part] for part in ("jobs_usd", "idle_usd", "provisioning_usd"))
    assert cost["total_usd"] == pytest.approx(parts)


def _charged(world: World) -> dict[str, list[tuple[float, float]]]:
    """By machine: from when until when it is in the books, for each token that had it."""
    found: dict[str, list[tuple[float, float]]] = {}
    url = f"sqlite:///{world.folder / 'service' / 'data' / 'boa.db'}"
    with closing(open_store(url)) as store:
        for node in store.nodes_between(0.0, 1e12):
            assert node.billed_from is not None
            assert node.gone_at is not None
            found.setdefault(node.address, []).append((node.billed_from, node.gone_at))
    return found
