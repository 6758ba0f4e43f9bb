"""A cluster in a process of its own, which ends with its parent. See `_rays`."""

import contextlib
import ctypes
import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ray._private.node import Node
from ray._private.parameter import RayParams
from ray.cluster_utils import Cluster

import _rays

PR_SET_CHILD_SUBREAPER = 36
"""Orphans come to us, so that none stays behind as a zombie."""
HEAD = {"num_cpus": 4, "num_gpus": 0, "include_dashboard": False, "include_log_monitor": False}


def fixed(settings: dict[str, Any]) -> str:
    """Head first; the others all at once."""
    common = {"object_store_memory": settings["object_store"], "node_ip_address": _rays.HEAD_IP}
    head = {**HEAD, **common, "no_monitor": True}
    cluster = Cluster(initialize_head=True, head_node_args=head, shutdown_at_exit=False)

    def add(number: int) -> None:
        kind, gpus = settings["nodes"][number]
        shape = {"num_cpus": 4, "num_gpus": gpus, "resources": {kind: gpus}}
        cluster.add_node(wait=False, **shape, **_rays.sockets(number), **common)

    with ThreadPoolExecutor() as pool:
        list(pool.map(add, range(len(settings["nodes"]))))
    cluster.wait_for_nodes()
    return str(cluster.address)


def autoscaled(settings: dict[str, Any]) -> str:
    params = RayParams(
        **HEAD,
        object_store_memory=settings["object_store"],
        node_ip_address=_rays.HEAD_IP,
        gcs_server_port=settings["port"],
        min_worker_port=0,
        max_worker_port=0,
        dashboard_agent_listen_port=0,
        autoscaling_config=settings["autoscaling"],
    )
    node = Node(params, head=True, shutdown_at_exit=False, spawn_reaper=False)
    return str(node.gcs_address)


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    settings = json.loads(sys.argv[1])
    address = (autoscaled if "autoscaling" in settings else fixed)(settings)
    print(json.dumps({"address": address}), flush=True)
    sys.stdin.read()  # until the parent lets go, or is gone
    _rays.end(os.environ[_rays.MARK], but=os.getpid())
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    shutil.rmtree(os.environ["RAY_TMPDIR"], ignore_errors=True)
    os._exit(0)  # Ray would look for what it started


if __name__ == "__main__":
    main()
