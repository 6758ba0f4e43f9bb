"""Pods that run this Python and what is installed for it, torch included: mounted, not in an image.

Fake nodes are this machine and have it all anyway.
"""

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_NATIVE = ("libstdc++.so.6", "libgcc_s.so.1")
"""Libraries that torch takes from the system, and that the test cluster's image has not."""


def template(*shared: Path) -> dict[str, Any]:
    """A pod template: folders that all nodes share, and the rest read only.

    Nobody is asked for names: the test cluster has no DNS, and torch would wait 10 s to hear that.
    """
    whole = [(path, path, False) for path in shared]
    whole += [(path, path, True) for path in _folders()]
    whole += [(path, path.with_name(name), True) for name, path in _libraries().items()]
    volumes = [
        {"name": f"host-{n}", "hostPath": {"path": str(source)}}
        for n, (source, _, _) in enumerate(whole)
    ]
    mounts = [
        {"name": f"host-{n}", "mountPath": str(target), "readOnly": read_only}
        for n, (_, target, read_only) in enumerate(whole)
    ]
    nobody = {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["127.0.0.1"]}}
    containers = [{"name": "job", "volumeMounts": mounts}]
    return {"spec": {**nobody, "volumes": volumes, "containers": containers}}


def _folders() -> Sequence[Path]:
    """The project, the environment, the Python that it is made of, and wherever else modules are
    found: the outermost of them."""
    named: list[Path | str] = [
        ROOT,
        sys.prefix,
        sys.base_prefix,
        *(path for path in sys.path if path),
    ]
    found = {Path(path).resolve() for path in named if Path(path).is_dir()}
    return sorted(one for one in found if not found.intersection(one.parents))


def _libraries() -> dict[str, Path]:
    """Where this machine has them: a process's map of itself says."""
    for name in _NATIVE:
        ctypes.CDLL(name)
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    files = [Path(one) for one in sorted(mapped) if one.startswith("/")]
    return {name: file for name in _NATIVE for file in files if file.name.startswith(name)}
