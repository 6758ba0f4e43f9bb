"""Kubeconfig files, as kubectl and everyone else reads them."""

import base64
from pathlib import Path
from typing import Any

import yaml

from kube.certificates import Pair


def by_certificate(path: Path, server: str, authority: Path, pair: Pair) -> Path:
    """For whoever is known by a certificate."""
    user = {"client-certificate-data": _data(pair.certificate), "client-key-data": _data(pair.key)}
    return _write(path, server, authority, user, "default")


def by_token(path: Path, server: str, authority: Path, token: str, namespace: str) -> Path:
    """For a service account."""
    return _write(path, server, authority, {"token": token}, namespace)


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _write(path: Path, server: str, authority: Path, user: dict[str, str], namespace: str) -> Path:
    cluster = {"server": server, "certificate-authority-data": _data(authority)}
    context = {"cluster": "boa", "user": "boa", "namespace": namespace}
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "boa", "cluster": cluster}],
        "users": [{"name": "boa", "user": user}],
        "contexts": [{"name": "boa", "context": context}],
        "current-context": "boa",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path
