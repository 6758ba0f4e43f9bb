"""A cluster in a process of its own, which ends with its parent. See `_rays`."""

import contextlib
import ctypes
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from ray._private.node import Node
from ray._private.parameter import RayParams
from ray.cluster_utils import Cluster

import _rays

PR_SET_CHILD_SUBREAPER = 36
"""Orphans come to us, so that none stays behind as a zombie."""
HEAD = {
    "node_ip_address": _rays.HEAD_IP,
    "num_cpus": 4,
    "num_gpus": 0,
    "include_dashboard": False,
    "include_log_monitor": False,
    "no_monitor": True,
    # by default, fixed ones: 0 lets each process bind one that is free, and say which
    "gcs_server_port": 0,
    "dashboard_port": 0,
    "dashboard_agent_listen_port": 0,
    "min_worker_port": 0,
    "max_worker_port": 0,
}


def fixed(settings: dict[str, Any]) -> str:
    """Head first, then the others, each when the one before it is up.

    Not at once, from threads: for every node, Ray imports its dashboard's libraries to see whether
    they are there (`get_dashboard_dependency_error`). Where they are not, of several threads that
    import them together Python tells only the first. The others' nodes get an agent that needs
    them, and die with it. Nodes that start together also take the same names for their logs and
    sockets: the first that no file has yet.
    """
    object_store = {"object_store_memory": settings["object_store"]}
    head = {**HEAD, **object_store}
    cluster = Cluster(initialize_head=True, head_node_args=head, shutdown_at_exit=False)
    for kind, gpus in settings["nodes"]:
        shape = {"num_cpus": 4, "num_gpus": gpus, "resources": {kind: gpus}}
        cluster.add_node(node_ip_address=_rays.HEAD_IP, **shape, **object_store)
    return str(cluster.address)


def autoscaled(settings: dict[str, Any]) -> str:
    """The head, then its autoscaler: its config has the head's port, known only when it is up.

    An autoscaler that finds a head whose type it does not know can do nothing.
    """
    params = RayParams(
        **HEAD,
        object_store_memory=settings["object_store"],
        env_vars={"RAY_NODE_TYPE_NAME": _rays.HEAD_TYPE},
    )
    node = Node(params, head=True, shutdown_at_exit=False, spawn_reaper=False)
    config = settings["autoscaling"]
    config["provider"]["gcs_address"] = node.gcs_address
    path = Path(os.environ["RAY_TMPDIR"], "autoscaling.json")
    path.write_text(json.dumps(config))
    params.autoscaling_config = str(path)
    node.start_monitor()
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
