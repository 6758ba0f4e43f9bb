"""Reservation: what was asked for, first come, first served."""

from dataclasses import dataclass, replace

import numpy as np

from boa.model.cluster import Allocation, ClusterView, JobView, Node, Share, UserRequest
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.rivals.reservation import Reservation


@dataclass(frozen=True)
class Runs:
    """Runs at these widths of each type; nothing is known of types left out."""

    widths: dict[str, tuple[int, ...]]

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        if gpu not in self.widths:
            return None
        table = np.zeros((2, 65))
        table[:, list(self.widths[gpu])] = 1.0
        return table


ANYWHERE = Runs({"T4": tuple(range(1, 65)), "A100": tuple(range(1, 65))})


def job(name: str, gpus: int | None, arrival: float, prediction: Runs = ANYWHERE) -> JobView:
    asked = UserRequest(gpus)
    return JobView(
        id=name,
        job_class="any",
        arrival=arrival,
        serial=0,
        epoch=0,
        prediction=prediction,
        asked=asked,
    )


def view(*jobs: JobView, nodes: int = 0) -> ClusterView:
    return ClusterView(
        now=600.0,
        jobs=jobs,
        nodes=[Node(n, "T4", 4) for n in range(nodes)],
        gpu_types={name: GpuType(name=name, gpus_per_node=4) for name in ("T4", "A100")},
        next_node=nodes,
    )


def test_everybody_gets_what_was_asked_for_and_the_cluster_follows() -> None:
    decision = Reservation().decide(view(job("a", 3, 0.0), job("b", None, 1.0)))
    assert decision.nodes is None
    assert decision.shares == {"a": Share("T4", 3), "b": Share("T4", 1)}


def test_a_class_that_cannot_run_on_the_first_type_goes_to_the_next() -> None:
    elsewhere = Runs({"T4": (1, 2), "A100": (8,)})
    unknown = Runs({"A100": (8,)})
    nowhere = Runs({"T4": (1,), "A100": (1,)})
    decision = Reservation().decide(
        view(
            job("a", 8, 0.0, elsewhere),
            job("b", 8, 1.0, unknown),
            job("c", 8, 2.0, Runs({})),
            job("d", 8, 3.0, nowhere),
        )
    )
    assert {name: share.gpu for name, share in decision.shares.items()} == {
        "a": "A100",
        "b": "A100",
        "c": "T4",
    }


def test_on_a_fixed_cluster_nobody_overtakes() -> None:
    jobs = (job("a", 6, 0.0), job("b", 4, 1.0), job("c", 1, 2.0))
    decision = Reservation(fixed=True).decide(view(*jobs, nodes=2))
    assert set(decision.placements) == {"a"}
    assert decision.nodes == tuple(Node(n, "T4", 4) for n in range(2))


def test_running_jobs_are_never_moved() -> None:
    running = replace(job("a", 2, 0.0), allocation=Allocation("T4", ((1, 2),)))
    decision = Reservation(fixed=True).decide(view(running, job("b", 6, 1.0), nodes=2))
    assert decision.placements["a"] == running.allocation
    assert decision.placements["b"] == Allocation("T4", ((0, 4), (1, 2)))


def test_a_job_wider_than_the_cluster_does_not_block_the_others() -> None:
    decision = Reservation(fixed=True).decide(view(job("a", 9, 0.0), job("b", 4, 1.0), nodes=2))
    assert set(decision.placements) == {"b"}
