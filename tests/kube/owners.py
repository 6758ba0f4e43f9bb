"""Who owns what lies about on this machine, and whether they are still there."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from kube import cgroups, places

_FILE = "owner"


def me() -> str:
    """This process, told apart from later ones of the same number by when it began."""
    return f"{os.getpid()} {_began(os.getpid())}"


def alive(owner: str) -> bool:
    """Whether that process is still there; an owner that is not said yet is."""
    words = owner.split()
    return len(words) != 2 or _began(int(words[0])) == words[1]


def own_folder() -> Path:
    """For the state of a cluster of ours; it is never there without its owner."""
    begun = Path(tempfile.mkdtemp(prefix=f".{places.STATE}", dir=places.memory()))
    (begun / _FILE).write_text(me())
    return begun.rename(begun.with_name(begun.name[1:]))


def sweep() -> None:
    """Remove the state of clusters whose owner is gone: their processes ended with it."""
    for folder in places.memory().glob(f"{places.STATE}*"):
        with contextlib.suppress(OSError):
            if not alive((folder / _FILE).read_text()):
                for node in folder.glob("nodes/*"):
                    cgroups.remove(node)
                shutil.rmtree(folder, ignore_errors=True)


def _began(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return "gone"
