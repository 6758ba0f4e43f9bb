"""The predicted size of the cluster, against the theory's moments and against simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boa
from boa.model import Amdahl, Epoch, GpuType, JobClass, Workload
from boa.model.workload import BILLINGS, Billing
from strategies import workloads


@given(workload=workloads(), factor=st.floats(1.0, 3.0), billing=st.sampled_from(BILLINGS))
def test_mean_gpus_times_price_is_the_spend(
    workload: Workload, factor: float, billing: Billing
) -> None:
    budget = boa.frontier(workload, billing=billing).cheapest * factor
    found = boa.plan(workload, budget, billing=billing)
    paid = sum(workload.gpu_types[name].price * size.mean for name, size in found.cluster.items())
    assert paid == pytest.approx(found.spend, rel=1e-9)


@given(workload=workloads(), factor=st.floats(1.0, 3.0))
def test_the_95th_percentile_lies_where_cantelli_allows(workload: Workload, factor: float) -> None:
    found = boa.plan(workload, boa.frontier(workload).cheapest * factor)
    for size in found.cluster.values():
        assert size.p95 <= size.mean + np.sqrt(0.95 / 0.05) * size.std + 1
        assert size.p95 >= size.mean - np.sqrt(0.05 / 0.95) * size.std - 1


def test_the_distribution_matches_a_simulated_stream_of_jobs() -> None:
    """Jobs of two widths arriving as a Poisson process, counted at independent moments."""
    epochs = (
        Epoch(work=3600.0, speedups={"T4": Amdahl(0.9)}),
        Epoch(work=1800.0, speedups={"T4": Amdahl(0.99)}),
    )
    job = JobClass(name="job", arrivals_per_hour=6.0, epochs=epochs, rescale_s=60.0, max_gpus=16)
    workload = Workload(gpu_types={"T4": GpuType(name="T4")}, classes=(job,))
    found = boa.plan(workload, 14.0, deterministic=True)
    (variant,) = found.plan.classes[0].variants
    rng = np.random.default_rng(7)
    samples = np.zeros(40_000)
    for first, end, _, width in variant.stretches():
        held = 60.0 + sum(e.work / e.speedups["T4"](width) for e in epochs[first:end])
        samples += width * rng.poisson(6.0 * held / 3600.0, len(samples))
    size = found.cluster["T4"]
    assert size.mean == pytest.approx(samples.mean(), rel=0.02)
    assert size.std == pytest.approx(samples.std(), rel=0.02)
    assert abs(size.p95 - np.percentile(samples, 95)) <= width
