"""A job as its user describes it. It needs nothing: who submits one waits for its import."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from boa.model.limits import DEFAULT_MAX_GPUS
from boa.model.priorities import Priority
from boa.units import GpuName, Seconds, Usd

Launcher: TypeAlias = Literal["workers", "torchrun", "single"]
"""One process per GPU; one torchrun that starts them; one process that is told its width."""
State: TypeAlias = Literal[
    "waiting", "starting", "running", "rescaling", "preempted", "succeeded", "failed", "stopped"
]
ENDED: frozenset[State] = frozenset({"succeeded", "failed", "stopped"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLimits:
    """GPUs that a job can run on."""

    min: int = 1
    max: int = DEFAULT_MAX_GPUS
    types: tuple[GpuName, ...] = ()
    """Empty: any type that can be rented."""

    def allow(self, gpu: GpuName, width: int) -> bool:
        return self.min <= width <= self.max and (not self.types or gpu in self.types)


@dataclass(frozen=True, slots=True)
class SecretUse:
    """A secret that a job gets, by its name, and the variable that holds it."""

    name: str
    env: str


PACK = "workdir"
"""The package that is yet to be made, of the folder that `workdir` names."""
On: TypeAlias = Literal["success", "failure", "end"]
"""The end of another job that one waits for: a good one, a bad one, any."""


class After(NamedTuple):
    """Another job, or a whole sweep, that a job starts after."""

    job: str
    """The id of either."""
    on: On = "success"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A job as `boa submit` sends it: a command and its class."""

    job_class: str
    run: tuple[str, ...]
    """The command as a list of arguments; a string in the file becomes `sh -c STRING`."""
    name: str = ""
    """Empty: the class's name."""
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[SecretUse, ...] = ()
    """Kept by the service: a spec has their names alone."""
    workdir: str = ""
    """Absolute; empty: the job's own folder, or that of its package."""
    package: str = ""
    """SHA-256 of the package that it runs in a copy of; `PACK`: to be packed; empty: none."""
    environment: str = ""
    """conda:NAME, venv:PATH, uv, uv:PATH; empty: what is on the PATH."""
    image: str = ""
    """Container image that its command runs in; empty: none."""
    gpus: GpuLimits = field(default_factory=GpuLimits)
    launcher: Launcher = "workers"
    epochs: int = 1
    """Stretches of training whose boundaries the job reports."""
    total_work: float | None = None
    """Units of progress (samples, say) of the whole job, where its user knows."""
    checkpoint_dir: str = ""
    """Absolute; empty: a folder of the job's own that the service makes."""
    preload: tuple[str, ...] | None = None
    """Modules that a warm parent imports; none: no warm parent; None: found out from the script."""
    grace_s: Seconds = 30.0
    """From SIGTERM to SIGKILL."""
    retries: int = 3
    """How often it is started again after it failed by itself."""
    priority: Priority = "normal"
    """Whoever says it gives no weight, and the other way round."""
    weight: float = 1.0
    after: tuple[After, ...] = ()
    """It starts when all of these have ended so; once one never will, it ends too."""
    max_time_s: Seconds | None = None
    """The most that its runs may take, all together; None: any."""
    max_cost: Usd | None = None
    """The most that it may cost."""
    deadline_s: Seconds | None = None
    """From its submission until it is to have ended; None: whenever."""
    may_wait_s: Seconds | None = None
    """The most that its start is put off, from its submission on, for hours in which money buys
    more; None: as the calendar says."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Whom or what its cost is for, by kind: a project, a cost center."""
    preemptible: bool = False
    """BOA may stop it for other jobs although it has no checkpoint: its work starts over."""
    key: str = ""
    """A second job of the same owner with the same key is the first one."""


AMENDABLE = (
    *("name", "gpus", "retries", "priority", "weight", "max_time_s", "max_cost", "deadline_s"),
    *("may_wait_s", "tags"),
)
"""Fields that may be changed until a job has ended."""
ITS_OWN = ("key", "after")
"""Fields that are for one submission."""


def amended(spec: JobSpec, fields: Mapping[str, Any]) -> JobSpec:
    """The spec with these fields changed, as JSON has them. A priority takes the place of a weight,
    and the other way round."""
    changed = dict(fields)
    if "priority" in changed:
        changed.setdefault("weight", 1.0)
    elif "weight" in changed:
        changed["priority"] = "normal"
    if "gpus" in changed:
        limits = changed["gpus"]
        changed["gpus"] = GpuLimits(**{**limits, "types": tuple(limits["types"])})
    return replace(spec, **changed)
