"""Runs on the nodes of a Ray cluster, which go on without the service.

engine ── placement group per run, pinned to the planned nodes
  └─ rank (actor, one per GPU) ── supervisor (tied to the actor) ── user's command

| file | what it does |
| --- | --- |
| `engine`, `cluster` | what the service asks; what we ask Ray |
| `run` | one run, from placed to ended: what its ranks answer → what happens next |
| `prepared` | what its ranks say of their nodes → what each is to run |
| `rank`, `rank_supervisor` | on the node: the actor, and the supervisor that dies with it |
| `node_memory` | on the node: keepers (`boa.train.keeper`), which outlive the actor |
| `folders` | the marker of a run on the service's disk |

Shared with engines on other clusters: `remote`, `remote_folders`, `mirror`, `gang` beside it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boa.engines.ray.engine import RayEngine

__all__ = ["RayEngine"]


def __getattr__(name: str) -> object:
    """Imported when it is used: ranks on nodes need only their own file."""
    if name == "RayEngine":
        from boa.engines.ray.engine import RayEngine

        return RayEngine
    raise AttributeError(name)
