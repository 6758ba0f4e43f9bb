"""A large training under the local engine goes from one run to the next through memory."""

import json
import sys
from pathlib import Path

import pytest

from boa.engines.local import LocalEngine
from boa.model.job import JobSpec
from boa.model.runs import Launch, NodeSlots, RunKey
from boa.train.checkpoints import newest_first
from boa.train.keeper import pointer
from boa.train.keeper.client import listens
from keeping import until

SCRIPT = """
import json, sys, torch
from boa.train.torch import Elastic, Stopped

run = Elastic(batch_size=4, save_every_s=1e9)
model = run.wrap(lambda: torch.nn.Linear(3000, 3000))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
batches = run.loader(torch.utils.data.TensorDataset(torch.randn(64, 3000)))
run.resume(model, optimizer)
def say(**what):
    if run.ranks.rank == 0:
        with open(sys.argv[1], "a") as file:
            file.write(json.dumps(what) + chr(10))
say(began=run.steps, world=run.ranks.world_size, total=float(model.weight.double().sum()))
try:
    for _ in run.epochs(10**6):
        for (x,) in batches:
            run.step(model(x).square().mean())
            if run.has_memory or sys.argv[2] == "disk":
                say(ready=run.steps)
except Stopped:
    say(ended=run.steps, total=float(model.weight.double().sum()))
    raise
"""


class Job:
    def __init__(self, tmp_path: Path, share: float) -> None:
        self.root, self.told = tmp_path, tmp_path / "told"
        self.home = tmp_path / "checkpoints"
        (tmp_path / "script.py").write_text(SCRIPT)
        self.engine = LocalEngine(tmp_path / "runs", log_bytes=10**6, memory_share=share)
        self.how = "memory" if share else "disk"
        self.attempt = 0

    def run(self, width: int) -> list[dict[str, float]]:
        """Start, wait until it is ready to be stopped, stop; gives what it said."""
        self.attempt += 1
        key = RunKey("job", self.attempt)
        self.told.write_text("")
        command = (sys.executable, str(self.root / "script.py"), str(self.told), self.how)
        spec = JobSpec(job_class="large", run=command)
        self.engine.start(
            Launch(
                key=key,
                spec=spec,
                gpu_type="here",
                slots=(NodeSlots(0, tuple(range(width))),),
                checkpoint_dir=str(self.home),
            )
        )
        until(lambda: self.engine.poll() is not None and self._ready())
        self.engine.stop(key, 120.0)
        until(lambda: any(e.ended and e.key == key for e in self.engine.poll()))
        self.engine.forget(key)
        return self._said()

    def _ready(self) -> bool:
        return any("ready" in said for said in self._said())

    def _said(self) -> list[dict[str, float]]:
        lines = self.told.read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    @property
    def keeper(self) -> Path:
        return self.root / "runs" / "job" / "keeper"


@pytest.mark.slow
def test_a_run_finds_in_memory_what_the_last_one_left(tmp_path: Path) -> None:
    job = Job(tmp_path, 0.2)
    try:
        before = job.run(1)[-1]
        assert pointer.newest(job.home) is not None  # not on the disk yet
        assert not newest_first(job.home)
        assert listens(job.keeper)
        said = job.run(2)
        assert said[0] == {"began": before["ended"], "world": 2, "total": before["total"]}
        again = job.run(1)[0]
        assert again["began"] == said[-1]["ended"]
        assert again["total"] == said[-1]["total"]
        until(lambda: newest_first(job.home))
    finally:
        job.engine.close()


@pytest.mark.slow
def test_without_a_share_of_memory_nobody_begins_a_keeper(tmp_path: Path) -> None:
    job = Job(tmp_path, 0.0)
    try:
        before = job.run(1)[-1]
        assert len(newest_first(job.home)) == 1
        assert not job.keeper.exists()
        assert job.run(1)[0]["total"] == before["total"]
    finally:
        job.engine.close()
