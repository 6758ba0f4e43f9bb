"""Pollux here against the published runs of the original, job by job on the same workloads."""

import json
from pathlib import Path

import numpy as np
import pytest

from boa.catalogue.traces import read_trace
from boa.policy.registry import Knobs, choose
from boa.sim.run import simulate, world_of
from boa.sim.settings import Settings

CLUSTER = {"T4": 16}


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 3])
def test_jcts_follow_the_published_run(shared_data: Path, number: int) -> None:
    pollux = shared_data / "pollux"
    published = json.loads((pollux / "results" / "pollux-load-1.0.json").read_text("utf-8"))
    theirs: dict[str, float] = published["jcts"][f"workload-{number}"]
    trace = read_trace(pollux / "workloads" / f"workload-{number}.csv")
    world = world_of(trace, pollux / "traces", ["T4"], slowdown="none")
    report = simulate(
        world,
        choose("pollux", Knobs(nodes=CLUSTER)),
        Settings(learning="job", cluster=CLUSTER),
        keep_jcts=True,
    )
    ours = report.tally.named
    assert ours is not None
    assert set(ours) == set(theirs) == {job.name for job in trace.jobs}
    assert report.average_jct == pytest.approx(np.mean(list(theirs.values())), rel=0.10)
    for application in trace.counts():
        names = [job.name for job in trace.jobs if job.application == application]
        means = [float(np.mean([jcts[name] for name in names])) for jcts in (ours, theirs)]
        assert means[0] == pytest.approx(means[1], rel=0.20), application
