"""A training large enough to leave its state in memory, run after run, under any engine."""

import json
import sys
from pathlib import Path
from typing import Any

import boa
from boa.engines.base import Engine
from boa.model.job import JobSpec
from boa.model.runs import Launch, NodeSlots, RunKey
from keeping import until

OURS = {"PYTHONPATH": str(Path(boa.__file__).parents[1])}
"""The code that is tested, wherever another is installed."""
SCRIPT = """
import json, sys, time, torch
from boa.train.torch import Elastic, Stopped
from boa.train.torch.memory import handing

told, how = sys.argv[1:]
handing.AGAIN_S = 0.1
if how == "unwritten":
    handing.WRITER = "no_such_module"
run = Elastic(batch_size=4, save_every_s=1e9)
model = run.wrap(lambda: torch.nn.Linear(3000, 3000))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
batches = run.loader(torch.utils.data.TensorDataset(torch.randn(64, 3000)))
run.resume(model, optimizer)
def say(**what):
    with open(told, "a") as file:
        file.write(json.dumps({"rank": run.ranks.rank, **what}) + chr(10))
def state():
    weight = getattr(model, "module", model).weight
    return dict(steps=run.steps, total=float(weight.double().sum()))
say(began=state(), world=run.ranks.world_size)
try:
    ready = False
    for _ in run.epochs(10**6):
        for (x,) in batches:
            run.step(model(x).square().mean())
            if not ready and (run.has_memory or how == "disk"):
                ready = True
                say(ready=run.steps)
            time.sleep(0.1)  # others have something to do
except Stopped:
    say(ended=state())
    raise
"""
"""Its arguments: a file to tell in what it does; and how it is to stop: through memory, through
memory that nobody writes to the disk (unwritten), or whenever it is told (disk)."""


class MemoryJob:
    def __init__(self, root: Path, engine: Engine, job: str = "job") -> None:
        self.root, self.engine, self.job = root, engine, job
        self.told, self.home = root / "told", root / "checkpoints" / job
        (root / "script.py").write_text(SCRIPT)
        self.attempt = 0

    def run(
        self,
        *widths: int,
        how: str = "memory",
        nodes: tuple[str, ...] = ("",),
        gpu_type: str = "here",
        **spec: Any,
    ) -> list[dict[str, Any]]:
        """Start on these nodes with so many ranks each, wait until it is ready, stop; gives what
        ranks said."""
        self.attempt += 1
        key = RunKey(self.job, self.attempt)
        self.told.write_text("")
        command = (sys.executable, str(self.root / "script.py"), str(self.told), how)
        slots = zip(widths, nodes, strict=True)
        self.engine.start(
            Launch(
                key=key,
                spec=JobSpec(job_class="large", run=command, env=OURS, **spec),
                gpu_type=gpu_type,
                slots=tuple(
                    NodeSlots(index, tuple(range(width)), node)
                    for index, (width, node) in enumerate(slots)
                ),
                checkpoint_dir=str(self.home),
            )
        )
        until(lambda: self._is_going(key) and len(self._of("ready")) == sum(widths))
        self.engine.stop(key, 120.0)
        until(lambda: any(e.ended and e.key == key for e in self.engine.poll()))
        self.engine.forget(key)
        return self._said()

    def close(self) -> None:
        """Should a test have failed, what it began ends."""
        for key in self.engine.runs():
            self.engine.stop(key, 0.0)
        until(lambda: {e.key for e in self.engine.poll() if e.ended} >= set(self.engine.runs()))
        self.engine.close()

    def began(self, said: list[dict[str, Any]]) -> Any:
        return next(line["began"] for line in said if "began" in line)

    def ended(self, said: list[dict[str, Any]]) -> Any:
        return next(line["ended"] for line in said if "ended" in line)

    def _is_going(self, key: RunKey) -> bool:
        over = [e for e in self.engine.poll() if e.ended and e.key == key]
        logs = [log.path.read_text() for log in self.engine.logs(self.job)] if over else []
        assert not over, f"{over} {logs}"
        return True

    def _of(self, what: str) -> list[dict[str, Any]]:
        return [line for line in self._said() if what in line]

    def _said(self) -> list[dict[str, Any]]:
        lines = self.told.read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]
