"""Against runs of the original Sia: first pure physics, then its policy."""

from pathlib import Path

import pytest

from boa.catalogue.traces import read_trace
from boa.policy.fixed import Fixed
from boa.policy.registry import Choice, Knobs, choose
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings
from boa.units import GpuName


def new_trace(shared_data: Path, *gpus: GpuName) -> World:
    sia = shared_data / "sia"
    trace = read_trace(sia / "workloads" / "newtrace" / "workload-1.csv")
    return world_of(trace, sia / "traces", gpus)


def test_every_job_on_eight_gpus_takes_as_long_as_in_the_original(shared_data: Path) -> None:
    """No policy at all: only step times, gains, batch sizes, epochs, rescaling and rounds."""
    world = new_trace(shared_data, "T4")
    report = simulate(world, Choice(policy=Fixed(8)), Settings(learning="job", interval_s=60.0))
    assert report.average_jct == pytest.approx(3_699, rel=0.03)
    assert report.gpu_hours == pytest.approx(7_829, rel=0.03)
    assert report.percentile(50) == pytest.approx(1_549, rel=0.03)
    assert report.percentile(95) == pytest.approx(4_271, rel=0.03)
    assert report.percentile(99) == pytest.approx(17_229, rel=0.03)
    assert report.document()["rescalings_per_job"] == 0


@pytest.mark.slow
def test_sia_on_three_gpu_types_is_as_fast_as_the_original(shared_data: Path) -> None:
    cluster = {"T4": 6, "A100": 2, "RTX2080Ti": 3}
    report = simulate(
        new_trace(shared_data, *cluster),
        choose("sia", Knobs(nodes=cluster)),
        Settings(learning="job", cluster=cluster),
    )
    assert len(report.tally.jcts) == report.jobs == 960
    assert report.average_jct == pytest.approx(2_884, rel=0.15)
    assert report.gpu_hours == pytest.approx(2_731, rel=0.15)
    assert report.percentile(50) == pytest.approx(1_232, rel=0.20)
    assert report.percentile(99) == pytest.approx(18_987, rel=0.20)
