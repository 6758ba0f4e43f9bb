"""Attempts of one job under the local engine, and the marks that they leave."""

import json
import os
import time
from pathlib import Path
from statistics import median
from typing import Any

from boa.engines.local import LocalEngine
from boa.model.job import JobSpec
from boa.model.runs import Launch, NodeSlots, RunKey

HERE = Path(__file__).resolve().parent
PATIENCE_S = 300.0
PARTS = (
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
"""From which mark to which."""


class Runs:
    def __init__(self, home: Path, model: str, *, tiny: bool, warm: bool = True) -> None:
        home.mkdir(parents=True)
        self._home, self._model, self._tiny, self._warm = home, model, tiny, warm
        self._engine = LocalEngine(home / "runs", log_bytes=10**6)
        self._attempt = 0
        self.marks: list[dict[str, Any]] = []
        self.events: dict[str, float] = {}

    def attempt(self, width: int, steps: int) -> None:
        """Start, wait for so many steps, stop: `marks` and `events` tell of it."""
        self._attempt += 1
        key = RunKey("job", self._attempt)
        file = self._home / f"marks-{self._attempt}"
        started = time.time()
        self._engine.start(self._launch(key, width, file, steps))
        self._wait(file, "enough")
        asked = time.time()
        self._engine.stop(key, 60.0)
        while not any(event.ended and event.key == key for event in self._engine.poll()):
            time.sleep(0.002)
        ended = time.time()
        self._engine.forget(key)
        self.marks = self._read(file)
        self.events = {"start": started, "asked to stop": asked, "ended": ended}
        for mark in self.marks:
            self.events.setdefault(mark["what"], mark.get("entered", mark["at"]))
            if "imported" in mark:
                self.events["imported"] = mark["imported"]

    def close(self) -> None:
        self._engine.close()

    def _launch(self, key: RunKey, width: int, marks: Path, steps: int) -> Launch:
        run = ["python3", str(HERE / "_gpu_job.py"), self._model, str(marks), str(steps)]
        path = os.pathsep.join([str(HERE), str(HERE.parent / "src")])
        preload = ("boa.train.torch",) if self._warm else ()
        spec = JobSpec(
            job_class="bench",
            run=(*run, *(["tiny"] if self._tiny else [])),
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
        before = {name: runs.events[name] for name in ("asked to stop", "saved", "ended")}
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
