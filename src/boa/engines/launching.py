"""Which processes a run is made of, and what each of them sees."""

import itertools
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NotRequired, TypeAlias, TypedDict

from boa.engines.passing import OF_TORCHRUN
from boa.engines.processes import run_files

if TYPE_CHECKING:  # or every rank on a Ray node would import all that a job consists of
    from boa.model.runs import Launch

PORTS = range(20_000, 32_000)
"""For MASTER_PORT: below those that systems hand out to outgoing connections, so that a port that
is free when it is chosen is still free when, seconds later, the first worker listens on it."""
_BY_DEFAULT = {
    "PYTHONUNBUFFERED": "1"  # or what a job prints would show only when it ends
}
HERE = "127.0.0.1"
Address: TypeAlias = tuple[str, int]
_ports = itertools.count(os.getpid() * 101)


class ProcessPlan(TypedDict):
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


def shared(launch: "Launch", inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment that workers of all runs of such jobs see: the one a warm parent may see.
    `inherited`: what passes of the service's own (`passing`)."""
    return {**inherited, **_BY_DEFAULT, **launch.spec.env}


def plans(
    launch: "Launch",
    *,
    port: int,
    gpus: bool,
    master: str = HERE,
    devices: Sequence[Sequence[str]] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> list[ProcessPlan]:
    """Beside what passes (`passing`): these variables and no others.

    `devices`: the nodes are machines of their own, `master` is the first, and these are the names
    of the GPUs on each. None: all nodes are this machine, and its GPUs have the slots' numbers.
    `environment`: what workers see already.
    """
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
        "BOA_DONE": os.path.join(launch.checkpoint_dir, f"{run_files.DONE_SIGN}{key.attempt}"),
        "BOA_EPOCHS": str(spec.epochs),
        "BOA_GRACE_S": f"{spec.grace_s:g}",
        **({"BOA_ARTIFACTS": launch.artifacts} if launch.artifacts else {}),
        **launch.env,
    }
    names = _names(launch) if devices is None else devices
    # each once, or CUDA sees none: nodes that are one machine may name the same GPU
    machines = [list(dict.fromkeys(itertools.chain(*names)))] if devices is None else names
    if spec.launcher == "torchrun":
        widths = [launch.width] if devices is None else [len(node.gpus) for node in launch.slots]
        return list(_agents(launch, common, widths, (master, port), machines if gpus else None))
    if spec.launcher == "single":
        env = common | _ranks(0, 1, 0, 1, (master, port)) | _devices(machines[0], gpus)
        return [ProcessPlan(rank=0, argv=list(spec.run), env=env, code_when_stopped=0)]
    if launch.width > 1 and "OMP_NUM_THREADS" not in environment:
        common = {"OMP_NUM_THREADS": "1", **common}  # as torchrun does: they share the cores
    return list(_workers(launch, common, (master, port), names if gpus else None))


def _workers(
    launch: "Launch", common: dict[str, str], master: Address, gpus: Sequence[Sequence[str]] | None
) -> Iterator[ProcessPlan]:
    rank = itertools.count()
    for index, node in enumerate(launch.slots):
        for local_rank in range(len(node.gpus)):
            number = next(rank)
            ranks = _ranks(number, launch.width, local_rank, len(node.gpus), master)
            # all of the node's, as torchrun has it: device LOCAL_RANK is the worker's own
            env = common | ranks | _devices(gpus[index] if gpus else (), bool(gpus))
            argv = list(launch.spec.run)
            yield ProcessPlan(rank=number, argv=argv, env=env, code_when_stopped=0)


def _agents(
    launch: "Launch",
    common: dict[str, str],
    widths: Sequence[int],
    master: Address,
    gpus: Sequence[Sequence[str]] | None,
) -> Iterator[ProcessPlan]:
    """One torchrun to a machine; its number is that of its first worker."""
    for index, width in enumerate(widths):
        argv = [*_torchrun(index, len(widths), width, master), *launch.spec.run]
        env = common | _devices(gpus[index] if gpus else (), bool(gpus))
        yield ProcessPlan(rank=sum(widths[:index]), argv=argv, env=env, code_when_stopped=1)


def _ranks(
    rank: int, world: int, local_rank: int, local_world: int, master: Address
) -> dict[str, str]:
    values = (rank, world, local_rank, local_world, *master)
    return dict(zip(OF_TORCHRUN, map(str, values), strict=True))


def _torchrun(index: int, machines: int, width: int, master: Address) -> list[str]:
    return [
        "torchrun",
        f"--nnodes={machines}",
        *([f"--node-rank={index}"] if machines > 1 else []),
        f"--nproc-per-node={width}",
        f"--master-addr={master[0]}",
        f"--master-port={master[1]}",
        "--no-python",
        "--",  # or torchrun takes options of the command that look like its own
    ]


def _names(launch: "Launch") -> list[list[str]]:
    return [list(map(str, node.gpus)) for node in launch.slots]


def _devices(names: Iterable[str], gpus: bool) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": ",".join(names)} if gpus else {}
