"""Processes of runs whose supervisor was killed. Workers die with it; what they began may not."""

import os
import signal
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import TypeAlias

MARKS = ("BOA_JOB_ID", "BOA_ATTEMPT", "BOA_CHECKPOINT_DIR")
"""What the environment of a run's processes, and only theirs, says."""
Marks: TypeAlias = tuple[str, ...]
_ROUNDS = 3
"""A process may begin another one while they are looked through."""


def marks_of(environment: Mapping[str, str]) -> Marks | None:
    """None of a process that belongs to no run."""
    marks = tuple(environment[name] for name in MARKS if name in environment)
    return marks if len(marks) == len(MARKS) else None


def kill(runs: Collection[Marks]) -> None:
    """Every process on this machine that belongs to one of these runs."""
    for _ in range(_ROUNDS):
        found = [pid for pid, marks in _processes() if marks in runs]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _processes() -> Iterator[tuple[int, Marks]]:
    """All those of runs."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:  # another user's, gone
            entries = (entry.partition(b"=") for entry in file.read().split(b"\0"))
            marks = marks_of({os.fsdecode(k): os.fsdecode(v) for k, _, v in entries})
            if marks is not None:
                yield int(name), marks
