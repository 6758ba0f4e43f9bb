"""The client of a Kubernetes API server, which engine and cloud share: JSON over one pool.

It knows no kinds: objects are mappings as the API has them, and paths come from the functions at
the end. Why not a client library: docs/decisions/0034.
"""

import builtins
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import httpx

from boa.errors import BoaError
from boa.kubeconfig import Access, find
from boa.kubelogin import NoLogin
from boa.units import Seconds

CONNECT_S: Seconds = 5.0
READ_S: Seconds = 15.0
"""Seconds of silence in an answer …"""
FOLLOW_S: Seconds = 300.0
"""… and in one that is followed: somebody in between may have dropped the connection."""
PAGE = 500
PATIENCE_S: Seconds = 5.0
"""The longest that we wait when we are told to come back later."""
TRIES = 3
_LATER = (429, 503)
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_MERGE = "application/merge-patch+json"


class KubeTrouble(BoaError):
    """The API server could not be asked, or did not do it: says why."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        self.status, self.reason = status, reason
        super().__init__(message)


class Refused(KubeTrouble):
    """403: this account may not, or a quota or a policy is against it."""


class NotFound(KubeTrouble):
    """404."""


class Exists(KubeTrouble):
    """409: something has that name."""


class Conflict(KubeTrouble):
    """409: it is no longer what it was when it was read."""


class Invalid(KubeTrouble):
    """400, 413 or 422: the API server does not understand it, or holds it to be nonsense, or too
    large."""


def connect(kubeconfig: str = "", context: str = "", namespace: str = "") -> "Kube":
    """See `kubeconfig.find`. Nothing is asked yet."""
    return Kube(find(kubeconfig, context, namespace))


class Kube:
    """One cluster. Safe to use from several threads; every call ends within seconds."""

    def __init__(self, access: Access) -> None:
        self.namespace: Final = access.namespace
        self.server: Final = access.server
        self._access = access
        self._http = httpx.Client(
            base_url=access.server,
            verify=access.tls,
            proxy=access.proxy or None,
            timeout=httpx.Timeout(READ_S, connect=CONNECT_S, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=16),
            headers={"User-Agent": "boa-constrictor", "Accept": "application/json"},
        )
        self.before_change: Callable[[], None] = lambda: None
        """Called before everything that changes the cluster; what it raises keeps it from that."""

    def close(self) -> None:
        self._http.close()

    def get(self, path: str) -> dict[str, Any]:
        return self._object("GET", path)

    def list(
        self, path: str, *, labels: str = "", fields: str = ""
    ) -> builtins.list[dict[str, Any]]:
        """All of them, page by page; begun again where the pages' time is over."""
        asked = {"limit": str(PAGE), "labelSelector": labels, "fieldSelector": fields}
        query = {key: value for key, value in asked.items() if value}
        found: builtins.list[dict[str, Any]] = []
        while True:
            try:
                page = self._object("GET", path, query=query)
            except KubeTrouble as trouble:
                if trouble.status != 410 or "continue" not in query:
                    raise
                found.clear()
                del query["continue"]
                continue
            items, metadata = page.get("items") or [], page.get("metadata") or {}
            if not isinstance(items, builtins.list) or not isinstance(metadata, dict):
                raise KubeTrouble(f"{self.server} gives no list of {path}")
            found += items
            query["continue"] = str(metadata.get("continue") or "")
            if not query["continue"]:
                return found

    def table(self, path: str) -> builtins.list[dict[str, Any]]:
        """All of them in a few words each, by column, as `kubectl get` shows them: much less to
        send and to read than the objects."""
        query = {"includeObject": "None"}
        said = self._ask("GET", path, query=query, accept=_TABLE)
        found = self._read(said)
        try:
            names = [column["name"] for column in found["columnDefinitions"]]
            return [dict(zip(names, row["cells"], strict=False)) for row in found.get("rows") or ()]
        except (KeyError, TypeError):
            raise KubeTrouble(f"{self.server} gives no table of {path}: {said[:80]!r}") from None

    def create(
        self, path: str, body: Mapping[str, Any], *, dry_run: bool = False
    ) -> dict[str, Any]:
        """A new object. It is not tried twice where an answer is lost: who gave it a name of its
        own may ask again, and hears that it Exists. `dry_run`: only whether it could be made, and
        of servers from 1.25 on, whether all its fields are known."""
        query = {"dryRun": "All", "fieldValidation": "Strict"} if dry_run else {}
        for left in reversed(range(TRIES)):
            try:
                return self._object("POST", path, body, query=query)
            except Conflict:  # two counted one quota at once: nothing was made
                if not left:
                    raise
        raise AssertionError

    def patch(self, path: str, body: Mapping[str, Any], *, subresource: str = "") -> dict[str, Any]:
        """JSON merge patch: what is None is taken away."""
        path = f"{path}/{subresource}" if subresource else path
        return self._object("PATCH", path, body, kind=_MERGE)

    def replace(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """If it is still what was read (`resourceVersion`); else Conflict."""
        return self._object("PUT", path, body)

    def delete(self, path: str, *, grace_s: int | None = None, uid: str = "") -> None:
        """`uid`: this one, and not another of that name. What is gone already is fine."""
        body: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self._object("DELETE", path, body)
        except NotFound:
            return
        except Conflict:
            if not uid:
                raise

    @contextmanager
    def stream(self, path: str, **query: str) -> Iterator[Iterator[bytes]]:
        """A long answer, piece by piece as it comes, until it ends or the block is left."""
        try:
            headers, extensions = self._headers(), self._extensions()
            with self._http.stream(
                "GET", path, params=query, headers=headers, extensions=extensions,
                timeout=httpx.Timeout(FOLLOW_S, connect=CONNECT_S),
            ) as answer:  # fmt: skip
                if answer.status_code >= 400:
                    raise _trouble("GET", path, answer.status_code, answer.read())
                yield answer.iter_bytes()
        except (httpx.HTTPError, httpx.StreamError) as problem:
            raise self._unreachable(problem) from None

    def may(
        self,
        verb: str,
        resource: str,
        *,
        group: str = "",
        namespace: str | None = None,
        subresource: str = "",
        name: str = "",
    ) -> bool:
        """Whether this account may; `namespace`: ours if None, all of them (or none) if empty;
        `name`: of the one object, if not of any."""
        where = self.namespace if namespace is None else namespace
        asked = {"verb": verb, "resource": resource, "group": group, "namespace": where}
        if subresource:
            asked["subresource"] = subresource
        if name:
            asked["name"] = name
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = self._object("POST", path, {"spec": {"resourceAttributes": asked}}, again=True)
        return bool(answer.get("status", {}).get("allowed"))

    # How it is asked

    def _object(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        kind: str = "application/json",
        again: bool | None = None,
    ) -> dict[str, Any]:
        said = self._ask(method, path, body, query=query or {}, kind=kind, again=again)
        return self._read(said)

    def _read(self, said: bytes) -> dict[str, Any]:
        """An answer, which is an object whatever was asked."""
        try:
            found = json.loads(said)
            if isinstance(found, dict):
                return found
        except (ValueError, RecursionError):
            pass
        raise KubeTrouble(f"{self.server} is no Kubernetes API server: {said[:80]!r}")

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str],
        kind: str = "application/json",
        again: bool | None = None,
        accept: str = "",
    ) -> bytes:
        """`again`: asking twice is as asking once, so that a connection that broke off is no
        matter; of a POST, that it changes nothing."""
        changes = method != "GET" and not again and "dryRun" not in query
        again = method != "POST" if again is None else again
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        until, renewed = time.monotonic() + PATIENCE_S, False
        while True:
            if changes:
                self.before_change()
            try:
                headers = {**self._headers(), **({"Content-Type": kind} if content else {})}
                if accept:
                    headers["Accept"] = accept
                answer = self._http.request(
                    method, path, params=query, content=content, headers=headers,
                    extensions=self._extensions(),
                )  # fmt: skip
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as problem:
                if not again:
                    raise self._unreachable(problem) from None
                again = False
                continue
            except httpx.HTTPError as problem:
                raise self._unreachable(problem) from None
            if answer.status_code == 401 and not renewed and self._renewed():
                renewed = True
                continue
            wait = _asked_to_wait(answer)
            if wait is not None and time.monotonic() + wait <= until:
                time.sleep(wait)
                continue
            if answer.status_code >= 400:
                raise _trouble(method, path, answer.status_code, answer.content)
            return answer.content

    def _renewed(self) -> bool:
        try:
            return self._access.login.renew()
        except NoLogin as trouble:
            raise KubeTrouble(str(trouble)) from None

    def _headers(self) -> dict[str, str]:
        try:
            token = self._access.login.token()
        except NoLogin as trouble:
            raise KubeTrouble(str(trouble)) from None
        if not (token.isascii() and token.isprintable()):
            raise KubeTrouble(f"what we are to show to {self.server} is no token")
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _extensions(self) -> dict[str, str]:
        return {"sni_hostname": self._access.tls_name} if self._access.tls_name else {}

    def _unreachable(self, problem: Exception) -> KubeTrouble:
        said = str(problem) or type(problem).__name__
        return KubeTrouble(f"the Kubernetes API server at {self.server} cannot be asked: {said}")


def _asked_to_wait(answer: httpx.Response) -> Seconds | None:
    """How long, where the server says when to come back."""
    if answer.status_code not in _LATER:
        return None
    try:
        return max(float(answer.headers["Retry-After"]), 0.1)
    except (KeyError, ValueError):
        return None


def _trouble(method: str, path: str, status: int, said: bytes) -> KubeTrouble:
    """The error that an answer stands for."""
    try:
        told = json.loads(said)
        message, reason = str(told.get("message", "")), str(told.get("reason", ""))
    except (ValueError, AttributeError, RecursionError):
        message, reason = said.decode("utf-8", "replace").strip()[:200], ""
    kind = _KINDS.get(status, KubeTrouble)
    if status == 409:
        kind = Exists if reason == "AlreadyExists" else Conflict
    message = message or f"{method} {path} was answered with {status}"
    return kind(message, status=status, reason=reason)


_KINDS: dict[int, type[KubeTrouble]] = {
    400: Invalid, 403: Refused, 404: NotFound, 413: Invalid, 422: Invalid,
}  # fmt: skip


# Paths


def _core(namespace: str, kind: str, name: str) -> str:
    where = f"/namespaces/{namespace}" if namespace else ""
    return f"/api/v1{where}/{kind}" + (f"/{name}" if name else "")


def _group(group: str, namespace: str, kind: str, name: str) -> str:
    where = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{group}{where}/{kind}" + (f"/{name}" if name else "")


def pods(namespace: str = "", name: str = "") -> str:
    """Without a namespace: those of all."""
    return _core(namespace, "pods", name)


def secrets(namespace: str, name: str = "") -> str:
    return _core(namespace, "secrets", name)


def nodes(name: str = "") -> str:
    return _core("", "nodes", name)


def events(namespace: str) -> str:
    return _core(namespace, "events", "")


def leases(namespace: str, name: str = "") -> str:
    return _group("coordination.k8s.io/v1", namespace, "leases", name)


def node_claims(name: str = "") -> str:
    """Karpenter's."""
    return _group("karpenter.sh/v1", "", "nodeclaims", name)


def priority_classes(name: str = "") -> str:
    return _group("scheduling.k8s.io/v1", "", "priorityclasses", name)
