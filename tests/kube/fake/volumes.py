"""Volumes of pods: folders of this machine, filled as a kubelet fills them."""

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from kube.fake.spaces import Bind
from kube.fake.values import Find, Object, field, wanted

Files = dict[str, tuple[bytes, int]]
"""Path, content and mode."""
_MODE = 0o644
Token = str


class Volumes:
    """Of one pod, in `folder`."""

    def __init__(self, pod: Object, folder: Path, find: Find, claims: Mapping[str, Path]) -> None:
        self._folder, self._find, self._claims = folder, find, claims
        self._volumes = {one["name"]: one for one in pod["spec"].get("volumes", [])}
        self._group = pod["spec"].get("securityContext", {}).get("fsGroup")
        self._written: dict[str, Files] = {}

    def fill(self, pod: Object, token: Token) -> None:
        """All of them.

        Raises:
            NotThere: what one of them needs.
        """
        for name, volume in self._volumes.items():
            if (files := self._files(pod, volume, token)) is not None:
                self._write(name, files)
            elif "emptyDir" in volume:
                (self._folder / name).mkdir(parents=True, exist_ok=True)
                (self._folder / name).chmod(0o777)

    def refresh(self, pod: Object, token: Token) -> None:
        """What the downward API says now."""
        for name, volume in self._volumes.items():
            if "downwardAPI" in volume or _is_downward(volume):
                files = self._files(pod, volume, token)
                if files is not None and files != self._written.get(name):
                    self._write(name, files)

    def binds(self, container: Object) -> Iterator[Bind]:
        """Where the container sees them."""
        for mount in container.get("volumeMounts", []):
            source = self._source(self._volumes[mount["name"]])
            if below := mount.get("subPath"):
                source /= below
                if not source.exists():
                    source.mkdir(parents=True)
            yield Bind(source, mount["mountPath"], mount.get("readOnly", False))

    def _source(self, volume: Object) -> Path:
        if host := volume.get("hostPath"):
            path = Path(str(host["path"]))
            if host.get("type") == "DirectoryOrCreate":
                path.mkdir(parents=True, exist_ok=True)
            return path
        if claim := volume.get("persistentVolumeClaim"):
            return self._claims[claim["claimName"]]
        return self._folder / str(volume["name"])

    def _files(self, pod: Object, volume: Object, token: Token) -> Files | None:
        """What is in it, if it is of a kind that is written."""
        if one := volume.get("secret"):
            return self._entries({"name": one["secretName"], **one}, "secrets", one)
        if one := volume.get("configMap"):
            return self._entries(one, "configmaps", one)
        if one := volume.get("downwardAPI"):
            return _downward(pod, one, one.get("defaultMode", _MODE))
        if one := volume.get("projected"):
            return self._projected(pod, one, token)
        return None

    def _projected(self, pod: Object, volume: Object, token: Token) -> Files:
        files: Files = {}
        for source in volume.get("sources", []):
            if one := source.get("secret"):
                files |= self._entries(one, "secrets", volume)
            if one := source.get("configMap"):
                files |= self._entries(one, "configmaps", volume)
            if one := source.get("downwardAPI"):
                files |= _downward(pod, one, volume.get("defaultMode", _MODE))
            if one := source.get("serviceAccountToken"):
                files[one["path"]] = (token.encode(), 0o600)
        return files

    def _entries(self, one: Object, kind: str, volume: Object) -> Files:
        entries = wanted(self._find, kind, one["name"], one.get("optional", False))
        mode = volume.get("defaultMode", _MODE)
        if items := one.get("items"):
            return {
                item["path"]: (entries[item["key"]], item.get("mode", mode))
                for item in items
                if item["key"] in entries
            }
        return {key: (content, mode) for key, content in entries.items()}

    def _write(self, name: str, files: Files) -> None:
        """All at once, by a link that is put into the other's place."""
        volume = self._folder / name
        volume.mkdir(parents=True, exist_ok=True)
        version = volume / f"..{time.time_ns()}"
        for path, (content, mode) in files.items():
            at = version / path
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_bytes(content)
            if self._group is not None:
                os.chown(at, 0, self._group)
                mode |= 0o440
            at.chmod(mode)
        version.mkdir(exist_ok=True)
        link, old = volume / "..data", None
        if link.is_symlink():
            old = volume / os.readlink(link)
        new = volume / "..data_tmp"
        new.symlink_to(version.name)
        new.replace(link)
        for top in {path.split("/")[0] for path in files}:
            if not (volume / top).is_symlink():
                (volume / top).symlink_to(f"..data/{top}")
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
        self._written[name] = files


def _is_downward(volume: Object) -> bool:
    return any("downwardAPI" in one for one in volume.get("projected", {}).get("sources", []))


def _downward(pod: Object, one: Object, mode: int) -> Files:
    return {
        item["path"]: (field(pod, item["fieldRef"]["fieldPath"]).encode(), item.get("mode", mode))
        for item in one.get("items", [])
    }
