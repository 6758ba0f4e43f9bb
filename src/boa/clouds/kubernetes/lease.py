"""A Lease, which keeps two services of one owner apart: they would stop each other's jobs.

It belongs to a data folder. The service of that folder takes it back at once when it is started
again; any other has to wait until it was given back, or is seen not to be renewed for as long as it
lasts. Who could not renew it in time changes nothing in the cluster until it has, and who has lost
it ends.
"""

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from boa import kubelink
from boa.atomic_file import replace_file
from boa.clock import uptime
from boa.errors import BoaError, FileError, InputError
from boa.kubelink import Conflict, Exists, Kube, KubeTrouble, NotFound
from boa.plain_file import read_plain
from boa.units import Seconds, wall_time

LASTS_S = 15
"""Seconds that it holds after it was renewed."""
RENEWED_S: Seconds = 4.0
AGAIN_S: Seconds = 1.0
"""Seconds until the next try, after one that failed."""
SKEW_S: Seconds = 5.0
"""Seconds that the clocks of two machines may lie apart."""
LOOKED_S: Seconds = 1.0
MOST_S = 60
"""Seconds that we look at most whether a lease that is over is renewed."""
ID_FILE = "kubernetes.id"
_PARTS = "_"
_log = logging.getLogger("boa.server")


class LeaseLost(BoaError):
    """Another service has taken the lease."""

    def __init__(self, name: str, namespace: str, by: str) -> None:
        super().__init__(
            f"the lease {name} in namespace {namespace} is held by {by} now: this service has "
            "ended, since two would stop each other's jobs"
        )


@dataclass(frozen=True, slots=True)
class Holder:
    """A process, and the data folder that it serves."""

    host: str
    pid: str
    folder: str

    def __str__(self) -> str:
        return _PARTS.join((self.host, self.pid, self.folder))

    @property
    def told(self) -> str:
        return f"{self.host} (process {self.pid})" if self.pid else self.host


def holder_of(identity: str) -> Holder:
    parts = identity.rsplit(_PARTS, 2)
    return Holder(*parts) if len(parts) == 3 else Holder(identity, "", "")


def this_holder(data_dir: Path) -> Holder:
    """This process. The folder's name is made once, and kept in it."""
    folder = folder_id(data_dir)
    if not folder:
        folder = secrets.token_hex(8)
        replace_file(data_dir / ID_FILE, folder + "\n", durable=True, private=True)
    return Holder(socket.gethostname(), str(os.getpid()), folder)


def folder_id(data_dir: Path) -> str:
    """The name that a data folder has for its leases; empty if it has none yet."""
    path = data_dir / ID_FILE
    try:
        folder = read_plain(path, most=100).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return ""
    except OSError as trouble:
        raise FileError(str(path), trouble.strerror or str(trouble), "a plain file") from None
    return folder if folder.isalnum() else ""


def hindrance(lease: Mapping[str, Any], me: Holder, wall: Seconds) -> tuple[Holder, Seconds] | None:
    """Who holds it, and how many seconds ago it was renewed; None if this holder may take it."""
    spec = lease.get("spec") or {}
    holder = holder_of(spec.get("holderIdentity") or "")
    if not holder.host or (holder.folder and holder.folder == me.folder):
        return None
    age = wall - (wall_time(spec.get("renewTime")) or 0.0)
    lasts = spec.get("leaseDurationSeconds") or LASTS_S
    return None if age > lasts + SKEW_S else (holder, max(age, 0.0))


def taken(lease: Mapping[str, Any], me: Holder, wall: Seconds) -> dict[str, Any]:
    """The same lease, renewed by this holder."""
    spec = lease.get("spec") or {}
    now, others = _stamp(wall), spec.get("holderIdentity") != str(me)
    return {
        **lease,
        "spec": {
            **spec,
            "holderIdentity": str(me),
            "leaseDurationSeconds": LASTS_S,
            "acquireTime": now if others else spec.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": spec.get("leaseTransitions", 0) + others,
        },
    }


def _stamp(wall: Seconds) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Lease:
    """`kube`: a client of its own, which no lease holds back."""

    def __init__(self, kube: Kube, name: str, me: Holder) -> None:
        self._kube, self._name, self._me = kube, name, me
        self._path = kubelink.leases(kube.namespace, name)
        self._lease: dict[str, Any] = {}
        self._renewed = -float("inf")
        """By the machine's uptime, sleep included: another may take it meanwhile."""
        self._lost: LeaseLost | None = None
        self._on_lost: Callable[[LeaseLost], None] = lambda lost: None
        self._telling = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> None:
        """At the start. Raises InputError where another service has it."""
        try:
            lease = self._read()
            found = hindrance(lease, self._me, time.time()) or self._renewed_by_another(lease)
            if found is None:
                began = uptime()
                self._lease = self._kube.replace(self._path, taken(lease, self._me, time.time()))
                self._renewed = began
                return
        except Conflict:
            found = hindrance(self._read(), self._me, time.time())
        holder, age = found or (Holder("another service", "", ""), 0.0)
        problem = f"{holder.told} is its service, last heard of {age:.0f} s ago"
        expected = (
            "an owner or a namespace of its own (with nodes fixed a node_label too, or both would "
            "take the same nodes), or that service to be ended first (the lease "
            f"{self._name} in namespace {self._kube.namespace} is free {LASTS_S + SKEW_S:g} s "
            "after it was killed)"
        )
        raise InputError("kubernetes.owner", self._name, expected, problem)

    def _renewed_by_another(self, lease: Mapping[str, Any]) -> tuple[Holder, Seconds] | None:
        """Who holds a lease that seems to be over, if it is renewed while we look for as long as it
        lasts: by whose clock it is over nobody knows."""
        before = lease.get("spec") or {}
        holder = holder_of(before.get("holderIdentity") or "")
        if not holder.host or holder.folder == self._me.folder:
            return None
        _log.info("the lease %s was %s's: is it renewed?", self._name, holder.told)
        until = uptime() + min(before.get("leaseDurationSeconds") or LASTS_S, MOST_S)
        while uptime() < until:
            self._over.wait(LOOKED_S)
            now = self._read().get("spec") or {}
            if now.get("renewTime") != before.get("renewTime"):
                return holder_of(now.get("holderIdentity") or ""), 0.0
        return None

    def check(self) -> None:
        """Before anything in the cluster is changed."""
        if self._lost is not None:
            raise KubeTrouble(str(self._lost))
        if uptime() - self._renewed > LASTS_S:
            raise KubeTrouble(
                f"the lease {self._name} was not renewed for {LASTS_S} s: nothing is changed in "
                "the cluster until it is"
            )

    def keep(self) -> None:
        """Renew it from now on, on a thread of its own."""
        self._thread = threading.Thread(target=self._work, name="boa-lease", daemon=True)
        self._thread.start()

    def tell(self, on_lost: Callable[[LeaseLost], None]) -> None:
        """Call it when the lease is lost. Raises LeaseLost if it is."""
        with self._telling:
            self._on_lost = on_lost
            if self._lost is not None:
                raise self._lost

    def _work(self) -> None:
        wait = RENEWED_S
        while not self._over.wait(wait):
            try:
                self.renew()
                wait = RENEWED_S
            except LeaseLost as lost:
                _log.error("%s", lost)
                return
            except KubeTrouble as trouble:
                _log.warning("the lease %s cannot be renewed: %s", self._name, trouble)
                wait = AGAIN_S
            except Exception:  # without this thread the service would stand still for good
                _log.exception("the lease %s cannot be renewed", self._name)
                wait = AGAIN_S

    def renew(self) -> None:
        began = uptime()
        try:
            renewed = self._kube.replace(self._path, taken(self._lease, self._me, time.time()))
        except (Conflict, NotFound):
            lease = self._read()
            holder = (lease.get("spec") or {}).get("holderIdentity") or ""
            if holder not in ("", str(self._me)):
                raise self._is_lost(holder_of(holder).told) from None
            renewed = self._kube.replace(self._path, taken(lease, self._me, time.time()))
        self._lease, self._renewed = renewed, began

    def _is_lost(self, to: str) -> LeaseLost:
        with self._telling:
            self._lost = LeaseLost(self._name, self._kube.namespace, to)
            self._on_lost(self._lost)
            return self._lost

    def close(self) -> None:
        """Give it back, if it is still ours."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(2 * kubelink.READ_S)
        try:
            if self._lost is None and self._lease:
                spec = {**self._lease["spec"], "holderIdentity": ""}
                self._kube.replace(self._path, {**self._lease, "spec": spec})
        except KubeTrouble as trouble:
            _log.warning("the lease %s is not given back: %s", self._name, trouble)
        finally:
            self._kube.close()

    def _read(self) -> dict[str, Any]:
        """As it is, made if there is none."""
        for _ in range(2):
            try:
                return self._kube.get(self._path)
            except NotFound:
                body = {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": self._name, "namespace": self._kube.namespace},
                    "spec": {},
                }
                try:
                    return self._kube.create(kubelink.leases(self._kube.namespace), body)
                except Exists:
                    continue
        return self._kube.get(self._path)
