"""Runs as pods of a Kubernetes cluster, which go on without the service.

engine ── a pod per run and node, pinned to the planned node
  └─ in_pod (process 1 of each) ── `run_supervisor` with the node's ranks ── user's command

| file | what it does |
| --- | --- |
| `engine`, `cluster` | what the service asks; what we ask the API server |
| `run`, `member` | one run, from placed to ended: what its pods are → what happens next |
| `placing` | when a run whose pods are not up is given up, and why |
| `status` | what a pod says of itself |
| `beginning`, `luggage`, `manifest`, `template` | a launch made into Secrets and pods |
| `submitting` | what is refused when a job is submitted |
| `marker`, `names` | what a run is found again by, on the disk and in the cluster |
| `in_pod`, `frames` | in the pod: the gate, the supervisor, lines that tell whose they are |
| `follower` | a thread that copies a pod's log to the service's disk |

Shared with engines on other clusters: `remote`, `remote_folders`, `mirror`, `gang` beside it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boa.engines.kubernetes.engine import KubernetesEngine

__all__ = ["KubernetesEngine"]


def __getattr__(name: str) -> object:
    """Imported when it is used: others need no HTTP client."""
    if name == "KubernetesEngine":
        from boa.engines.kubernetes.engine import KubernetesEngine

        return KubernetesEngine
    raise AttributeError(name)
