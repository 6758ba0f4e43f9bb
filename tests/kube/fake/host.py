"""What all nodes of the process share: the pods' root, addresses, objects that pods name."""

import itertools
import os
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

from kube.fake.client import Client, Refused
from kube.fake.spaces import build_root
from kube.fake.values import Find, NotThere, Object


class Host:
    """Of one process."""

    def __init__(self, folder: Path, client: Client, server: str, serving: tuple[str, str]) -> None:
        self._client = client
        self._server = urlsplit(server)
        self._numbers = itertools.count(1)
        self._found: dict[tuple[str, str, str], Object | None] = {}
        self.serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.serving.load_cert_chain(*serving)
        self.root = folder / "root"
        self.root.mkdir()
        build_root(self.root)

    def new_address(self) -> str:
        """On the loopback, and nobody else's of this cluster."""
        number = next(self._numbers)
        return f"127.{64 + (number >> 16) % 64}.{(number >> 8) % 256}.{number % 256}"

    def base_environment(self, pod: Object) -> dict[str, str]:
        """The tests' own Python comes first on the path: it is what an image would have."""
        host, port = self._server.hostname or "", str(self._server.port)
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "HOME": "/root",
            "HOSTNAME": str(pod["spec"].get("hostname", pod["metadata"]["name"])),
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
        }

    def finder(self, pod: Object) -> Find:
        """Of what `fetch` has fetched."""
        namespace = pod["metadata"]["namespace"]
        return lambda kind, name: self._found.get((namespace, kind, name))

    async def fetch(self, pod: Object) -> dict[str, Path]:
        """Secrets and config maps that it refers to, and the folders of its claims.

        Raises:
            NotThere: a claim is not bound to a folder of this machine.
        """
        namespace, claims = pod["metadata"]["namespace"], {}
        for kind, name in _references(pod):
            if kind == "persistentvolumeclaims":
                claims[name] = await self._folder_of(namespace, name)
            else:
                path = f"/api/v1/namespaces/{namespace}/{kind}/{name}"
                self._found[namespace, kind, name] = await self._get(path)
        return claims

    async def token_for(self, pod: Object) -> str:
        """Of its service account, if a volume asks for one."""
        sources = [
            source
            for volume in pod["spec"].get("volumes", [])
            for source in volume.get("projected", {}).get("sources", [])
        ]
        if not any("serviceAccountToken" in one for one in sources):
            return ""
        namespace = pod["metadata"]["namespace"]
        account = pod["spec"].get("serviceAccountName", "default")
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        kinds = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        made = await self._client.ask("POST", path, {**kinds, "spec": {"expirationSeconds": 86400}})
        return str(made["status"]["token"])

    async def _get(self, path: str) -> Object | None:
        try:
            found: Object = await self._client.ask("GET", path)
        except Refused as refused:
            if refused.code == 404:
                return None
            raise
        return found

    async def _folder_of(self, namespace: str, claim: str) -> Path:
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim}"
        found = await self._get(path)
        volume = found and found["spec"].get("volumeName")
        bound = await self._get(f"/api/v1/persistentvolumes/{volume}") if volume else None
        if bound is None:
            raise NotThere(f'persistentvolumeclaim "{claim}" is not bound')
        folder = Path(bound["spec"]["hostPath"]["path"])
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _references(pod: Object) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    spec = pod["spec"]
    for volume in spec.get("volumes", []):
        sources = [volume, *volume.get("projected", {}).get("sources", [])]
        for source in sources:
            if one := source.get("secret"):
                found.add(("secrets", one.get("secretName") or one["name"]))
            if one := source.get("configMap"):
                found.add(("configmaps", one["name"]))
        if one := volume.get("persistentVolumeClaim"):
            found.add(("persistentvolumeclaims", one["claimName"]))
    for container in spec["containers"]:
        for entry in container.get("env", []):
            source = entry.get("valueFrom", {})
            for key, kind in (("secretKeyRef", "secrets"), ("configMapKeyRef", "configmaps")):
                if one := source.get(key):
                    found.add((kind, one["name"]))
    return found
