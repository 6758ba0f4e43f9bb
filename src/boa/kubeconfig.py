"""Where a Kubernetes cluster is, and as whom we come: kubeconfig files, and pods' own accounts.

What a file may hold is what `kubectl` reads: contexts, authorities and certificates as files or
data, tokens, files of tokens, exec plugins, a proxy. What would make us another than the file says
(impersonation, passwords, auth providers, all but gone) is refused rather than passed over.
"""

import base64
import binascii
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from boa.errors import FileError, InputError
from boa.kubelogin import NOBODY, ExecLogin, FileToken, Login, load_certificate

FIELD = "kubernetes.kubeconfig"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MOST_BYTES = 4 * 1024**2
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_REFUSED = ("as", "as-uid", "as-groups", "as-user-extra", "auth-provider", "username", "password")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """All that it takes to ask a cluster."""

    server: str
    namespace: str
    tls: ssl.SSLContext | bool
    """Whom we believe, and the certificate that we show; False: plain HTTP."""
    login: Login = NOBODY
    tls_name: str = ""
    """The name that its certificate is for, where that is not the server's."""
    proxy: str = ""


def find(kubeconfig: str = "", context: str = "", namespace: str = "") -> Access:
    """By the named file; else as the pod that we are in; else as `kubectl` does, by $KUBECONFIG or
    ~/.kube/config. A context is always of a file."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    if not kubeconfig and not context and host and (ACCOUNT / "token").exists():
        return in_cluster(host, os.environ.get("KUBERNETES_SERVICE_PORT", "443"), namespace)
    named = [kubeconfig] if kubeconfig else os.environ.get("KUBECONFIG", "").split(os.pathsep)
    paths = [Path(file).expanduser() for file in named if file]
    return from_files(paths or [Path("~/.kube/config").expanduser()], context, namespace)


def in_cluster(host: str, port: str, namespace: str = "", account: Path = ACCOUNT) -> Access:
    """As the service account of this pod, whose token is replaced from time to time."""
    host = f"[{host}]" if ":" in host else host
    own = account / "namespace"
    if not namespace and own.exists():
        namespace = own.read_text().strip()
    return Access(
        server=f"https://{host}:{port}",
        namespace=namespace or "default",
        tls=_believing(str(account / "ca.crt"), b"", f"{account}"),
        login=FileToken(account / "token"),
    )


def from_files(paths: list[Path], context: str = "", namespace: str = "") -> Access:
    """By kubeconfig files; of entries with one name, the first holds."""
    merged = _merged(paths)
    where = str(paths[0])
    name = context or merged["current-context"]
    chosen = _entry(merged, "contexts", str(name), "kubernetes.context", where)
    cluster = _entry(merged, "clusters", str(chosen.get("cluster", "")), f"context {name}", where)
    named = str(chosen.get("user") or "")
    user = _entry(merged, "users", named, f"context {name}", where) if named else {}
    server = str(cluster.get("server", ""))
    if not server.startswith(("https://", "http://")):
        raise InputError(f"{where}: clusters.server", server, "the URL of an API server")
    tls = _tls(cluster, where) if server.startswith("https:") else False
    return Access(
        server=server.rstrip("/"),
        namespace=namespace or str(chosen.get("namespace") or "default"),
        tls=tls,
        login=_login(user, cluster, tls, where),
        tls_name=str(cluster.get("tls-server-name") or ""),
        proxy=str(cluster.get("proxy-url") or ""),
    )


def _merged(paths: list[Path]) -> dict[str, Any]:
    found: dict[str, Any] = {"contexts": {}, "clusters": {}, "users": {}, "current-context": ""}
    there = [path for path in paths if path.exists()]
    if not there:
        raise FileError(str(paths[0]), "there is none", "a kubeconfig, or boa inside the cluster")
    for path in there:
        config = _read(path)
        found["current-context"] = found["current-context"] or config.get("current-context") or ""
        for kind in ("contexts", "clusters", "users"):
            for entry in config.get(kind) or ():
                try:
                    name, said = entry["name"], dict(entry[kind[:-1]] or {})
                except (TypeError, KeyError, ValueError):
                    raise InputError(
                        f"{path}: {kind}", entry, f"a name, and a {kind[:-1]}"
                    ) from None
                found[kind].setdefault(name, _beside(path, said))
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes()[:MOST_BYTES]
        config = yaml.safe_load(text)
    except OSError as trouble:
        raise FileError(str(path), str(trouble.strerror), "a kubeconfig") from None
    except yaml.YAMLError:
        raise FileError(str(path), "is no YAML", "a kubeconfig") from None
    if not isinstance(config, dict):
        raise FileError(str(path), "is no kubeconfig", "contexts, clusters and users")
    return config


def _beside(path: Path, said: dict[str, Any]) -> dict[str, Any]:
    """Paths in a kubeconfig are relative to it."""
    for key in _PATHS:
        if said.get(key):
            said[key] = str(path.absolute().parent / str(said[key]))
    plugin = said.get("exec")
    if isinstance(plugin, dict) and "/" in (command := str(plugin.get("command", ""))):
        said["exec"] = {**plugin, "command": str(path.absolute().parent / command)}
    return said


def _entry(
    merged: Mapping[str, Any], kind: str, name: str, field: str, where: str
) -> dict[str, Any]:
    found = merged[kind].get(name)
    if found is None:
        there = ", ".join(sorted(map(str, merged[kind]))) or f"a file with {kind}"
        problem = f"{where} has no {kind[:-1]} {name!r}" if name else f"{where} chooses none"
        raise InputError(field, name, f"one of its {kind}: {there}", problem)
    return dict(found)


def _tls(cluster: Mapping[str, Any], where: str) -> ssl.SSLContext:
    if cluster.get("insecure-skip-tls-verify"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    data = _decoded(cluster, "certificate-authority-data", where)
    return _believing(str(cluster.get("certificate-authority") or ""), data, where)


def _believing(file: str, data: bytes, where: str) -> ssl.SSLContext:
    """An authority of the cluster's own, or else the system's."""
    try:
        context = ssl.create_default_context(
            cafile=None if data else file or None, cadata=data.decode("ascii") if data else None
        )
    except (OSError, ValueError):
        field = f"{where}: certificate-authority{'-data' if data else ''}"
        problem = "what it holds is no certificate" if data or os.path.exists(file) else ""
        raise InputError(field, file, "certificates (PEM)", problem) from None
    # Authorities that clusters made for themselves lack extensions that Python 3.13 asks for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _login(
    user: Mapping[str, Any], cluster: Mapping[str, Any], tls: ssl.SSLContext | bool, where: str
) -> Login:
    for field in _REFUSED:
        if user.get(field):
            expected = "a token, a tokenFile, a client certificate or an exec plugin"
            raise InputError(f"{where}: users.{field}", user[field], expected)
    certificate = _decoded(user, "client-certificate-data", where)
    key = _decoded(user, "client-key-data", where)
    files = str(user.get("client-certificate") or ""), str(user.get("client-key") or "")
    if isinstance(tls, ssl.SSLContext):
        try:
            if certificate or key:
                load_certificate(tls, certificate or _bytes(files[0]), key or _bytes(files[1]))
            elif files[0]:
                tls.load_cert_chain(files[0], files[1] or None)
        except (OSError, ssl.SSLError) as trouble:
            field = f"{where}: users.client-certificate"
            raise InputError(field, files[0], f"a certificate and its key ({trouble})") from None
    if user.get("token"):
        return Login(str(user["token"]))
    if user.get("tokenFile"):
        return FileToken(Path(user["tokenFile"]))
    if isinstance(user.get("exec"), Mapping):
        return ExecLogin(user["exec"], cluster, tls if isinstance(tls, ssl.SSLContext) else None)
    return NOBODY


def _bytes(file: str) -> bytes:
    return Path(file).read_bytes() if file else b""


def _decoded(entry: Mapping[str, Any], field: str, where: str) -> bytes:
    try:
        return base64.b64decode(str(entry.get(field) or ""), validate=True)
    except (binascii.Error, ValueError):
        raise InputError(f"{where}: {field}", entry[field], "base64") from None
