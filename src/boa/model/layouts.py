"""Layouts of a model over GPUs that were tried, and what became of it (`train/torch/layout`)."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

OF_CLASS = "BOA_LAYOUTS"
"""Variable by which a run hears what jobs of its class have tried, in JSON."""
MOST_KEPT = 64
"""Trials that are remembered: the newest."""
MOST_WORDS, MOST_NAME = 200, 40
"""Characters of a reason, and of a layout's name."""
MOST = 10**15
"""No count, and no number of bytes, is larger."""
MOVED = 0.05
"""Part by which a time must have moved to be news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A layout that ran, or ran out of memory."""

    gpu: str
    """The GPU type; empty: unknown."""
    width: int
    nodes: int
    layout: str
    local_batch: int
    """Samples that a GPU (or a group that splits layers) took in one pass."""
    passes: int = 0
    """Passes before the one that ended in a step."""
    step_s: float | None = None
    """Seconds of one step; None: it never got so far."""
    batch: int = 0
    """Samples of that step, over all GPUs."""
    peak_bytes: int | None = None
    """Most memory of a GPU that it held."""
    out_of_memory: bool = False
    broken: bool = False
    """Whether the script failed in it before its first step, within torch: it cannot do with it.
    Known to the job alone: another may have another script."""
    why: str = ""
    """Reason for which it was chosen, in words."""

    @property
    def key(self) -> tuple[object, ...]:
        """A later trial with the same one takes its place."""
        return (self.gpu, self.width, self.nodes, self.layout, self.local_batch, self.passes)

    @property
    def samples_per_s(self) -> float:
        return self.batch / self.step_s if self.step_s else 0.0

    def as_row(self) -> dict[str, Any]:
        return asdict(self)

    def as_told(self) -> dict[str, Any]:
        """As the service hears of it."""
        return {name: value for name, value in asdict(self).items() if name != "broken"}


def with_trial(trials: Iterable[Trial], new: Trial) -> tuple[Trial, ...]:
    """The newest last, and no more than are kept; of the same key, the newest only."""
    others = [trial for trial in trials if trial.key != new.key]
    return (*others, new)[-MOST_KEPT:]


def told(trials: Iterable[Trial], most_bytes: int = 32 * 1024) -> str:
    """The newest in JSON, as many as go into an environment variable; without their reasons."""
    rows: list[dict[str, Any]] = []
    size = 2
    for trial in reversed(list(trials)):
        row = {name: value for name, value in trial.as_told().items() if name != "why"}
        size += len(json.dumps(row, separators=(",", ":"))) + 1
        if size > most_bytes:
            break
        rows.append(row)
    return json.dumps(rows[::-1], separators=(",", ":")) if rows else ""


def is_news(trials: Iterable[Trial], new: Trial) -> bool:
    """Whether it says more than one that is known."""
    before = next((trial for trial in trials if trial.key == new.key), None)
    if before is None or before.out_of_memory != new.out_of_memory:
        return True
    if before.step_s is None or new.step_s is None:
        return new.step_s is not None
    return abs(new.step_s - before.step_s) > MOVED * before.step_s


def fastest(trials: Iterable[Trial]) -> dict[tuple[str, int, int], Trial]:
    """The best that was measured, by GPU type, width and nodes."""
    found: dict[tuple[str, int, int], Trial] = {}
    for trial in trials:
        place = (trial.gpu, trial.width, trial.nodes)
        runs = trial.step_s is not None and not trial.out_of_memory
        if runs and (place not in found or trial.samples_per_s > found[place].samples_per_s):
            found[place] = trial
    return found


def trials_of(rows: object) -> tuple[Trial, ...]:
    """From JSON. What makes no sense is left out: it is only of help."""
    found: tuple[Trial, ...] = ()
    for row in rows if isinstance(rows, list) else ():
        trial = trial_of(row)
        if trial is not None:
            found = with_trial(found, trial)
    return found


_KINDS: Mapping[str, tuple[type, ...]] = {
    "gpu": (str,),
    "width": (int,),
    "nodes": (int,),
    "layout": (str,),
    "local_batch": (int,),
    "passes": (int,),
    "step_s": (float, int, type(None)),
    "batch": (int,),
    "peak_bytes": (int, type(None)),
    "out_of_memory": (bool,),
    "broken": (bool,),
    "why": (str,),
}


def trial_of(row: object) -> Trial | None:
    """None: it is none."""
    if not isinstance(row, dict):
        return None
    known = {field.name: row[field.name] for field in fields(Trial) if field.name in row}
    if any(type(value) not in _KINDS[name] for name, value in known.items()):
        return None
    try:
        trial = Trial(**known)
    except TypeError:  # something is missing
        return None
    counts = (trial.width, trial.nodes, trial.local_batch)
    others = (trial.passes, trial.batch, trial.peak_bytes or 0)
    seconds = 1.0 if trial.step_s is None else trial.step_s
    sane = min(counts) >= 1 and min(others) >= 0 and max(*counts, *others) <= MOST
    brief = len(trial.why) <= MOST_WORDS and len(trial.layout) <= MOST_NAME
    return trial if sane and brief and 0 < seconds < math.inf else None
