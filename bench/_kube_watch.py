"""When pods got how far, to the millisecond: the API's own times are whole seconds."""

import json
import threading
import time
from typing import Any

import httpx

from boa.engines.kubernetes.names import GO
from kube.cluster import Cluster

TURN_S = "3"
"""Whole seconds after which it looks whether it is still wanted."""


class Sightings:
    """Of all pods of a namespace, by a watch in a thread of its own."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._api, self._path = cluster.api, f"/api/v1/namespaces/{namespace}/pods"
        self._lock, self._closed = threading.Lock(), False
        self._seen: dict[str, dict[str, float]] = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def clear(self) -> None:
        with self._lock:
            self._seen.clear()

    def last(self) -> dict[str, float]:
        """When the last pod was scheduled, running, let through the gate: what all had to wait
        for. What no pod has seen is not there."""
        with self._lock:
            marks = [dict(one) for one in self._seen.values()]
        names = {name for one in marks for name in one}
        return {name: max(one.get(name, 0.0) for one in marks) for name in names}

    def close(self) -> None:
        self._closed = True
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed:
            try:
                with self._api.lines(self._path, watch="1", timeoutSeconds=TURN_S) as lines:
                    for line in lines:
                        self._see(json.loads(line)["object"], time.time())
            except httpx.HTTPError:
                time.sleep(0.1)  # the API server is away

    def _see(self, pod: dict[str, Any], now: float) -> None:
        statuses = pod["status"].get("containerStatuses") or [{}]
        reached = {
            "scheduled": bool(pod["spec"].get("nodeName")),
            "running": "running" in (statuses[0].get("state") or {}),
            "let_in": GO in (pod["metadata"].get("annotations") or {}),
        }
        with self._lock:
            marks = self._seen.setdefault(pod["metadata"]["name"], {})
            for name, there in reached.items():
                if there:
                    marks.setdefault(name, now)
