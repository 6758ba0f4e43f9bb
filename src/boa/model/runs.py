"""A run as engines and the scheduler speak of it: what starts it, what becomes of it."""

from dataclasses import dataclass, field
from pathlib import Path

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
    """The name that the engine finds the node by, as the cloud said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """All that it takes to start a run."""

    key: RunKey
    spec: JobSpec
    gpu_type: GpuName
    slots: tuple[NodeSlots, ...]
    checkpoint_dir: str
    artifacts: str = ""
    """The folder that the job leaves results in (`$BOA_ARTIFACTS`)."""
    package: str = ""
    """The file of the package that it runs in a copy of; empty: none."""
    env: dict[str, str] = field(default_factory=dict)
    """BOA_REPORT_URL, BOA_REPORT_TOKEN and the like, from the service."""
    team: str = ""
    """The job's: who it runs as may go by it."""
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    """Values of the job's secrets, by the variable that holds each: to be written nowhere."""

    @property
    def width(self) -> int:
        return sum(len(node.gpus) for node in self.slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """News of a run since it was last asked about. `ended` is told until it is forgotten."""

    key: RunKey
    ended: bool
    """False: its processes are up, or, with a `hindrance`, something is in its way."""
    hindrance: str = ""
    """Processes that cannot be ended, in words: they keep it from beginning, or from being over.
    Told when they change."""
    exit_code: int | None = None
    """0: it said that it was done, or had stopped when asked. A signal n: -n. None: lost, nobody
    knows (its supervisor died, or the machine was restarted)."""
    stopped: bool = False
    """Its processes had been asked to stop before they ended: exit 0 is then no end of the job."""
    node_lost: bool = False
    """It ended because a node of its was gone, or could not be had: no failure of the job's."""
    run_lost: bool = False
    """Its files are gone or damaged, or its machine restarted: no failure of the job's."""
    unready: bool = False
    """It could not begin: a secret that it needs is missing, or GPUs that it was to have are
    another's. No failure of the job's either."""
    awaits: str = ""
    """Something that it waits for before it can begin, in words. Told when it changes."""
    reason: str = ""
    said: str = ""
    """Line of its output that tells most of why, where it ended by itself and badly."""
    prepared_s: Seconds = 0.0
    """Seconds of the wall that it went on after it was asked to stop, while the run that follows
    was prepared: no part of the rescaling."""
    done: bool = False
    """It said that its work was finished (`$BOA_DONE`): exit 0 ends the job, also after a stop."""
    saved: bool = False
    """Its checkpoint folder holds a file that is newer than its first process. Reported again
    whenever a newer one is seen."""
    saved_age_s: Seconds = 0.0
    """Seconds of real time since the newest of them was written."""
    age_s: Seconds = 0.0
    """How long ago it happened, in seconds of the wall, as far as the engine knows: a run that
    ended while the service was down must not be charged until the restart."""


@dataclass(frozen=True, slots=True)
class LogFile:
    attempt: int
    rank: int
    path: Path
    """Its newest part; what was cut for size is named in a line of the file."""
