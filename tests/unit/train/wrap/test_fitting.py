"""Launchers get the job's width, and a port of its own."""

import pytest

from boa.train.wrap.fitting import fitted

IN_JOB = {"BOA_WIDTH": "4", "MASTER_PORT": "20001"}


@pytest.mark.parametrize(
    ("command", "fits"),
    [
        (
            "torchrun train.py --lr 1",
            "torchrun --nproc-per-node=4 --master-port=20001 train.py --lr 1",
        ),
        (
            "/opt/bin/torchrun --nnodes=1 --nproc_per_node 8 train.py",
            "/opt/bin/torchrun --nproc-per-node=4 --master-port=20001 --nnodes=1 train.py",
        ),
        (
            "torchrun --standalone --nproc-per-node=gpu train.py",
            "torchrun --nproc-per-node=4 --standalone train.py",
        ),
        ("torchrun --master_port 5 t.py", "torchrun --nproc-per-node=4 --master_port 5 t.py"),
        (
            "python3 -m torch.distributed.run train.py",
            "python3 -m torch.distributed.run --nproc-per-node=4 --master-port=20001 train.py",
        ),
        (
            "accelerate launch --num_processes=2 train.py",
            "accelerate launch --num_processes=4 --main_process_port=20001 train.py",
        ),
        ("deepspeed --num_gpus 8 t.py", "deepspeed --num_gpus=4 --master_port=20001 t.py"),
        ("python train.py --gpus={width}", "python train.py --gpus=4"),
        ("python -m mine --nproc-per-node 2", "python -m mine --nproc-per-node 2"),
        ("torchrun --nproc-per-node {width} --standalone t.py",) * 1
        + ("torchrun --nproc-per-node 4 --standalone t.py",),
    ],
)
def test_a_launcher_starts_as_many_processes_as_the_job_has_gpus(command: str, fits: str) -> None:
    assert " ".join(fitted(command.split(), IN_JOB)) == fits


def test_outside_of_a_job_a_command_is_as_it_was_written() -> None:
    command = ["torchrun", "--nproc-per-node=8", "train.py"]
    assert fitted(command, {"MASTER_PORT": "1"}) == command
