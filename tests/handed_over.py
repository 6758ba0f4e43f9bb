"""A job of the local engine whose state goes from run to run through memory, held at gates.

`python handed_over.py ROOT WRITERS JOB ATTEMPT` is a service that does nothing but one run of it.
"""

import json
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from boa.engines import keepers
from boa.engines.local import LocalEngine
from boa.model.job import JobSpec
from boa.model.runs import Launch, NodeSlots, RunKey
from boa.train import checkpoints
from boa.train.keeper import messages, pointer
from boa.train.keeper.client import listens
from boa.train.keeper.process import SOCKET
from gates import Gates
from keeping import until

WIDTH = 2
GRACE_S = 600.0
LOOK_S = 0.05
MOST_BYTES = 24 << 20
"""Memory for all ranks of this job, and not for more."""
HASTY = "sys.path.append(sys.argv[2]); import process; process.BREATH_S = 0.0; "
BEGIN = keepers.BEGIN.replace("import keeper_beginning", f"{HASTY}import keeper_beginning")
assert HASTY in BEGIN
SCRIPT = """
import json, os, sys, time, torch
from pathlib import Path
root, writers, durable = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "durable"
if durable:
    os.environ.pop("BOA_KEEPER", None)
import gates
from boa.train.torch import Elastic, Stopped
from boa.train.torch.memory import handing
handing.LEAST_BYTES, handing.AGAIN_S = 0, 0.05
gates.stand_in_rank(root / "gates", writers)
run = Elastic(batch_size=4, save_every_s=1e9)
model = run.wrap(lambda: torch.nn.Linear(300, 1000))  # each rank has something of it to leave
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
batches = run.loader(torch.utils.data.TensorDataset(torch.randn(64, 300)))
run.resume(model, optimizer)
def total():
    moments = [s["exp_avg"].double().sum() for s in optimizer.state.values()]
    return float(model.weight.double().sum() + sum(moments, torch.zeros(())))
def say(what, step):
    line = json.dumps({"what": what, "step": step, "total": total()})
    with open(root / f"{os.environ['BOA_ATTEMPT']}-{run.ranks.rank}.said", "a") as file:
        file.write(line + chr(10))
say("began", run.steps)
ready = False
try:
    for _ in run.epochs(10**6):
        for (x,) in batches:
            run.step(model(x).square().mean())
            if (durable or run.has_memory) and not ready:
                ready = True
                say("ready", run.steps)
            time.sleep(0.05)  # others have something to do
except Stopped:
    say("ended", run.steps)
    raise
"""


class Service:
    """An engine, and the folder of its runs."""

    def __init__(self, root: Path, writers: str) -> None:
        """`writers`: of forked_writers.py."""
        keepers.BEGIN = BEGIN  # nobody takes a breath
        self.root, self._writers = root, writers
        self.engine = LocalEngine(root / "runs", log_bytes=10**6, memory_share=0.2)

    def start(self, job: str, attempt: int) -> RunKey:
        key, folder = RunKey(job, attempt), self.root / job
        (folder / "gates").mkdir(parents=True, exist_ok=True)
        (folder / "script.py").write_text(SCRIPT)
        told = self._writers, "durable" if attempt == 1 else "memory"
        self.engine.start(
            Launch(
                key=key,
                spec=JobSpec(
                    job_class="large",
                    run=(sys.executable, str(folder / "script.py"), str(folder), *told),
                    env={"PYTHONPATH": _paths(), "OMP_NUM_THREADS": "1"},
                    preload=("boa.train.torch", "torch._dynamo", "gates"),
                ),
                gpu_type="here",
                slots=(NodeSlots(0, tuple(range(WIDTH))),),
                checkpoint_dir=str(folder / "checkpoints"),
            )
        )
        return key

    def end(self, key: RunKey) -> int | None:
        """Wait for it; gives its exit code."""
        codes: list[int | None] = []

        def ended() -> bool:
            codes.extend(e.exit_code for e in self.engine.poll() if e.ended and e.key == key)
            return bool(codes)

        until(ended)
        self.engine.forget(key)
        return codes[0]

    def close(self) -> None:
        """Leave nothing running, whatever a test has left."""
        for key in self.engine.runs():
            self.engine.stop(key, 0.0)
        for key in self.engine.runs():
            self.end(key)
        self.engine.close()
        for pid in mentioning(str(self.root)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def supervisor(self, key: RunKey) -> int:
        folder = self.root / "runs" / key.job / str(key.attempt)
        name = next(name for name in os.listdir(folder) if name.startswith("up."))
        return int(name.split(".")[1])


class Job:
    """One job, attempt after attempt, with whatever service there is."""

    def __init__(self, root: Path, name: str) -> None:
        self.name, self.folder = name, root / name
        self.home = self.folder / "checkpoints"
        self.keeper = root / "runs" / name / "keeper"
        self.ledger = root / "runs" / ".memory"
        self.attempt = 0

    def start(self, service: Service) -> RunKey:
        self.attempt += 1
        return service.start(self.name, self.attempt)

    def said(self, what: str, rank: int = 0, attempt: int = 0) -> dict[str, Any] | None:
        path = self.folder / f"{attempt or self.attempt}-{rank}.said"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return next((line for line in found if line["what"] == what), None)

    def until_said(self, service: Service, what: str) -> dict[str, Any]:
        """By all ranks; gives rank 0's."""
        until(
            lambda: (
                service.engine.poll() is not None
                and all(self.said(what, rank) for rank in range(WIDTH))
            )
        )
        found = self.said(what)
        assert found is not None
        return found

    def whole(self, service: Service) -> dict[str, Any]:
        """Start a run, stop it when it is ready, and see it end well; gives its last words."""
        key = self.start(service)
        self.until_said(service, "ready")
        service.engine.stop(key, GRACE_S)
        assert service.end(key) == 0
        found = self.said("ended")
        assert found is not None
        return found

    def held_at(self, service: Service, point: str) -> RunKey:
        """Start a run, and have it held at this point of leaving its state."""
        gates = Gates(self.folder / "gates")
        if point == "reserving":
            gates.shut(point)
        key = self.start(service)
        if point != "reserving":
            self.until_said(service, "ready")
            gates.shut(point)
            service.engine.stop(key, GRACE_S)
        until(lambda: service.engine.poll() is not None and gates.is_held(point))
        return key

    def is_ready(self) -> bool:
        return all(self.said("ready", rank) for rank in range(WIDTH))

    def left(self) -> int | None:
        """The step of the state in memory that counts."""
        found = pointer.newest(self.home)
        return None if found is None else found.manifest.progress.step

    def keeper_pid(self) -> int:
        connection = messages.connect(self.keeper / SOCKET)
        with connection:
            messages.send(connection, {"ask": "where"})
            heard = messages.receive(connection)
        assert heard is not None
        return int(heard[0]["pid"])

    def held_bytes(self) -> int:
        pid = self.keeper_pid()
        return int((self.ledger / f"{pid}.bytes").read_text())

    def checkpoints(self) -> list[int]:
        """Steps of all that can be seen, the newest first; each of them is whole."""
        seen = list(self.home.glob("checkpoint-*"))
        whole = checkpoints.newest_first(self.home)
        assert all(path in whole or not path.exists() for path in seen)  # one may just have gone
        found = [checkpoints.progress_at(path) for path in whole]
        return [progress.step for progress in found if progress is not None]

    def hidden(self) -> list[Path]:
        return list(self.home.glob(".boa-*"))

    def end_keeper(self) -> None:
        if listens(self.keeper):
            os.kill(self.keeper_pid(), signal.SIGTERM)
        until(lambda: not mentioning(str(self.keeper)))


def mentioning(text: str) -> list[int]:
    """Processes with that on their command lines."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if text in _words(pid)]


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:  # it has ended
        return ""


@contextmanager
def service_of_one_run(
    job: Job, root: Path, writers: str
) -> Iterator[tuple["Popen[str]", Callable[[], None]]]:
    """A process that does the next run of the job and nothing else; and how to have it stopped."""
    job.attempt += 1
    words = [sys.executable, __file__, str(root), writers, job.name, str(job.attempt)]
    env = {**os.environ, "PYTHONPATH": _paths()}
    with Popen(words, stdin=PIPE, text=True, env=env) as process:
        assert process.stdin is not None
        told = process.stdin

        def stop() -> None:
            told.write("stop\n")
            told.flush()

        try:
            yield process, stop
        finally:
            process.kill()


def goes_on(job: Job, service: Service, *steps: int) -> None:
    """The next run begins with one of these states, to the bit; then all is as if nobody had been
    killed: its own state gets to the disk, and no memory, file or process is left of what was."""
    durable = max(job.checkpoints(), default=0)
    key = job.start(service)
    began = job.until_said(service, "began")
    assert began["step"] in steps
    assert began["step"] >= durable
    words = [job.said("ended", attempt=attempt) for attempt in range(1, job.attempt)]
    earlier = [said for said in words if said is not None and said["step"] == began["step"]]
    assert [said["total"] for said in earlier] == [began["total"]] * len(earlier)
    job.until_said(service, "ready")
    assert job.held_bytes() <= MOST_BYTES
    service.engine.stop(key, GRACE_S)
    assert service.end(key) == 0
    last = job.said("ended")
    assert last is not None
    until(lambda: job.checkpoints()[:1] == [last["step"]])
    until(lambda: pointer.generation_at(job.home) == "")
    until(lambda: not job.hidden())
    job.end_keeper()


def _paths() -> str:
    """Without an empty part: that is the folder of the job, and no two would share a parent."""
    return ":".join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))


def main() -> None:
    root, writers, job, attempt = sys.argv[1:]
    service = Service(Path(root), writers)
    key = service.start(job, int(attempt))
    asked = True
    while asked:  # or whoever began it is gone
        service.engine.poll()
        if select.select([sys.stdin], [], [], LOOK_S)[0]:
            asked = bool(sys.stdin.readline())
            service.engine.stop(key, GRACE_S)


if __name__ == "__main__":
    main()
