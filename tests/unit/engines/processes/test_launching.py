"""Which processes a launch is made of, and what they are told."""

import socket
from contextlib import suppress

import pytest

from boa.engines.launching import PORTS, ProcessPlan, free_port, plans
from boa.model.job import JobSpec, Launcher
from boa.model.runs import Launch, NodeSlots, RunKey


def planned(launcher: Launcher, *slots: tuple[int, ...], gpus: bool = True) -> list[ProcessPlan]:
    launch = Launch(
        key=RunKey("7", 2),
        spec=JobSpec(job_class="c", run=("train", "--fast"), launcher=launcher, env={"A": "b"}),
        gpu_type="A100",
        slots=tuple(NodeSlots(node, indexes) for node, indexes in enumerate(slots)),
        checkpoint_dir="/checkpoints/7",
        env={"BOA_SPEED": "60"},
    )
    return plans(launch, port=20_000, gpus=gpus)


def told(plan: ProcessPlan, *names: str) -> tuple[str | None, ...]:
    return tuple(plan["env"].get(name) for name in names)


RANKS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "BOA_WIDTH")


def test_workers_are_counted_over_all_nodes_and_within_each() -> None:
    found = planned("workers", (0, 1), (4,))
    assert [plan["rank"] for plan in found] == [0, 1, 2]
    assert [told(plan, *RANKS) for plan in found] == [
        ("0", "3", "0", "2", "3"),
        ("1", "3", "1", "2", "3"),
        ("2", "3", "0", "1", "3"),
    ]
    assert all(plan["argv"] == ["train", "--fast"] for plan in found)


def test_the_gpu_numbered_local_rank_is_a_workers_own() -> None:
    devices = [told(plan, "CUDA_VISIBLE_DEVICES") for plan in planned("workers", (3, 1), (4,))]
    assert devices == [("3,1",), ("3,1",), ("4",)]


def test_a_single_process_is_told_the_width_and_has_all_gpus() -> None:
    (plan,) = planned("single", (0, 1), (4,))
    assert told(plan, *RANKS) == ("0", "1", "0", "1", "3")
    assert told(plan, "CUDA_VISIBLE_DEVICES") == ("0,1,4",)


def test_a_gpu_of_two_nodes_that_are_one_machine_is_named_once() -> None:
    (plan,) = planned("single", (0, 1), (0,))
    assert told(plan, "CUDA_VISIBLE_DEVICES", "BOA_WIDTH") == ("0,1", "3")


def test_torchrun_starts_as_many_as_the_width_and_tells_them_their_ranks_itself() -> None:
    (plan,) = planned("torchrun", (0, 1), (4,))
    assert plan["argv"] == [
        "torchrun",
        "--nnodes=1",
        "--nproc-per-node=3",
        "--master-addr=127.0.0.1",
        "--master-port=20000",
        "--no-python",
        "--",
        "train",
        "--fast",
    ]
    assert told(plan, *RANKS) == (None, None, None, None, "3")
    assert told(plan, "CUDA_VISIBLE_DEVICES") == ("0,1,4",)


@pytest.mark.parametrize("launcher", ["workers", "single", "torchrun"])
def test_without_gpus_slots_are_only_counted(launcher: Launcher) -> None:
    for plan in planned(launcher, (0, 1), gpus=False):
        assert "CUDA_VISIBLE_DEVICES" not in plan["env"]


def test_a_run_without_gpus_is_refused() -> None:
    with pytest.raises(ValueError, match="no GPUs"):
        planned("workers", ())


def test_ports_are_free_and_not_given_twice_in_a_row() -> None:
    ports = [free_port() for _ in range(50)]
    assert len(set(ports)) == 50
    assert all(port in PORTS for port in ports)
    with socket.socket() as taken:
        following = PORTS[(PORTS.index(ports[-1]) + 1) % len(PORTS)]
        with suppress(OSError):  # somebody else has it already
            taken.bind(("", following))
        assert free_port() != following
