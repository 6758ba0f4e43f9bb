"""What starts and stops jobs for real. Repeating any call is harmless."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from boa.model.cluster import JobId, NodeId
from boa.model.job import JobSpec
from boa.units import GpuName, Seconds


@dataclass(frozen=True, slots=True)
class RunKey:
    job: JobId
    attempt: int


@dataclass(frozen=True, slots=True)
class NodeSlots:
    """GPUs of one node that a run gets."""

    node: NodeId
    gpus: tuple[int, ...]
    address: str = ""
    """What the cloud said that the engine finds the node by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """All that it takes to start a run."""

    key: RunKey
    spec: JobSpec
    gpu_type: GpuName
    slots: tuple[NodeSlots, ...]
    checkpoint_dir: str
    env: dict[str, str] = field(default_factory=dict)
    """BOA_REPORT_URL, BOA_REPORT_TOKEN and the like, from the service."""

    @property
    def width(self) -> int:
        return sum(len(node.gpus) for node in self.slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """What became of a run since it was last asked. `ended` is told until it is forgotten."""

    key: RunKey
    ended: bool
    """False: its processes are up."""
    exit_code: int | None = None
    """0: it said that it was done, or had stopped when asked. A signal n: -n. None: lost, nobody
    knows (its supervisor died, or the machine was restarted)."""
    stopped: bool = False
    """Its processes had been asked to stop before they ended: exit 0 is then no end of the job."""
    node_lost: bool = False
    """It ended because a node of its was gone, or could not be had: no failure of the job's."""
    reason: str = ""
    age_s: Seconds = 0.0
    """How long ago it happened, in seconds of the wall, as far as the engine knows: a run that
    ended while the service was down must not be charged until the restart."""


class Engine(Protocol):
    """Every call returns soon. Safe to call from one thread; logs from any.

    That thread is to last until `close`: with it ends what an engine keeps for itself.
    """

    def start(self, launch: Launch) -> None:
        """Start a run; of a run that was started before, nothing. What fails is an ended event."""
        ...

    def stop(self, key: RunKey, grace_s: Seconds) -> None:
        """SIGTERM to all its processes; SIGKILL after the grace time (seconds of the wall)."""
        ...

    def poll(self) -> Sequence[RunEvent]:
        """What happened. An end is told again until `forget`."""
        ...

    def runs(self) -> Collection[RunKey]:
        """All runs not forgotten: after a crash of the service, what is still there."""
        ...

    def forget(self, key: RunKey) -> None:
        """The end of this run has been written down."""
        ...

    def logs(self, job: JobId) -> Sequence["LogFile"]:
        """Log files of a job, oldest first: all attempts, all workers."""
        ...

    def close(self) -> None:
        """Let go; runs go on."""
        ...


@dataclass(frozen=True, slots=True)
class LogFile:
    attempt: int
    rank: int
    path: Path
    """Its newest part; what was cut for size is named in a line of the file."""
