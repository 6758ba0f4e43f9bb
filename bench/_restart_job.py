"""A small DDP training in plain torch, for bench/restart.py: writes down when it got how far.

Rank 0 writes MARKS.json: seconds of the Unix clock at which each part was over.
_restart_job.py MARKS_FOLDER: trains until SIGTERM, then saves and ends.
"""

import time

BEGAN = time.time()

import json  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

IMPORTED = time.time()
HIDDEN = 512


def main() -> None:
    marks = {"began": BEGAN, "imported": IMPORTED}
    stop: list[float] = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(time.time()))
    folder, checkpoint = Path(sys.argv[1]), Path(os.environ["BOA_CHECKPOINT_DIR"], "model.pt")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    marks["joined"] = time.time()
    model = DistributedDataParallel(
        torch.nn.Sequential(
            torch.nn.Linear(64, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 10)
        )
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    marks["built"] = time.time()
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    marks["loaded"] = time.time()
    _train(model, optimizer, rank)
    marks["stepped"] = time.time()
    if rank == 0:
        _write(folder / "started.json", marks)
    while _go_on(bool(stop)):
        _train(model, optimizer, rank)
    marks = {"told": stop[0] if stop else time.time(), "agreed": time.time()}
    if rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, f"{checkpoint}.new")
        os.rename(f"{checkpoint}.new", checkpoint)
        _write(folder / "stopped.json", {**marks, "saved": time.time()})
    dist.barrier()
    dist.destroy_process_group()
    print(f"rank {rank} of {world} has stopped")


def _train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, rank: int) -> None:
    inputs, labels = torch.randn(32, 64), torch.randint(10, (32,))
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()


def _go_on(stop: bool) -> bool:
    """Whether nobody was told to stop: the same answer for all."""
    time.sleep(0.002)
    flag = torch.tensor([float(stop)])
    dist.all_reduce(flag)
    return not flag.item()


def _write(path: Path, marks: dict[str, Any]) -> None:
    path.with_suffix(".new").write_text(json.dumps(marks))
    path.with_suffix(".new").rename(path)


if __name__ == "__main__":
    main()
