"""A cloud that is only a file: it keeps its nodes through any crash of the service, as a real one.
Or, for simulations, only memory.

The file is replaced as a whole and is on the disk before a call returns, so a node is either rented
or it is not. A token that was used once does not rent again, not even after its node is gone.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from boa.clock import Clock
from boa.clouds.base import NoCapacity
from boa.clouds.files import InMemory, Keeping, Kept
from boa.model.cloud import CloudNode
from boa.model.workload import GpuType
from boa.replacing import replace
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, UsdPerHour

LISTED_AFTER_GONE_S: Seconds = SECONDS_PER_HOUR
REMEMBERED = 10_000
"""Tokens: nobody asks again under one that so many others have followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rented:
    """A node as the file has it."""

    token: str
    gpu: GpuName
    gpus: int
    price: UsdPerHour
    rented_at: Seconds
    ready_at: Seconds
    released_at: Seconds | None = None
    gone_at: Seconds | None = None
    """When charging ends, which may be in the future; None: not given back."""

    def is_charged(self, now: Seconds) -> bool:
        return self.gone_at is None or now < self.gone_at

    def is_listed(self, now: Seconds) -> bool:
        return self.gone_at is None or now < self.gone_at + LISTED_AFTER_GONE_S

    def seen(self, now: Seconds) -> CloudNode:
        last = now if self.released_at is None else min(now, self.released_at)
        return CloudNode(
            token=self.token,
            gpu=self.gpu,
            gpus=self.gpus,
            price=self.price,
            billed_from=self.rented_at,
            ready_at=self.ready_at if self.ready_at <= last else None,
            gone_at=None if self.is_charged(now) else self.gone_at,
            address="127.0.0.1",
        )


@dataclass(frozen=True, slots=True)
class _Truth:
    nodes: Mapping[str, _Rented] = field(default_factory=dict)
    """Nodes that are still listed, by token."""
    used: Sequence[str] = ()
    """Tokens of nodes that there were, the newest last."""


class LocalCloud:
    """Rents at most `max_nodes` of a type (types left out have no limit), in `provision_s`."""

    def __init__(
        self,
        path: Path | None,
        gpu_types: Mapping[GpuName, GpuType],
        max_nodes: Mapping[GpuName, int],
        clock: Clock,
        provision_s: Seconds = 0.0,
        release_s: Seconds = 0.0,
    ) -> None:
        self._gpu_types, self._max_nodes = dict(gpu_types), dict(max_nodes)
        self._clock, self._provision_s, self._release_s = clock, provision_s, release_s
        self._lock = threading.Lock()
        self._kept: Keeping[_Truth] = (
            InMemory(_Truth())
            if path is None
            else Kept(path, "the local cloud's", _of_document, _document, _Truth())
        )

    def offers(self) -> Mapping[GpuName, GpuType]:
        return self._gpu_types

    def rent(self, token: str, gpu: GpuName) -> None:
        with self._lock:
            truth, now = self._kept.get(), self._clock.now()
            if token in truth.used:
                return
            self._check_capacity(truth, gpu, now)
            kind = self._gpu_types[gpu]
            rented = _Rented(
                token=token,
                gpu=gpu,
                gpus=kind.gpus_per_node,
                price=kind.price,
                rented_at=now,
                ready_at=now + self._provision_s,
            )
            used = (*truth.used[-REMEMBERED:], token)
            self._write(_Truth({**truth.nodes, token: rented}, used))

    def release(self, token: str) -> None:
        with self._lock:
            truth, now = self._kept.get(), self._clock.now()
            rented = truth.nodes.get(token)
            if rented is None or rented.released_at is not None:
                return
            given_back = replace(rented, released_at=now, gone_at=now + self._release_s)
            self._write(replace(truth, nodes={**truth.nodes, token: given_back}))

    def nodes(self) -> Sequence[CloudNode]:
        with self._lock:
            truth, now = self._kept.get(), self._clock.now()
        return [node.seen(now) for node in truth.nodes.values() if node.is_listed(now)]

    def _check_capacity(self, truth: _Truth, gpu: GpuName, now: Seconds) -> None:
        if gpu not in self._gpu_types:
            known = ", ".join(sorted(self._gpu_types))
            raise NoCapacity(f"the local cloud has no {gpu}; it has {known}")
        most = self._max_nodes.get(gpu)
        charged = sum(node.gpu == gpu and node.is_charged(now) for node in truth.nodes.values())
        if most is not None and charged >= most:
            raise NoCapacity(f"all {most} {gpu} nodes of the local cloud are taken")

    def _write(self, truth: _Truth) -> None:
        now = self._clock.now()
        listed = {token: node for token, node in truth.nodes.items() if node.is_listed(now)}
        self._kept.put(replace(truth, nodes=listed))


def _document(truth: _Truth) -> dict[str, Any]:
    names = [field.name for field in fields(_Rented)]
    nodes = [{name: getattr(node, name) for name in names} for node in truth.nodes.values()]
    return {"version": 1, "nodes": nodes, "used": list(truth.used)}


def _of_document(document: Mapping[str, Any]) -> _Truth:
    nodes = [_Rented(**node) for node in document["nodes"]]
    return _Truth({node.token: node for node in nodes}, tuple(document["used"]))
