"""Real runs of the local engine, for tests to wait on."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from boa.engines.local import LocalEngine
from boa.engines.processes import run_supervisor
from boa.model.job import JobSpec
from boa.model.runs import Launch, NodeSlots, RunEvent, RunKey

DEADLINE_S = 600.0
"""Only what never comes takes so long, however busy the machine is."""


def until(done: Callable[[], bool], within_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < deadline, f"not within {within_s:g} s"
        time.sleep(0.005)


def alive(pid: int) -> bool:
    return bool(run_supervisor.identity(pid))


class Runs:
    """One folder of runs, and the engine that looks after it."""

    def __init__(self, root: Path, log_bytes: int = 1024**2, **options: Any) -> None:
        self.root, self.log_bytes = root, log_bytes
        self.options = {"log_bytes": log_bytes, **options}
        self.engine = LocalEngine(root / "runs", **self.options)
        self.events: dict[RunKey, list[RunEvent]] = {}

    def crash(self) -> None:
        """The service is gone without a word, and another one begins."""
        self.engine = LocalEngine(self.root / "runs", **self.options)
        self.events.clear()

    def launch(self, *run: str, job: str = "1", attempt: int = 1, **given: Any) -> Launch:
        slots = given.pop("slots", ((0,),))
        env = given.pop("env_of_service", {})
        more = {name: given.pop(name) for name in ("secrets", "team") if name in given}
        return Launch(
            key=RunKey(job, attempt),
            spec=JobSpec(job_class="test", run=run, **given),
            gpu_type="T4",
            slots=tuple(NodeSlots(node, gpus) for node, gpus in enumerate(slots)),
            checkpoint_dir=str(self.root / "checkpoints" / job),
            env=env,
            **more,
        )

    def start(self, *run: str, **given: Any) -> RunKey:
        launch = self.launch(*run, **given)
        self.engine.start(launch)
        return launch.key

    def poll(self) -> None:
        for event in self.engine.poll():
            self.events.setdefault(event.key, []).append(event)

    def told(self, key: RunKey, *, ended: bool) -> RunEvent | None:
        self.poll()
        return next((e for e in self.events.get(key, []) if e.ended == ended), None)

    def end(self, key: RunKey) -> RunEvent:
        until(lambda: self.told(key, ended=True) is not None)
        event = self.told(key, ended=True)
        assert event is not None
        return event

    def until_up(self, key: RunKey) -> None:
        until(lambda: self.told(key, ended=False) is not None)

    def until_printed(self, key: RunKey, text: str, rank: int = 0) -> None:
        """Waits for the whole line: what is printed unbuffered comes before its end."""

        def printed() -> bool:
            _, found, rest = self.log(key, rank).partition(text)
            return "\n" in found[-1:] + rest

        until(printed)

    def log(self, key: RunKey, rank: int = 0) -> str:
        text = ""
        for file in self.engine.logs(key.job):
            if (file.attempt, file.rank) == (key.attempt, rank):
                with suppress(FileNotFoundError):  # it was turned over this moment
                    text += file.path.read_text()
        return text

    def folder(self, key: RunKey) -> Path:
        return self.root / "runs" / key.job / str(key.attempt)

    def supervisor(self, key: RunKey) -> int:
        """The number of the process that supervises a run that is up."""
        name = next(name for name in os.listdir(self.folder(key)) if name.startswith("up."))
        return int(name.split(".")[1])

    def close(self) -> None:
        """Leave nothing running."""
        for key in self.engine.runs():
            self.engine.stop(key, 0.0)
        for key in self.engine.runs():
            self.end(key)
        self.engine.close()


def slots_of(width: int) -> tuple[tuple[int, ...]]:
    """GPUs of one node."""
    return (tuple(range(width)),)


def start_eight(runs: Runs) -> list[RunKey]:
    """Runs of one and two workers that each write down that they began."""
    began = 'echo began >> "$BOA_CHECKPOINT_DIR/$BOA_ATTEMPT.$RANK"; sleep 0.2'
    return [
        runs.start("sh", "-c", began, job=f"{job}{width}", attempt=width, slots=slots_of(width))
        for job in range(1, 5)
        for width in (1, 2)
    ]
