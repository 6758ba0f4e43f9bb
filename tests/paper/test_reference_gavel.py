"""Against Sia's published figures of Gavel: ten draws from Helios' Saturn cluster."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boa.catalogue.traces import read_trace
from boa.model.trace import Trace
from boa.policy.registry import Knobs
from boa.sim.run import world_of
from boa.sim.sweep import Asked, run_one

CLUSTER = {"T4": 6, "A100": 2, "RTX2080Ti": 3}


@pytest.mark.slow
def test_gavel_is_as_fast_as_sias_authors_had_it(shared_data: Path) -> None:
    """Their solver treated equal jobs equally. A vertex of the same program is 28 % faster, and it
    is the one that we take as a rival."""
    sia = shared_data / "sia"
    figures: dict[bool, list[tuple[float, float, float]]] = {True: [], False: []}
    traces = [read_trace(sia / "workloads" / "saturn" / f"workload-{n}.csv") for n in range(1, 11)]
    jobs = tuple(job for trace in traces for job in trace.jobs)
    known = world_of(Trace(jobs), sia / "traces", [*CLUSTER])  # profiles are worked out but once
    for trace in traces:
        for symmetric, found in figures.items():
            knobs = Knobs(nodes=CLUSTER, symmetric=symmetric)
            report = run_one(replace(known, trace=trace), "gavel", knobs, Asked())
            assert len(report.tally.jcts) == report.jobs == 160
            restarts = report.document()["rescalings_per_job"]
            found.append((report.average_jct / 3600, restarts, report.tally.last_end / 3600))
    jct, restarts, makespan = np.mean(figures[True], axis=0)
    assert jct == pytest.approx(2.548, rel=0.03)
    assert restarts == pytest.approx(7.408, rel=0.03)
    assert makespan == pytest.approx(43.25, rel=0.03)
    vertex, fewer, _ = np.mean(figures[False], axis=0)
    assert vertex < 0.75 * jct
    assert fewer < 0.5 * restarts
