"""A real node's first process: containerd, its images, the kubelet; all of it ends with this one.

    python node_init.py '{"folder", "images", "kubelet": [...]}'

It is process 1 of a space of processes of its own, so that a machine can be gone at once: whoever
kills it kills every container there. Its mounts are its own, too, and gone with it. Standard
library alone.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SOCKET = "/run/c/s"
"""Of containerd, in the node's own /run: the path of a socket has 107 characters at most."""
_OWN = ("/run", "/var/lib/kubelet", "/var/log")
"""Folders that kubelet and containerd write to whatever they are told."""


def main() -> None:
    told = json.loads(sys.argv[1])
    for folder in _OWN:
        os.makedirs(folder, exist_ok=True)
        _call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    containerd = _start(["containerd", "--config", told["containerd"]])
    while subprocess.run(_ctr("version"), stdout=subprocess.DEVNULL).returncode:
        if containerd.poll() is not None:
            sys.exit("containerd has ended")
        time.sleep(0.05)
    for archive in told["images"]:
        _call(*importing(archive))
    Path(told["folder"], "imported").touch()
    kubelet = _start(told["kubelet"])
    while True:  # whatever ends here, and is nobody's
        ended, status = os.wait()
        if ended in (kubelet.pid, containerd.pid):
            sys.exit(f"{'kubelet' if ended == kubelet.pid else 'containerd'} has ended: {status}")


def importing(archive: str) -> list[str]:
    """The command, where the node's mounts are."""
    return _ctr("-n", "k8s.io", "images", "import", archive)


def _ctr(*words: str) -> list[str]:
    return ["ctr", "--address", SOCKET, *words]


def _start(argv: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL)


def _call(*argv: str) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main()
