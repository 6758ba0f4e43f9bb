"""Images of containers, without a builder: tar files that containerd imports.

The base is Debian's Python and busybox, in one layer; what is to be added is a layer on top.
"""

import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube import apt

PYTHON, PAUSE = "boa.test/python:1", "boa.test/pause:1"
_PACKAGES = (
    "busybox-static",
    "libbz2-1.0",
    "libc6",
    "libexpat1",
    "libffi8",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libsqlite3-0",
    "libssl3",
    "libuuid1",
    "python3.11-minimal",
    "zlib1g",
)
_TOP = ("dev", "etc", "proc", "root", "run", "sys", "tmp", "var/tmp")
_FOLDERS = (*_TOP, "usr/bin", "usr/lib", "usr/sbin")
_APPLETS = ("cat", "env", "id", "kill", "ls", "mkdir", "sh", "sleep")
_NEEDLESS = ("usr/share/doc", "usr/share/man", "usr/share/locale")
_PATH = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Image:
    """A name, its layers from the bottom up (tar files), and what it runs."""

    name: str
    layers: Sequence[Path]
    config: Mapping[str, Any] = field(default_factory=dict)
    """As in an OCI image's config: Cmd, Entrypoint, Env, User, WorkingDir."""


def base_layer(cache: Path) -> Path:
    """Of Debian's packages; made once."""
    layer = cache / "base-layer.tar"
    if layer.exists():
        return layer
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        root = Path(folder) / "root"
        for name in _FOLDERS:
            (root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib"):
            (root / name).symlink_to(f"usr/{name}")
        for package in apt.fetch(Path(folder) / "debs", *_PACKAGES):
            _unpack(package, root)
        for name in _NEEDLESS:
            shutil.rmtree(root / name, ignore_errors=True)
        bin_ = root / "usr" / "bin"
        (bin_ / "python3").symlink_to("python3.11")
        for name in _APPLETS:
            if not (bin_ / name).exists():
                (bin_ / name).symlink_to("busybox")
        (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (root / "tmp").chmod(0o1777)
        made = Path(folder) / "layer.tar"
        write_layer(made, root)
        made.replace(layer)
    return layer


def base_images(cache: Path) -> Path:
    """The archive of PYTHON and of PAUSE, which the runtime needs for every pod; made once."""
    archive = cache / "image.tar"
    if not archive.exists():
        layer = base_layer(cache)
        pause = {"Entrypoint": ["/bin/busybox", "sleep", "1000000000"]}
        write_archive(
            archive,
            [Image(PYTHON, [layer], {"Cmd": ["python3"]}), Image(PAUSE, [layer], pause)],
        )
    return archive


def write_layer(path: Path, root: Path) -> None:
    """All that is below `root`, as root's; the same folder makes the same layer."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = 0
        return entry

    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(root, arcname=".", filter=plain)


def write_archive(path: Path, images: Sequence[Image]) -> Path:
    """What `ctr images import` and `docker load` read; whole, or not there."""
    files: dict[str, Path] = {}
    texts: dict[str, bytes] = {}
    listed = []
    for image in images:
        digests = [_digest(layer) for layer in image.layers]
        files |= {f"{digest}.tar": at for digest, at in zip(digests, image.layers, strict=True)}
        config = {
            "architecture": _MACHINES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one}" for one in digests]},
            "config": {"Env": [_PATH], **image.config},
        }
        text = json.dumps(config, sort_keys=True).encode()
        name = f"{hashlib.sha256(text).hexdigest()}.json"
        texts[name] = text
        layers = [f"{one}.tar" for one in digests]
        listed.append({"Config": name, "RepoTags": [image.name], "Layers": layers})
    texts["manifest.json"] = json.dumps(listed).encode()
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with tarfile.open(part, "w") as tar:
        for name, text in texts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
        for name, at in files.items():
            tar.add(at, arcname=name)
    part.replace(path)
    return path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unpack(package: Path, root: Path) -> None:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as deb:
        extract = ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", str(root)]
        subprocess.run(extract, stdin=deb.stdout, check=True)
    if deb.returncode:
        raise apt.CannotInstall(f"{package.name} cannot be unpacked")
