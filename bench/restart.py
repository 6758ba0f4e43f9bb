"""What a restart costs: from the decision to the end of the first training step, by parts.

The local engine starts a small DDP training (bench/_restart_job.py, plain torch, Gloo, CPU) cold,
through torchrun and from a warm parent, on 1, 2 and 4 ranks in turn, then stops it. All in one
run, interleaved, so that whatever else the machine does falls on all of them; medians.

.venv/bin/python bench/restart.py [--quick] [--repeat N] [--json] [--out FILE]
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from _marked_runs import MarkedRuns
from _table import Measured, show, write
from boa.engines.local import LocalEngine
from boa.model.job import JobSpec
from boa.model.runs import Launch, NodeSlots, RunKey

HERE = Path(__file__).resolve().parent
HOWS = ("cold", "torchrun", "warm")
START = {
    "began": "to_script_s",
    "imported": "imports_s",
    "joined": "group_s",
    "built": "build_s",
    "loaded": "load_s",
    "stepped": "first_step_s",
}
"""Marks of the job, in order, and what is over with each."""
STOP = {"told": "signal_s", "agreed": "agree_s", "saved": "save_s", "ended": "end_s"}


class Bench(MarkedRuns):
    """One engine; every run goes on from the checkpoint of the one before."""

    look_s = 0.001

    def __init__(self, root: Path) -> None:
        self.root, self.marks = root, root / "marks"
        self.marks.mkdir()
        self.engine = LocalEngine(root / "runs", log_bytes=1024**2)
        self.attempt = 0

    def restart(self, how: str, ranks: int) -> tuple[dict[str, float], dict[str, float]]:
        """Seconds of every part of a start and of the stop after it."""
        for left in self.marks.iterdir():
            left.unlink()
        self.attempt += 1
        key = RunKey("1", self.attempt)
        decided = time.time()
        self.engine.start(self._launch(key, how, ranks))
        self._await(key, (self.marks / "started.json").exists)
        start = _parts(decided, self._read("started.json"), START)
        told, marks = self._stopped(key, f"{how}, {ranks} ranks")
        return start, _parts(told, marks, STOP)

    def _launch(self, key: RunKey, how: str, ranks: int) -> Launch:
        path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        spec = JobSpec(
            job_class="restart",
            run=(sys.executable, str(HERE / "_restart_job.py"), str(self.marks)),
            env={"PATH": path},
            launcher="torchrun" if how == "torchrun" else "workers",
            preload=None if how == "warm" else (),
        )
        return Launch(
            key=key,
            spec=spec,
            gpu_type="slot",
            slots=(NodeSlots(0, tuple(range(ranks))),),
            checkpoint_dir=str(self.root / "checkpoints"),
        )


def _parts(since: float, marks: Mapping[str, float], names: Mapping[str, str]) -> dict[str, float]:
    parts = {}
    for mark, name in names.items():
        parts[name] = marks[mark] - since
        since = marks[mark]
    return {"total_s": sum(parts.values()), **parts}


def measure(
    widths: tuple[int, ...], repeat: int, cold: int, say: Callable[[str], None]
) -> tuple[Measured, Measured]:
    """All ways to start `repeat` times in turn, but cold only so often."""
    started: dict[tuple[int, str], list[dict[str, float]]] = defaultdict(list)
    stopped: dict[tuple[int, str], list[dict[str, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="boa-restart-") as scratch:
        bench = Bench(Path(scratch))
        first, _ = bench.restart("warm", widths[0])  # imports, and writes the first checkpoint
        say(f"first start from a new parent: {first['total_s']:.2f} s")
        for turn in range(repeat):
            for ranks in widths:
                for how in HOWS[turn >= cold :]:
                    start, stop = bench.restart(how, ranks)
                    started[ranks, how].append(start)
                    stopped[ranks, how].append(stop)
                    say(f"{turn + 1}/{repeat}: {how}, {ranks} ranks: {start['total_s']:.2f} s")
        bench.engine.close()
    note = f"medians of {repeat} (cold: {cold})"
    with_imports = f"{note}; the first start from a parent took {first['total_s']:.2f} s"
    starts = Measured("from the decision to the end of the first step", note=with_imports)
    stops = Measured("from the stop to the end of the last process", note=note)
    for table, found in ((starts, started), (stops, stopped)):
        for (ranks, how), all_parts in found.items():
            table.add(ranks=ranks, start=how, **_medians(all_parts))
    return starts, stops


def _medians(all_parts: list[dict[str, float]]) -> dict[str, float]:
    return {
        name: round(statistics.median(parts[name] for parts in all_parts), 4)
        for name in all_parts[0]
    }


def summary(starts: Measured, stops: Measured, ranks: int) -> dict[str, float]:
    """One figure for each way to start and to stop, on so many ranks."""
    found: dict[str, float] = {"ranks": ranks}
    for table, suffix in ((starts, "_s"), (stops, "_stop_s")):
        for row in table.rows:
            total = row["total_s"]
            if row["ranks"] == ranks and isinstance(total, float):
                found[f"{row['start']}{suffix}"] = total
    found["torchrun_over_warm"] = round(found["torchrun_s"] / found["warm_s"], 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 ranks only, and cold once")
    parser.add_argument("--repeat", type=int, help="how often (3 or 5)")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument("--out", type=Path, help="where all figures go (bench/out/restart.json)")
    options = parser.parse_args()
    widths = (2,) if options.quick else (1, 2, 4)
    status = Console(stderr=True)
    repeat = options.repeat or (3 if options.quick else 5)
    tables = measure(widths, repeat, 1 if options.quick else repeat, status.print)
    console = Console(width=None if sys.stdout.isatty() else 150)
    for table in tables:
        show(table, console)
    out = options.out or (None if options.quick else HERE / "out" / "restart.json")
    if out is not None:
        write(out, tables)
        console.print(f"written to {out}")
    if options.json:
        print(json.dumps(summary(*tables, ranks=2)))


if __name__ == "__main__":
    main()
