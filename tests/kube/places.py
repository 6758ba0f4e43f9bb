"""Where the cluster's binaries are, and where its state is."""

import os
from pathlib import Path

BINARIES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kubectl",
)
TESTS = Path(__file__).resolve().parent.parent
STATE = "boa-kube-"
"""How the folder of a cluster's state begins, in memory where that can be had."""


class NoKubernetes(Exception):
    """The binaries are not there yet."""


def cache() -> Path:
    """The folder of the binaries: $BOA_KUBERNETES, or a user's cache of the usual kind."""
    if told := os.environ.get("BOA_KUBERNETES"):
        return Path(told)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "boa-constrictor" / "kubernetes"


def binaries() -> Path:
    """The same, with everything in it.

    Raises:
        NoKubernetes: with what to do.
    """
    folder = cache()
    missing = [name for name in BINARIES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise NoKubernetes(f"no {', '.join(missing)} in {folder}; `make kubernetes` builds them")
    return folder


def memory() -> Path:
    """Where state is kept: a machine that is up for a minute has no use for a disk."""
    shm = Path("/dev/shm")
    return shm if os.access(shm, os.W_OK) else Path(os.environ.get("TMPDIR", "/tmp"))
