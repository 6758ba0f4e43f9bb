"""A cloud that fails as real ones do, on a schedule that a seed decides: for tests and drills.

What befalls a call depends on the seed, the token and how often it was asked, never on the order in
which threads come by: the same seed brings the same faults.
"""

import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from boa.clock import Clock
from boa.clouds.base import Cloud, CloudTrouble, NoCapacity
from boa.model.cloud import CloudNode
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often what goes wrong: probabilities per call, or per node."""

    seed: int = 0
    no_capacity: float = 0.0
    """A request for a new node is turned down."""
    trouble_before: float = 0.0
    """A call fails, and nothing came of it."""
    trouble_after: float = 0.0
    """A call fails, though what it asked for has been done."""
    vanish: float = 0.0
    """A node is taken away, and is not listed any more."""
    vanish_within_s: Seconds = 3600.0
    """Seconds after it was rented within which a node vanishes, at some moment."""
    boot_delay_s: Seconds = 0.0
    """A node takes up to so much longer to get ready."""


class FaultyCloud:
    """Any cloud, with faults."""

    def __init__(self, cloud: Cloud, clock: Clock, faults: Faults) -> None:
        self._cloud, self._clock, self._faults = cloud, clock, faults
        self._lock = threading.Lock()
        self._calls: Counter[str] = Counter()

    def offers(self) -> Mapping[GpuName, GpuType]:
        return self._cloud.offers()

    def rent(self, token: str, gpu: GpuName) -> None:
        luck = self._luck(f"rent {token}")
        self._maybe_fail(luck, self._faults.trouble_before)
        if luck.random() < self._faults.no_capacity and not self._has(token):
            raise NoCapacity(f"no {gpu} to be had at the moment")
        self._cloud.rent(token, gpu)
        self._maybe_fail(luck, self._faults.trouble_after)

    def release(self, token: str) -> None:
        luck = self._luck(f"release {token}")
        self._maybe_fail(luck, self._faults.trouble_before)
        self._cloud.release(token)
        self._maybe_fail(luck, self._faults.trouble_after)

    def nodes(self) -> Sequence[CloudNode]:
        self._maybe_fail(self._luck("nodes"), self._faults.trouble_before)
        now = self._clock.now()
        for node in self._cloud.nodes():
            if node.gone_at is None and self._vanishes_at(node) <= now:
                self._cloud.release(node.token)
        seen = (self._booting(node, now) for node in self._cloud.nodes())
        return [node for node in seen if not self._has_vanished(node)]

    def _luck(self, call: str) -> random.Random:
        with self._lock:
            self._calls[call] += 1
            times = self._calls[call]
        return random.Random(f"{self._faults.seed} {call} {times}")

    def _fate(self, node: CloudNode) -> random.Random:
        """Random numbers of a node's fate: the same after any restart."""
        return random.Random(f"{self._faults.seed} node {node.token}")

    def _maybe_fail(self, luck: random.Random, probability: float) -> None:
        if luck.random() < probability:
            raise CloudTrouble("the cloud did not answer")

    def _has(self, token: str) -> bool:
        """Whether a node was rented under this token: it is not turned down afterwards."""
        return any(node.token == token for node in self._cloud.nodes())

    def _vanishes_at(self, node: CloudNode) -> Seconds:
        fate = self._fate(node)
        if fate.random() >= self._faults.vanish:
            return float("inf")
        return node.billed_from + fate.random() * self._faults.vanish_within_s

    def _has_vanished(self, node: CloudNode) -> bool:
        return node.gone_at is not None and self._vanishes_at(node) <= node.gone_at

    def _booting(self, node: CloudNode, now: Seconds) -> CloudNode:
        if node.ready_at is None:
            return node
        delay = random.Random(f"{self._faults.seed} boot {node.token}").random()
        ready_at = node.ready_at + delay * self._faults.boot_delay_s
        last = now if node.gone_at is None else node.gone_at
        return replace(node, ready_at=ready_at if ready_at <= last else None)
