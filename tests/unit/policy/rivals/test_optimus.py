"""Optimus: the next GPU to whoever saves most time by it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import Allocation, ClusterView, JobView, Node
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.rivals.optimus import Optimus, rest_by_width, shared_out


class Amdahl:
    """Speeds up by Amdahl's law, to so many GPUs."""

    def __init__(self, parallel: float, widest: int = 8) -> None:
        widths = np.arange(1, widest + 1)
        self.speeds = np.concatenate([[0.0], 1.0 / (1 - parallel + parallel / widths)])

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return np.stack([self.speeds, self.speeds])


def job(
    name: str, work: list[float], parallel: float = 0.9, held: Allocation | None = None
) -> JobView:
    return JobView(
        id=name,
        job_class="any",
        arrival=0.0,
        serial=0,
        epoch=0,
        work=work,
        prediction=Amdahl(parallel),
        allocation=held,
    )


def widths(*jobs: JobView, nodes: int = 2) -> dict[str, int]:
    view = ClusterView(
        now=0.0,
        jobs=jobs,
        nodes=[Node(n, "T4", 4) for n in range(nodes)],
        gpu_types={"T4": GpuType(name="T4", gpus_per_node=4)},
    )
    placed = Optimus().decide(view).placements
    return {name: allocation.width for name, allocation in placed.items()}


def test_everybody_gets_one_gpu_before_anybody_gets_two() -> None:
    jobs = [job(f"{n}", [1.0, 10.0 ** (9 - n)]) for n in range(9)]
    assert widths(*jobs) == {f"{n}": 1 for n in range(8)}


def test_the_longer_rest_gets_more() -> None:
    found = widths(job("long", [1.0, 900.0]), job("short", [1.0, 100.0]))
    assert found["long"] > found["short"]
    assert sum(found.values()) == 8


def test_the_epoch_that_a_job_is_in_counts_for_nothing_and_the_last_for_one_iteration() -> None:
    assert rest_by_width(job("a", [5.0, 7.0]), "T4", 4)[0] == 7.0
    assert rest_by_width(job("a", [5.0]), "T4", 4)[0] == 1.0


def test_nobody_gets_more_than_it_can_use() -> None:
    assert widths(job("a", [1.0, 1.0]), nodes=4) == {"a": 8}
    assert widths(job("a", [1.0, 1.0], parallel=0.0)) == {"a": 1}


def test_who_keeps_a_width_keeps_the_gpus() -> None:
    held = Allocation("T4", ((1, 4),))
    jobs = [job("a", [1.0, 100.0], held=held), job("b", [1.0, 100.0])]
    view = ClusterView(
        now=0.0,
        jobs=jobs,
        nodes=[Node(n, "T4", 4) for n in range(2)],
        gpu_types={"T4": GpuType(name="T4", gpus_per_node=4)},
    )
    placed = Optimus().decide(view).placements
    assert placed == {"a": held, "b": Allocation("T4", ((0, 4),))}


@given(
    rests=st.lists(st.tuples(st.floats(1, 1e6), st.floats(0, 1)), min_size=1, max_size=4),
    gpus=st.integers(1, 10),
)
def test_no_other_sharing_out_is_shorter_in_sum(
    rests: list[tuple[float, float]], gpus: int
) -> None:
    """The greedy rule is exact where gains fall, as they do by Amdahl's law."""
    curves = {str(n): work / Amdahl(share).speeds[1:] for n, (work, share) in enumerate(rests)}
    if gpus < len(curves):
        assert sum(shared_out(curves, gpus).values()) == gpus
        return
    found = shared_out(curves, gpus)
    assert sum(found.values()) <= gpus

    def best(names: list[str], left: int) -> float:
        if not names:
            return 0.0
        curve, after = curves[names[0]], len(names) - 1
        most = min(len(curve), left - after)
        return min(float(curve[k - 1]) + best(names[1:], left - k) for k in range(1, most + 1))

    reached = sum(float(curves[name][width - 1]) for name, width in found.items())
    assert reached <= best(list(curves), gpus) * (1 + 1e-9)
