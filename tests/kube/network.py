"""The network of a cluster's real nodes: one bridge for all pods, and the API server on it.

Every cluster takes a 10.N.0.0/16 of its own. The bridge is 10.N.0.1, which is also every node's
address; the API server is at 10.N.255.1, the address that pods are told. Pods are on the bridge,
and find each other without a route.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from kube.owners import alive, me

_NUMBERS = range(100, 200)
_CLAIMED = Path("/run/boa-kube")


class Network:
    """Of one cluster."""

    def __init__(self, number: int) -> None:
        self.bridge = f"boakube{number}"
        self.node = f"10.{number}.0.1"
        self.api = f"10.{number}.255.1"
        self.services = f"10.{number}.255.0/24"
        self._net = f"10.{number}"
        self._nodes = 0

    def pods_of_next_node(self) -> dict[str, object]:
        """The range of a node's pods, as the CNI plugin `host-local` has it."""
        self._nodes += 1
        if self._nodes > 250:
            raise RuntimeError("a cluster has room for 250 real nodes, dead ones included")
        return {
            "subnet": f"{self._net}.0.0/16",
            "rangeStart": f"{self._net}.{self._nodes}.2",
            "rangeEnd": f"{self._net}.{self._nodes}.254",
            "gateway": self.node,
        }


@contextlib.contextmanager
def own_network() -> Iterator[Network]:
    """A bridge that nobody else has; it needs root and `ip`."""
    number, claim = _claim()
    network = Network(number)
    try:
        # Without one of its own it takes the lowest of its pods': as they come and go it would be
        # another, and who is connected would not be heard for half a minute.
        mac = f"02:b0:a0:00:00:{number:02x}"
        _ip("link", "add", network.bridge, "address", mac, "type", "bridge")
        _ip("addr", "add", f"{network.node}/16", "dev", network.bridge)
        _ip("addr", "add", f"{network.api}/32", "dev", network.bridge)
        _ip("link", "set", network.bridge, "up")
        yield network
    finally:
        _forget(network.bridge)
        claim.unlink(missing_ok=True)


def sweep() -> None:
    """Give back what belongs to nobody any more."""
    for claim in _CLAIMED.glob("*"):
        with contextlib.suppress(OSError):
            if not alive(claim.read_text()):
                _forget(Network(int(claim.name)).bridge)
                claim.unlink()


def _claim() -> tuple[int, Path]:
    _CLAIMED.mkdir(exist_ok=True)
    for number in _NUMBERS:
        claim = _CLAIMED / str(number)
        try:
            file = os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            continue
        with open(file, "w") as out:
            out.write(me())
        return number, claim
    raise RuntimeError(f"{len(_NUMBERS)} clusters are there already, says {_CLAIMED}")


def _forget(bridge: str) -> None:
    subprocess.run(["ip", "link", "del", bridge], capture_output=True)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
