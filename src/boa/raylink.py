"""The connection to a Ray cluster, which engine and cloud share: one to a process."""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boa.errors import BoaError, InputError

TOKEN_LABEL = "boa-token"
"""A node that was rented for us says under which token."""
KNOCK_S = 5.0
_connecting = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class RayNode:
    id: str
    alive: bool
    address: str
    """Its IP."""
    resources: Mapping[str, float]
    labels: Mapping[str, str]


def connect(address: str, namespace: str) -> Any:
    """Ray's module, connected. What we leave in the cluster is found again under `namespace`."""
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")  # or it says at its end what it held back
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")  # or it knocks for a quarter of an hour
    try:
        import ray
    except ImportError:
        raise BoaError(
            "Ray is not installed here: pip install 'boa-constrictor[ray]', in the version that "
            "the cluster has"
        ) from None
    if address.startswith("ray://"):
        expected = "HOST:PORT of the head, or auto; this machine is then one of its nodes"
        raise InputError("ray.address", address, expected)
    with _connecting:
        if not ray.is_initialized():
            try:
                _knock(address)
                _init(ray, address, namespace)
            except Exception as problem:  # Ray has no error of its own for this
                expected = (
                    "a Ray cluster that can be reached, of this Ray's version and with its token"
                )
                reason = str(problem).strip().split("\n")[0]
                raise InputError(
                    "ray.address", address, expected, f"no connection ({reason})"
                ) from problem
    return ray


def _knock(address: str) -> None:
    """Where nobody listens, Ray itself would try for most of a minute before it says so."""
    host, _, port = address.rpartition(":")
    if host:
        socket.create_connection((host, int(port)), KNOCK_S).close()


def _init(ray: Any, address: str, namespace: str) -> None:
    """Ray would take SIGTERM, which is the service's, and print what we hear as exceptions."""
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    ours = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, namespace=namespace, log_to_driver=False, configure_logging=False)
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)
    if not isinstance(sys.stdout, _NotForRay):
        sys.stdout = _NotForRay(sys.stdout)


class _NotForRay:
    """Stdout for all but Ray, whose thread prints there what happens in the cluster: to the log."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if not threading.current_thread().name.startswith("ray_"):
            return int(self._stream.write(text))
        if "(raylet)" in text:
            said = text.partition("(raylet)")[2].strip().split("\n")[0]
            logging.getLogger("boa.ray").info(said.removeprefix("\x1b[0m ").strip())
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def nodes(ray: Any) -> Sequence[RayNode]:
    """All that the cluster knows of, dead ones included."""
    return [
        RayNode(
            id=node["NodeID"],
            alive=node["Alive"],
            address=node["NodeManagerAddress"],
            resources=node.get("Resources", {}),
            labels=node.get("Labels", {}),
        )
        for node in ray.nodes()
    ]
