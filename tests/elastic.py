"""Elastic trainings on real processes: forked from one that has imported torch, joined by Gloo."""

import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from ports import held_port

DEADLINE_S = 600.0
PRELOADED = (
    *("boa.train.torch", "torch.optim", "torch.optim.swa_utils", "torch.utils.data"),
    *("torch.distributed.fsdp", "torch.distributed.checkpoint.state_dict", "torch.nn.parallel"),
    *("torchdata.stateful_dataloader", "torch._dynamo", "torch.utils.serialization", "pytest"),
)
"""Modules that every rank needs, the first optimiser's among them: imported once, in the process
that all are forked from. That one does not see this folder."""
_forks = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Attempt:
    """One start of a job: at what width, and how it is interrupted."""

    width: int
    steps: int | None = None
    """After how many steps `rank` gets `signal`; None: never."""
    rank: int = 0
    signal: int = signal.SIGTERM
    keepers: tuple[Path, ...] = ()
    """One to a node. Ranks are dealt out over the nodes, each attempt from the next one on."""


@dataclass
class Ended:
    codes: list[int]
    told: list[dict[str, Any]] = field(default_factory=list)
    """What each rank gave back; nothing of those that did not get to the end."""


def play(
    job: Callable[..., dict[str, Any]],
    home: Path,
    attempts: Sequence[Attempt],
    **given: Any,
) -> list[Ended]:
    """The attempts one after the other, all on the same checkpoint folder."""
    _forks.set_forkserver_preload(list(PRELOADED))
    return [_attempt(job, home, number, at, given) for number, at in enumerate(attempts, 1)]


def _attempt(
    job: Callable[..., dict[str, Any]],
    home: Path,
    number: int,
    at: Attempt,
    given: Mapping[str, Any],
) -> Ended:
    results = [home / f"result-{number}-{rank}" for rank in range(at.width)]
    home.mkdir(exist_ok=True)
    with held_port() as port:
        processes = []
        for rank in range(at.width):
            environment = {
                "OMP_NUM_THREADS": "1",
                "RANK": str(rank),
                "WORLD_SIZE": str(at.width),
                "LOCAL_RANK": str(rank),
                "LOCAL_WORLD_SIZE": str(at.width),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "BOA_JOB_ID": "1",
                "BOA_WIDTH": str(at.width),
                "BOA_ATTEMPT": str(number),
                "BOA_CHECKPOINT_DIR": str(home / "checkpoints"),
            }
            if at.keepers:
                environment["BOA_KEEPER"] = str(at.keepers[(rank + number) % len(at.keepers)])
            arguments = (job, environment, at, results[rank], dict(given))
            processes.append(_forks.Process(target=_rank, args=arguments))
        for process in processes:
            process.start()
        _wait(processes)
    told = [pickle.loads(path.read_bytes()) for path in results if path.exists()]
    return Ended([process.exitcode or 0 for process in processes], told)


def _wait(processes: Sequence[ForkServerProcess]) -> None:
    """Until all have ended; once one has failed, the others are killed, as the engine does."""
    deadline = time.monotonic() + DEADLINE_S
    while any(process.is_alive() for process in processes):
        multiprocessing.connection.wait(
            [process.sentinel for process in processes if process.is_alive()], timeout=1.0
        )
        late = time.monotonic() > deadline
        if late or any(process.exitcode for process in processes):
            for process in processes:
                process.kill()
        assert not late, f"not within {DEADLINE_S:g} s"


def _rank(
    job: Callable[..., dict[str, Any]],
    environment: Mapping[str, str],
    at: Attempt,
    result: Path,
    given: Mapping[str, Any],
) -> None:
    os.environ.update(environment)
    import torch

    torch.set_num_threads(1)

    def interrupt(steps_done: int) -> None:
        if steps_done == at.steps and int(environment["RANK"]) == at.rank:
            os.kill(os.getpid(), at.signal)

    try:
        result.write_bytes(pickle.dumps(job(interrupt, **given)))
    except Exception:
        sys.excepthook(*sys.exc_info())  # as at the end of a script
        raise SystemExit(1) from None
