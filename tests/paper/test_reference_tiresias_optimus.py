"""Tiresias and Optimus against the published runs of Pollux's authors, job by job."""

import json
from pathlib import Path

import numpy as np
import pytest

from boa.catalogue.traces import read_trace
from boa.policy.registry import Knobs
from boa.sim.run import world_of
from boa.sim.sweep import Asked, run_one

CLUSTER = {"T4": 16}


def both(shared_data: Path, policy: str, number: int) -> tuple[dict[str, float], dict[str, float]]:
    """JCTs of every job: ours and theirs."""
    pollux = shared_data / "pollux"
    published = json.loads((pollux / "results" / f"{policy}-load-1.0.json").read_text("utf-8"))
    theirs: dict[str, float] = published["jcts"][f"workload-{number}"]
    trace = read_trace(pollux / "workloads" / f"workload-{number}.csv")
    world = world_of(trace, pollux / "traces", ["T4"], slowdown="none", rescale=30.0)
    report = run_one(world, policy, Knobs(nodes=CLUSTER), Asked(), keep_jcts=True)
    ours = report.tally.named
    assert ours is not None
    assert set(ours) == set(theirs) == {job.name for job in trace.jobs}
    return ours, theirs


@pytest.mark.parametrize("number", [1, 3, 5])
def test_under_tiresias_every_job_ends_in_the_second_in_which_it_ended_there(
    shared_data: Path, number: int
) -> None:
    ours, theirs = both(shared_data, "tiresias", number)
    assert {name: round(jct) for name, jct in ours.items()} == theirs


@pytest.mark.parametrize("number", [1, 3, 5])
def test_under_optimus_the_means_are_within_a_thousandth_and_nearly_all_jobs_the_same(
    shared_data: Path, number: int
) -> None:
    ours, theirs = both(shared_data, "optimus", number)
    means = [float(np.mean(list(jcts.values()))) for jcts in (ours, theirs)]
    assert means[0] == pytest.approx(means[1], rel=1e-3)
    same = [name for name, jct in theirs.items() if abs(ours[name] - jct) <= 1]
    assert len(same) >= 0.97 * len(theirs)
