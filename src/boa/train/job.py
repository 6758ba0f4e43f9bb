"""The job that this process belongs to, as its environment tells."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    job_id: str = ""
    """Empty outside of a job."""
    job_class: str = ""
    width: int = 1
    """GPUs of the whole job."""
    rank: int = 0
    world_size: int = 1
    """Processes of the whole job: its width, or 1 where one process uses all GPUs."""
    local_rank: int = 0
    gpu_type: str = ""
    attempt: int = 1
    """Counts how often the job was started."""
    checkpoint_dir: Path | None = None
    """The same every time it is started."""
    keeper: Path | None = None
    """The folder of the process that holds state in this node's memory, if there is one."""
    epochs: int = 1
    speed: float = 1.0
    """The service's seconds per second of the wall."""


def read(environment: Mapping[str, str] = os.environ) -> JobContext:
    """The context from the environment. Whatever is missing or makes no sense counts as not said: a
    script must run anywhere."""

    def value(name: str, kind: Callable[[str], _T], default: _T) -> _T:
        try:
            return kind(environment[name])
        except (KeyError, ValueError):
            return default

    world_size = value("WORLD_SIZE", int, 1)
    folder, keeper = environment.get("BOA_CHECKPOINT_DIR"), environment.get("BOA_KEEPER")
    return JobContext(
        job_id=environment.get("BOA_JOB_ID", ""),
        job_class=environment.get("BOA_CLASS", ""),
        width=value("BOA_WIDTH", int, world_size),
        rank=value("RANK", int, 0),
        world_size=world_size,
        local_rank=value("LOCAL_RANK", int, 0),
        gpu_type=environment.get("BOA_GPU_TYPE", ""),
        attempt=value("BOA_ATTEMPT", int, 1),
        checkpoint_dir=Path(folder) if folder else None,
        keeper=Path(keeper) if keeper else None,
        epochs=value("BOA_EPOCHS", int, 1),
        speed=value("BOA_SPEED", float, 1.0),
    )
