"""The Ray calls that the engine makes. All of them return soon."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from boa import raylink
from boa.engines.ray.rank import Rank
from boa.units import GpuName, Seconds

NODE_ID = "ray.io/node-id"
"""The label that Ray gives every node."""
PREFIX = "boa-run"
AT_ONCE = 8
"""Calls that an actor takes while others wait: some may be of a service that is gone."""
FETCH_S: Seconds = 5.0
"""Seconds for an answer that has come, and whose node may just have gone."""
LOOK_S: Seconds = 1.0


class Cluster:
    def __init__(self, address: str, namespace: str) -> None:
        self.namespace = namespace
        self._ray = raylink.connect(address, namespace)
        self._kind = self._ray.remote(Rank)
        self._nodes: Mapping[str, raylink.RayNode] = {}
        self._looked = -LOOK_S

    def group(self, name: str, gpu: GpuName, nodes: Sequence[str]) -> Any:
        """One bundle for every GPU, on these nodes: all of them, or none.

        Detached: it and its actors stay when this process ends.
        """
        from ray.util.placement_group import placement_group

        return placement_group(
            [{"GPU": 1, gpu: 1} for _ in nodes],
            strategy="PACK",
            name=self._full(name),
            lifetime="detached",
            bundle_label_selector=[{NODE_ID: node} for node in nodes],
        )

    def actor(self, name: str, gpu: GpuName, group: Any, bundle: int) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        where = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=bundle)
        return self._kind.options(
            name=self._full(name),
            namespace=self.namespace,
            lifetime="detached",
            num_cpus=0,
            num_gpus=1,
            resources={gpu: 1},
            max_restarts=0,
            max_concurrency=AT_ONCE,
            scheduling_strategy=where,
            enable_task_events=False,
        ).remote()

    def find(self, name: str) -> Any | None:
        try:
            return self._ray.get_actor(self._full(name), namespace=self.namespace)
        except ValueError:
            return None

    def answers(self, refs: Collection[Any]) -> Iterable[tuple[Any, Any]]:
        """Those that have come; an exception is one too."""
        if not refs:
            return
        from ray.exceptions import GetTimeoutError

        ready, _ = self._ray.wait(list(refs), num_returns=len(refs), timeout=0)
        for ref in ready:
            try:
                yield ref, self._ray.get(ref, timeout=FETCH_S)
            except GetTimeoutError:
                continue  # the next time
            except Exception as problem:
                yield ref, problem

    def remove(self, name: str, actors: Iterable[Any]) -> None:
        """GPUs are free as soon as the actors are gone."""
        from ray.util.placement_group import get_placement_group, remove_placement_group

        for actor in actors:
            with suppress(Exception):  # it is gone
                self._ray.kill(actor)
        with suppress(ValueError):  # there is none
            remove_placement_group(get_placement_group(self._full(name)))

    def sweep(self, known: Collection[str]) -> None:
        """Kill what is ours and of no run that is known."""
        from ray.util import list_named_actors
        from ray.util.placement_group import (
            get_placement_group,
            placement_group_table,
            remove_placement_group,
        )

        keep = {self._full(name) for name in known}
        for found in list_named_actors(all_namespaces=True):
            name = found["name"] or ""
            mine = found["namespace"] == self.namespace and self._is_ours(name)
            if mine and name.rpartition(".")[0] not in keep:
                with suppress(ValueError):
                    self._ray.kill(self._ray.get_actor(name, namespace=self.namespace))
        for group in placement_group_table().values():
            name = group["name"] or ""
            if self._is_ours(name) and name not in keep and group["state"] != "REMOVED":
                with suppress(ValueError):
                    remove_placement_group(get_placement_group(name))

    def placed(self, group: Any) -> Seconds | None:
        """How long it took to place; None: it is not placed."""
        from ray.util.placement_group import placement_group_table

        found = placement_group_table(group)
        if found.get("state") != "CREATED":
            return None
        return float(found["stats"]["end_to_end_creation_latency_ms"]) / 1000

    def is_alive(self, node: str) -> bool:
        """As known a second ago; one that was not known then may be new."""
        now = time.monotonic()
        if node not in self._nodes or now - self._looked >= LOOK_S:
            self._nodes = {found.id: found for found in raylink.nodes(self._ray)}
            self._looked = now
        return node in self._nodes and self._nodes[node].alive

    def _full(self, name: str) -> str:
        return f"{PREFIX}/{self.namespace}/{name}"

    def _is_ours(self, name: str) -> bool:
        """And not of a service whose namespace begins like ours: groups are listed for all."""
        return name.rpartition("/")[0] == f"{PREFIX}/{self.namespace}"
