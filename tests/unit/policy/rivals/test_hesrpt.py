"""heSRPT: shares of a fixed pool by remaining size."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import ClusterView, JobView, Node
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.rivals.hesrpt import HeSrpt, exponent, fractions, shared, whole_gpus
from boa.policy.rivals.outlook import Outlooks

T4 = {"T4": GpuType(name="T4", gpus_per_node=4)}


class Power:
    """Speeds up as kᵖ."""

    def __init__(self, p: float, widest: int = 16) -> None:
        self.p, self.widest = p, widest

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return np.tile(np.concatenate([[0.0], np.arange(1.0, self.widest + 1) ** self.p]), (2, 1))


def job(name: str, size: float, p: float = 0.5, widest: int = 16) -> JobView:
    return JobView(
        id=name,
        job_class="any",
        arrival=0.0,
        serial=0,
        epoch=0,
        work=(size,),
        prediction=Power(p, widest),
    )


def widths(*jobs: JobView, nodes: int = 4) -> dict[str, int]:
    there = [Node(n, "T4", 4) for n in range(nodes)]
    view = ClusterView(now=0.0, jobs=jobs, nodes=there, gpu_types=T4)
    return {name: held.width for name, held in HeSrpt().decide(view).placements.items()}


@given(p=st.floats(0.05, 0.95), n=st.integers(2, 12))
def test_shares_are_the_formula_and_the_smallest_job_has_the_largest(p: float, n: int) -> None:
    found, power = fractions([p] * n), 1 / (1 - p)
    assert found.sum() == pytest.approx(1.0)
    assert found[0] == pytest.approx((1 / n) ** power)
    assert (np.diff(found) > -1e-12).all()


@given(p=st.floats(0.05, 0.95), sizes=st.tuples(st.floats(1, 100), st.floats(1, 100)))
def test_of_two_jobs_no_other_split_is_better(p: float, sizes: tuple[float, float]) -> None:
    """Total time of two jobs that share the pool until the smaller one ends, by trying all."""
    large, small = max(sizes), min(sizes)

    def total(part: float) -> float:
        """`part`: what the small job has until it ends; it has to be the first to end."""
        first = small / part**p
        done = first * (1 - part) ** p
        return 2 * first + (large - done) if done <= large else np.inf

    best = min(total(part) for part in np.linspace(0.001, 0.999, 999))
    assert total(float(fractions([p, p])[1])) <= best * (1 + 1e-3)


@given(p=st.floats(0.05, 0.95))
def test_the_exponent_is_found_again(p: float) -> None:
    one = job("a", 1.0, p)
    seen = Outlooks(T4).of(one)
    assert seen is not None
    assert exponent(one, seen) == pytest.approx(p)


@given(
    parts=st.lists(st.floats(0.001, 1.0), min_size=1, max_size=8),
    most=st.lists(st.integers(1, 16), min_size=8, max_size=8),
    gpus=st.integers(0, 64),
)
def test_gpus_are_given_out_whole_and_none_is_left_that_somebody_could_use(
    parts: list[float], most: list[int], gpus: int
) -> None:
    limit = np.array(most[: len(parts)])
    found = whole_gpus(np.array(parts), limit, gpus)
    assert (found <= limit).all()
    assert found.sum() == min(gpus, limit.sum())


def test_the_smaller_job_has_more_gpus() -> None:
    found = widths(job("large", 100.0), job("small", 10.0))
    assert found["small"] > found["large"]
    assert sum(found.values()) == 16


def test_where_jobs_outnumber_gpus_the_smallest_run() -> None:
    found = widths(*(job(f"{n}", 10.0 + n, p=0.9) for n in range(20)), nodes=1)
    assert sum(found.values()) == 4
    assert "0" in found


class Wide(Power):
    """Runs on four GPUs or more."""

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        found = super().rates(gpu, epoch)
        assert found is not None
        found[:, :4] = 0.0
        return found


def test_who_cannot_run_on_its_share_waits_and_the_others_share_again() -> None:
    jobs = [replace(job(str(n), 1000.0 - n), prediction=Wide(0.5)) for n in range(4)]
    outlooks = Outlooks(T4)
    found = shared([(one, seen) for one in jobs if (seen := outlooks.of(one)) is not None], 8)
    assert found
    assert all(width >= 4 for _, width in found)
    assert found[-1][0] is jobs[-1], "the smallest is among them"
