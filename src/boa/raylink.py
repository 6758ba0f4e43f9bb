"""The connection to a Ray cluster, which engine and cloud share: one to a process."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boa.errors import BoaError, InputError

TOKEN_LABEL = "boa-token"
"""A node that was rented for us says under which token."""
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
    try:
        import ray
    except ImportError:
        raise BoaError(
            "Ray is not installed here: pip install 'boa-constrictor[ray]', in the version that "
            "the cluster has"
        ) from None
    with _connecting:
        if not ray.is_initialized():
            try:
                ray.init(
                    address=address,
                    namespace=namespace,
                    log_to_driver=False,
                    configure_logging=False,
                )
            except Exception as problem:  # Ray has no error of its own for this
                expected = "a Ray cluster that can be reached, of this Ray's version"
                reason = str(problem).strip().split("\n")[0]
                raise InputError(
                    "ray.address", address, expected, f"no connection ({reason})"
                ) from problem
    return ray


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
