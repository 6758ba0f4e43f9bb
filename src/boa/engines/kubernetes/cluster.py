"""The calls that the engine makes to the cluster. All of them return soon."""

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from boa.engines.kubernetes.names import GO, selector
from boa.engines.kubernetes.status import PodState, read, unreadable
from boa.kubelink import (
    Conflict,
    Exists,
    Kube,
    KubeTrouble,
    NotFound,
    events,
    nodes,
    pods,
    secrets,
)
from boa.units import Seconds

LOOK_S: Seconds = 2.0
"""Between two looks at the nodes."""
SILENT_S: Seconds = 5.0
"""A node that has not been heard of (for 40 s, unless the cluster is set otherwise) is given up."""
UNWELL_S: Seconds = 30.0
"""One that itself says that it is not ready may get well: what runs there may go on."""
SETTLE_S: Seconds = 30.0
"""After the API server was away, nodes have to be heard of first."""
FEW = 20
"""Jobs whose pods are asked for by name; with more, all are listed."""
_log = logging.getLogger("boa.engines")


class Cluster:
    def __init__(self, kube: Kube, owner: str) -> None:
        self.kube, self.owner, self.namespace = kube, owner, kube.namespace
        self._statuses: dict[str, str] = {}
        """Nodes, and what is said of them."""
        self._unready_since: dict[str, Seconds] = {}
        self._looked = -LOOK_S
        self._trusted_at = -SETTLE_S
        self._odd: set[str] = set()
        """Pods that could not be read, and of which the log has told."""

    # Pods

    def pods(self, jobs: Collection[str] = ()) -> dict[str, PodState]:
        """Those of all our runs, or of these jobs' alone. Raises KubeTrouble."""
        asked = jobs if len(jobs) <= FEW else ()
        try:
            found = self.kube.list(pods(self.namespace), labels=selector(self.owner, asked))
        except KubeTrouble:
            self._trusted_at = time.monotonic() + SETTLE_S
            raise
        states = [state for pod in found if (state := self._read(pod)) is not None]
        return {state.name: state for state in states}

    def pod(self, name: str) -> PodState | None:
        try:
            return self._read(self.kube.get(pods(self.namespace, name)))
        except NotFound:
            return None

    def _read(self, pod: Mapping[str, Any]) -> PodState | None:
        """One that makes no sense costs itself alone."""
        try:
            return read(pod)
        except Exception as trouble:
            state = unreadable(pod, trouble)
            name = "" if state is None else state.name
            if name not in self._odd:
                _log.warning("pod %s in %s makes no sense: %r", name, self.namespace, trouble)
            self._odd.add(name)
            return state

    def create_pod(self, body: Mapping[str, Any]) -> None:
        self.kube.create(pods(self.namespace), body)

    def open_gate(self, name: str, tag: str, address: str) -> None:
        """To what is behind it: see `in_pod`."""
        told = {"metadata": {"annotations": {GO: f"{tag} {address}"}}}
        self.kube.patch(pods(self.namespace, name), told)

    def end(self, name: str, uid: str, grace_s: int) -> None:
        """SIGTERM, and SIGKILL after so many seconds. How it ended stays."""
        self.kube.delete(pods(self.namespace, name), grace_s=grace_s, uid=uid)

    def remove(self, pod: PodState, *, forced: bool = False) -> None:
        """Nothing of it is needed any more. `forced`: nobody is there to say that it has ended."""
        path = pods(self.namespace, pod.name)
        metadata = {"finalizers": list(pod.other_finalizers) or None, "uid": pod.uid}
        with suppress(NotFound, Conflict):  # gone; another has its name
            self.kube.patch(path, {"metadata": metadata})
            self.kube.delete(path, grace_s=0 if forced else 1, uid=pod.uid)

    def why(self, name: str) -> str:
        """The last warning about a pod, where we may read that: mounts that fail, say."""
        with suppress(KubeTrouble):
            fields = f"involvedObject.name={name},type=Warning"
            found = self.kube.list(events(self.namespace), fields=fields)
            if found:
                last = max(found, key=lambda event: event.get("lastTimestamp") or "")
                return f"{last.get('reason')}: {last.get('message')}"
        return ""

    # Secrets

    def create_secret(self, body: Mapping[str, Any]) -> None:
        with suppress(Exists):  # an answer was lost
            self.kube.create(secrets(self.namespace), body)

    def remove_secrets(self, names: Iterable[str]) -> None:
        for name in names:
            self.kube.delete(secrets(self.namespace, name))

    # Nodes

    def why_lost(self, node: str) -> str:
        """Why nothing can be expected of a node any more; empty: it is well, as far as is known.
        Raises KubeTrouble."""
        now = time.monotonic()
        if now - self._looked >= LOOK_S or node not in self._statuses:  # it may be new
            self._look(now)
        if node not in self._statuses:
            return f"node {node} is gone"
        since = self._unready_since.get(node)
        if since is None or now < self._trusted_at:
            return ""
        if now - since >= UNWELL_S or (now - since >= SILENT_S and self._is_silent(node)):
            return f"node {node} does not answer (NotReady)"
        return ""

    def _look(self, now: Seconds) -> None:
        rows = self.kube.table(nodes())
        self._looked = now
        self._statuses = {row["Name"]: str(row["Status"]) for row in rows}
        unready = {name for name, status in self._statuses.items() if _is_unready(status)}
        self._unready_since = {name: self._unready_since.get(name, now) for name in unready}

    def _is_silent(self, node: str) -> bool:
        """Not heard of, other than one that says that it is not well."""
        try:
            found = self.kube.get(nodes(node))
        except NotFound:
            return True
        conditions = found.get("status", {}).get("conditions") or ()
        ready = [one["status"] for one in conditions if one["type"] == "Ready"]
        return ready[:1] != ["False"] and ready[:1] != ["True"]


def _is_unready(status: str) -> bool:
    """Whether a word such as NotReady,SchedulingDisabled says so."""
    return "Ready" not in status.split(",")
