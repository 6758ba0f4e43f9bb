"""Attempts of one job under the local engine, and the marks that they leave."""

import json
import os
import shutil
import time
from pathlib import Path
from statistics import median
from typing import Any

from boa.engines.local import LocalEngine
from boa.model.job import JobSpec
from boa.model.runs import Launch, NodeSlots, RunEvent, RunKey

HERE = Path(__file__).resolve().parent
PATIENCE_S = 300.0
MEMORY_SHARE = 0.45
PARTS = (
    ("prepare", "asked", "asked to stop"),
    ("stop", "asked to stop", "saved"),
    ("end", "saved", "ended"),
    ("fork", "start", "entered"),
    ("import", "entered", "imported"),
    ("join", "imported", "joined"),
    ("build", "joined", "built"),
    ("load", "built", "loaded"),
    ("first_step", "loaded", "first step"),
    ("total", "asked to stop", "first step"),
)
"""From which mark to which. Training goes on while the next run is prepared: not in the total."""


class Runs:
    def __init__(
        self, home: Path, model: str, *, tiny: bool, warm: bool = True, memory: bool = False
    ) -> None:
        """`memory`: whether state goes to the next run through memory."""
        home.mkdir(parents=True)
        self._home, self._model, self._tiny, self._warm = home, model, tiny, warm
        self._memory = memory
        share = MEMORY_SHARE if memory else 0.0
        self._engine = LocalEngine(home / "runs", log_bytes=10**6, memory_share=share)
        self._attempt = 0
        self.marks: list[dict[str, Any]] = []
        self.events: dict[str, float] = {}

    def attempt(
        self, width: int, steps: int, *, until: str = "enough", grace_s: float = 60.0
    ) -> None:
        """Start, wait for so many steps, stop: `marks` and `events` tell of it."""
        self._attempt += 1
        key = RunKey("job", self._attempt)
        file = self._marks(0)
        started = time.time()
        self._engine.start(self._launch(key, width, file, steps))
        self._wait(file, until)
        asked = time.time()
        then = self._launch(RunKey("job", self._attempt + 1), width, self._marks(1), steps)
        self._engine.stop(key, grace_s, then if grace_s else None)
        end: RunEvent | None = None
        while end is None:
            time.sleep(0.002)
            end = next((e for e in self._engine.poll() if e.ended and e.key == key), None)
        ended = time.time()
        self._engine.forget(key)
        self.marks = self._read(file)
        told = asked + end.prepared_s
        self.events = {"start": started, "asked": asked, "asked to stop": told, "ended": ended}
        for mark in self.marks:
            self.events.setdefault(mark["what"], mark.get("entered", mark["at"]))
            if "imported" in mark:
                self.events["imported"] = mark["imported"]

    def _marks(self, later: int) -> Path:
        return self._home / f"marks-{self._attempt + later}"

    @property
    def kept_bytes(self) -> int:
        """Of all checkpoints on the disk."""
        folder = self._home / "checkpoints"
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    def evict(self) -> float:
        """Have the system forget what it still holds of the checkpoints in memory, as if the next
        run were on another node; gives the seconds that it took."""
        began = time.time()
        for path in (self._home / "checkpoints").rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return time.time() - began

    def wait_for_disk(self) -> float:
        """Until what is in memory is on the disk, too; gives the moment."""
        folder = self._home / "checkpoints"
        while (folder / "memory.json").exists():
            time.sleep(0.05)
        return time.time()

    def close(self) -> None:
        self._engine.close()
        keeper = self._home / "runs" / "job" / "keeper"
        if keeper.is_dir():  # it ends when its folder is gone
            shutil.rmtree(keeper)

    def _launch(self, key: RunKey, width: int, marks: Path, steps: int) -> Launch:
        run = ["python3", str(HERE / "_gpu_job.py"), self._model, str(marks), str(steps)]
        words = ["tiny"] * self._tiny + ["memory"] * self._memory
        path = os.pathsep.join([str(HERE), str(HERE.parent / "src")])
        preload = ("boa.train.torch",) if self._warm else ()
        spec = JobSpec(
            job_class="bench",
            run=(*run, *words),
            env={"PYTHONPATH": path},
            preload=preload,
        )
        return Launch(
            key=key,
            spec=spec,
            gpu_type="here",
            slots=(NodeSlots(0, tuple(range(width))),),
            checkpoint_dir=str(self._home / "checkpoints"),
            # all workers share the only GPU
            env={"CUDA_VISIBLE_DEVICES": "0"},
        )

    def _wait(self, file: Path, what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not any(mark["what"] == what for mark in self._read(file)):
            ended = [event for event in self._engine.poll() if event.ended]
            if ended or time.monotonic() > deadline:
                logs = [log.path.read_text()[-3000:] for log in self._engine.logs("job")[-2:]]
                raise SystemExit(
                    f"the training did not get to {what!r}: {ended}\n" + "\n".join(logs)
                )
            time.sleep(0.01)

    @staticmethod
    def _read(file: Path) -> list[dict[str, Any]]:
        if not file.exists():
            return []
        return [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]


def restarts_of(runs: Runs, repeats: int) -> dict[str, float]:
    """Medians of the parts, from the stop of one attempt to the first step of the next."""
    rows: list[dict[str, float]] = []
    runs.attempt(1, 5)  # nothing to load yet, and no parent to fork from
    for _ in range(repeats):
        before = {name: runs.events[name] for name in ("asked", "asked to stop", "saved", "ended")}
        runs.attempt(1, 5)
        events = {**runs.events, **before}
        rows.append({name: events[until] - events[since] for name, since, until in PARTS})
    runs.close()
    return {name: median(row[name] for row in rows) for name, _, _ in PARTS}


def losses_of(runs: Runs, plan: list[tuple[int, int]]) -> dict[int, float]:
    """Loss by step, of attempts of (width, steps)."""
    curve: dict[int, float] = {}
    for width, steps in plan:
        runs.attempt(width, steps)
        curve |= {m["step"]: m["loss"] for m in runs.marks if m["what"] == "step"}
    runs.close()
    return curve
