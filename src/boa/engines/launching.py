"""Which processes a run is made of on this machine, and what each of them sees."""

import itertools
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from typing import NotRequired, TypedDict

from boa.engines.base import Launch

PORTS = range(20_000, 32_000)
"""For MASTER_PORT: below those that systems hand out to outgoing connections, so that a port that
is free when it is chosen is still free when, seconds later, the first worker listens on it."""
_OF_TORCHRUN = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
)
_BY_DEFAULT = {
    "PYTHONUNBUFFERED": "1"  # or what a job prints would show only when it ends
}
_ports = itertools.count(os.getpid() * 101)


class Plan(TypedDict):
    """One process; of plain types, as the supervisor reads it back."""

    rank: int
    argv: list[str]
    env: dict[str, str]
    code_when_stopped: int
    """With what it ends after SIGTERM if all went well."""
    script: NotRequired[list[str]]
    """Python's arguments, where the command is a script that a warm parent can fork."""


def has_gpus() -> bool:
    return os.path.exists("/proc/driver/nvidia") or shutil.which("nvidia-smi") is not None


def free_port() -> int:
    """Not the same twice in a row of 12,000, so that two runs never meet on one."""
    for _ in PORTS:
        port = PORTS[next(_ports) % len(PORTS)]
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise OSError(f"no port is free from {PORTS.start} to {PORTS.stop - 1}")


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """What workers see of the service's own environment: not its token, nor another job's rank."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("BOA_") and name not in _OF_TORCHRUN
    }


def shared(launch: Launch, environment: Mapping[str, str]) -> dict[str, str]:
    """What workers of all runs of such jobs see: what a warm parent may see."""
    return {**inherited(environment), **_BY_DEFAULT, **launch.spec.env}


def plans(launch: Launch, *, port: int, gpus: bool) -> list[Plan]:
    """Beside what `inherited` leaves: these variables and no others."""
    spec, key = launch.spec, launch.key
    if not launch.width:
        raise ValueError(f"run {key} has no GPUs")  # it would be done before it began
    common = {
        **_BY_DEFAULT,
        **spec.env,
        "BOA_JOB_ID": key.job,
        "BOA_CLASS": spec.job_class,
        "BOA_WIDTH": str(launch.width),
        "BOA_GPU_TYPE": launch.gpu_type,
        "BOA_ATTEMPT": str(key.attempt),
        "BOA_CHECKPOINT_DIR": launch.checkpoint_dir,
        "BOA_EPOCHS": str(spec.epochs),
        **launch.env,
    }
    # each once, or CUDA sees none: nodes that are one machine may name the same GPU
    everything = list(dict.fromkeys(index for node in launch.slots for index in node.gpus))
    if spec.launcher == "torchrun":
        argv = [*_torchrun(launch.width, port), *spec.run]
        env = common | _devices(everything, gpus)
        return [Plan(rank=0, argv=argv, env=env, code_when_stopped=1)]
    if spec.launcher == "single":
        env = common | _ranks(0, 1, 0, 1, port) | _devices(everything, gpus)
        return [Plan(rank=0, argv=list(spec.run), env=env, code_when_stopped=0)]
    return list(_workers(launch, common, port, gpus))


def _workers(launch: Launch, common: dict[str, str], port: int, gpus: bool) -> Iterator[Plan]:
    rank = itertools.count()
    if launch.width > 1 and "OMP_NUM_THREADS" not in os.environ:
        common = {"OMP_NUM_THREADS": "1", **common}  # as torchrun does: they share the cores
    for node in launch.slots:
        for local_rank in range(len(node.gpus)):
            number = next(rank)
            ranks = _ranks(number, launch.width, local_rank, len(node.gpus), port)
            # all of the node's, as torchrun has it: device LOCAL_RANK is the worker's own
            env = common | ranks | _devices(node.gpus, gpus)
            argv = list(launch.spec.run)
            yield Plan(rank=number, argv=argv, env=env, code_when_stopped=0)


def _ranks(rank: int, world: int, local_rank: int, local_world: int, port: int) -> dict[str, str]:
    values = (rank, world, local_rank, local_world, "127.0.0.1", port)
    return dict(zip(_OF_TORCHRUN, map(str, values), strict=True))


def _torchrun(width: int, port: int) -> list[str]:
    """One agent for all workers, also of several nodes: here they are one machine."""
    return [
        "torchrun",
        "--nnodes=1",
        f"--nproc-per-node={width}",
        "--master-addr=127.0.0.1",
        f"--master-port={port}",
        "--no-python",
        "--",  # or torchrun takes options of the command that look like its own
    ]


def _devices(indexes: list[int] | tuple[int, ...], gpus: bool) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, indexes))} if gpus else {}
