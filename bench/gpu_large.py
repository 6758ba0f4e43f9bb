"""How large models change runs on a real GPU: stop to first step, through the disk and memory.

It needs torch and NumPy alone: PYTHONPATH=src python bench/gpu_large.py [--model 3b]
`--tiny` tries the program itself, on a CPU if need be; its figures say nothing.
"""

import argparse
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch

from _gpu_models import large_models
from _gpu_runs import PARTS, Runs
from _table import Measured, show_plainly, write

HERE = Path(__file__).resolve().parent
CUDA = torch.cuda.is_available()
WAYS = {
    "cold, disk": {"warm": False, "memory": False},
    "disk": {"warm": True, "memory": False},
    "disk, uncached": {"warm": True, "memory": False},
    "memory": {"warm": True, "memory": True},
}
STEPS = 6


def restart(name: str, how: str, scratch: Path, *, tiny: bool) -> dict[str, float]:
    """From the stop of one run to the first step of the next, once. The second is killed then: two
    checkpoints of a large model may not go on the disk."""
    runs = Runs(scratch, f"transformer-{name}", tiny=tiny, **WAYS[how])
    runs.attempt(1, STEPS, grace_s=600.0)
    before = {mark: runs.events[mark] for mark in ("asked", "asked to stop", "saved", "ended")}
    step_s = _step_s(runs.marks)
    if how == "disk, uncached":
        aside = runs.evict()
        before = {mark: at + aside for mark, at in before.items()}
    runs.attempt(1, STEPS, until="first step", grace_s=0.0)
    events = {**runs.events, **before}
    row = {part: events[until] - events[since] for part, since, until in PARTS}
    row["step"] = step_s
    row["on_disk"] = runs.wait_for_disk() - before["asked to stop"]
    row["gigabytes"] = runs.kept_bytes / 1e9
    runs.close()
    return row


def _step_s(marks: list[dict[str, Any]]) -> float:
    times = [mark["at"] for mark in marks if mark["what"] == "step"]
    return median(b - a for a, b in pairwise(times)) if len(times) > 1 else 0.0


def copies(count: int) -> dict[str, float]:
    """Seconds for so many bytes between GPU and locked memory, at the pace of 2 GB."""
    if not CUDA:
        return {"out": 0.0, "into": 0.0}
    size = 2 << 30
    near = torch.empty(size, dtype=torch.uint8, device="cuda")
    far = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    found = {}
    for name, into, source in (("out", far, near), ("into", near, far)):
        times = []
        for _ in range(3):
            torch.cuda.synchronize()
            began = time.perf_counter()
            into.copy_(source, non_blocking=True)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
        found[name] = min(times) * count / size
    return found


def measured(name: str, options: argparse.Namespace) -> Measured:
    table = Measured(
        f"transformer-{name}: stop to first step, seconds",
        note="medians; limit: the state's bytes over the measured pace of one copy out and one "
        "in, and a step; on disk: from the call of stop until the checkpoint is durable",
    )
    rows: dict[str, dict[str, float]] = {}
    for how in options.ways:
        found = []
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory(prefix="boa-large-", dir=options.folder) as scratch:
                found.append(restart(name, how, Path(scratch) / "runs", tiny=options.tiny))
        rows[how] = {part: median(row[part] for row in found) for part in found[0]}
    for how, row in rows.items():
        pace = copies(int(row["gigabytes"] * 1e9))
        limit = pace["out"] + pace["into"] + row["step"]
        table.add(how=how, **row, limit=limit)
    return table


def main() -> None:
    options = _arguments()
    gpu = torch.cuda.get_device_name() if CUDA else "none"
    tables = []
    for name in options.model:
        tables.append(measured(name, options))
        show_plainly(tables[-1])
        write(options.json, tables, gpu=gpu, torch=torch.__version__)
    print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    names = [name.removeprefix("transformer-") for name in large_models()]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", nargs="+", choices=names, default=names)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", help="where checkpoints go; default: the system's temporary")
    parser.add_argument("--tiny", action="store_true", help="small models, to try the program")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "gpu_large.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
