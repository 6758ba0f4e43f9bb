"""Runs whose job leaves files that tell when it did what: waiting for them, and reading them."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from boa.engines.base import Engine
from boa.model.runs import RunEvent, RunKey
from boa.units import Seconds


class MarkedRuns:
    """All of one job, number 1."""

    engine: Engine
    marks: Path
    patience_s: Seconds = 120.0
    look_s: Seconds = 0.01
    """Seconds between two looks."""

    def _await(self, key: RunKey, done: Callable[[], bool]) -> RunEvent | None:
        until = time.monotonic() + self.patience_s
        while not done():
            ended = [event for event in self.engine.poll() if event.ended and event.key == key]
            if ended:
                return ended[0]
            if time.monotonic() > until:
                raise SystemExit(f"nothing happened for {self.patience_s:.0f} s\n{self._log()}")
            time.sleep(self.look_s)
        return None

    def _stopped(self, key: RunKey, who: str) -> tuple[float, dict[str, float]]:
        """When it was asked to stop, and the marks of its end."""
        told = time.time()
        self.engine.stop(key, 60.0)
        end = self._await(key, lambda: False)
        over = time.time()
        assert end is not None
        if end.exit_code != 0:
            raise SystemExit(f"{who}: {end.reason}\n{self._log()}")
        self.engine.forget(key)
        return told, {**self._read("stopped.json"), "ended": over}

    def _read(self, name: str) -> dict[str, float]:
        try:
            marks: dict[str, float] = json.loads((self.marks / name).read_text())
        except FileNotFoundError:
            raise SystemExit(f"the job ended too soon\n{self._log()}") from None
        return marks

    def _log(self) -> str:
        return "".join(file.path.read_text() for file in self.engine.logs("1")[-1:])
