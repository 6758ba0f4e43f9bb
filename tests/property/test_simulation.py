"""Whatever the policy, the trace and the cluster: no GPU-second is lost or counted twice.

Everything is worked out again from the events that a listener is told, and held against the report.
"""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.policy.registry import POLICIES, Knobs, choose
from boa.sim.physics import PlanTruth
from boa.sim.run import simulate
from boa.units import SECONDS_PER_HOUR, GpuName
from simulations import (
    PER_NODE,
    PLANNED,
    RESCALE_S,
    Replay,
    in_steps,
    job,
    replay,
    setups,
    world,
)

every_policy = pytest.mark.parametrize("policy", POLICIES)
on_a_fixed_cluster = pytest.mark.parametrize(
    "policy", [name for name, known in POLICIES.items() if "nodes" in (known.knob, *known.also)]
)
few = settings(max_examples=5)


def gpus_on(run: Replay, gpu: GpuName) -> int:
    return run.world.gpu_types[gpu].gpus_per_node


@every_policy
@few
@given(data=st.data())
def test_the_bill_is_the_integral_of_what_was_held_and_rented(
    policy: str, data: st.DataObject
) -> None:
    run = data.draw(setups(policy)).replay()
    held: Counter[GpuName] = Counter()
    rented: Counter[GpuName] = Counter()
    for stretch in run.held():
        held[stretch.gpu] += stretch.width * (stretch.until - stretch.since)  # type: ignore[assignment]
    for gpu, since, until in run.rented().values():
        rented[gpu] += gpus_on(run, gpu) * (until - since)  # type: ignore[assignment]
    document, types = run.document, run.world.gpu_types
    hours = run.world.trace.span_s / SECONDS_PER_HOUR
    assert run.report.tally.gpu_seconds == pytest.approx(dict(held))
    assert document["gpu_hours"] == pytest.approx(sum(held.values()) / SECONDS_PER_HOUR)
    assert document["average_gpus"] * hours == pytest.approx(document["gpu_hours"])
    for key, seconds in (("spend_per_hour", held), ("rented_spend_per_hour", rented)):
        usd = sum(types[gpu].price * s / SECONDS_PER_HOUR for gpu, s in seconds.items())
        assert document[key] * hours == pytest.approx(usd)
    assert document["rented_gpus"] * hours * SECONDS_PER_HOUR == pytest.approx(sum(rented.values()))
    assert document["reclaiming_gpus"] * hours * SECONDS_PER_HOUR == pytest.approx(
        run.report.settings.reclaim_s * sum(gpus_on(run, g) for g, _, _ in run.rented().values())
    )


@every_policy
@few
@given(data=st.data())
def test_no_gpu_is_held_twice_or_unrented(policy: str, data: st.DataObject) -> None:
    run = data.draw(setups(policy)).replay()
    nodes: dict[int, GpuName] = {}
    jobs: dict[str, list[list[int]]] = {}
    for moment in in_steps(run.events):
        for event in moment:
            if event["event"] == "rent":
                nodes[event["node"]] = event["gpu_type"]
            elif event["event"] == "release":
                del nodes[event["node"]]
            elif event["event"] in ("start", "rescale"):
                jobs[event["job"]] = event["nodes"]
                assert event["width"] == sum(count for _, count in event["nodes"])
                assert all(nodes[node] == event["gpu_type"] for node, _ in event["nodes"])
            elif event["event"] in ("stop", "finish"):
                del jobs[event["job"]]
        busy: Counter[int] = Counter()
        for allocation in jobs.values():
            for node, count in allocation:
                assert count > 0
                busy[node] += count
        assert all(node in nodes and busy[node] <= gpus_on(run, nodes[node]) for node in busy)
    assert not nodes
    assert not jobs


@on_a_fixed_cluster
@few
@given(data=st.data())
def test_a_fixed_cluster_stays_as_it_is(policy: str, data: st.DataObject) -> None:
    run = data.draw(setups(policy)).replay()
    if run.knobs.nodes is None:
        return
    end = max(run.times("finish").values())
    rented = run.rented().values()
    assert Counter(gpu for gpu, _, _ in rented) == run.knobs.nodes
    assert all(since == 0 and until >= end for _, since, until in rented)
    room = {gpu: count * gpus_on(run, gpu) for gpu, count in run.knobs.nodes.items()}
    for sample in run.report.series:
        assert sample.busy_gpus <= sample.rented_gpus == sum(room.values())


@every_policy
@few
@given(data=st.data())
def test_every_job_starts_and_ends_once(policy: str, data: st.DataObject) -> None:
    run = data.draw(setups(policy)).replay()
    names = sorted(job.name for job in run.world.trace.jobs)
    for kind in ("arrive", "start", "finish"):
        assert sorted(event["job"] for event in run.of(kind)) == names, kind
    arrived, finished = (run.times(kind) for kind in ("arrive", "finish"))
    named = run.report.tally.named
    assert named == pytest.approx({name: finished[name] - arrived[name] for name in names})
    document = run.document
    assert document["completed"] == document["jobs"] == len(names)
    assert document["average_jct_s"] == pytest.approx(np.mean(list((named or {}).values())))
    assert document["makespan_s"] == max(finished.values())
    held = sum(stretch.until - stretch.since for stretch in run.held())
    there = sum(finished[name] - arrived[name] for name in names)
    assert document["average_queueing_s"] * len(names) == pytest.approx(there - held, abs=1e-6)
    # A job that was preempted resumes with a rescaling, the first start is none.
    assert document["rescalings_per_job"] * len(names) == pytest.approx(len(run.of("rescale")))


@every_policy
@few
@given(data=st.data())
def test_progress_adds_up_to_the_work(policy: str, data: st.DataObject) -> None:
    """Of jobs whose pace is their placement's alone."""
    run = data.draw(setups(policy, classes=PLANNED)).replay()
    if run.report.settings.interference:
        return
    done: dict[str, float] = dict.fromkeys((job.name for job in run.world.trace.jobs), 0.0)
    paused = 0.0
    for held in run.held():
        truth = run.world.truths[held.job.split("-")[0]]
        assert isinstance(truth, PlanTruth)
        done[held.job] += max(held.until - held.resume, 0.0) * truth.rate(held.gpu, held.shape)
        paused += min(held.until, held.resume) - held.since
    assert done == pytest.approx({job.name: job.steps for job in run.world.trace.jobs})
    assert run.document["rescaling_s_per_job"] * len(done) == pytest.approx(paused)


@every_policy
@few
@given(data=st.data())
def test_no_job_is_faster_than_its_best_width_would_be(policy: str, data: st.DataObject) -> None:
    run = data.draw(setups(policy)).replay()
    assert run.report.tally.named is not None
    for asked in run.world.trace.jobs:
        truth = run.world.truths[asked.application]
        best = np.max([truth.rates(gpu).max(axis=(1, 2)) for gpu in run.world.gpu_types], axis=0)
        least = truth.rescale_s + float(np.sum(truth.work(asked) / best))
        assert run.report.tally.named[asked.name] >= least * (1 - 1e-9)


@every_policy
@few
@given(data=st.data())
def test_a_start_takes_the_rescaling_and_what_the_nodes_take(
    policy: str, data: st.DataObject
) -> None:
    run = data.draw(setups(policy)).replay()
    physics, nodes = run.report.settings, run.rented()
    fixed = physics.cluster is not None
    warm: set[int] = set()
    for event in run.of("start") + run.of("rescale"):
        assert event["resume_s"] >= event["time_s"] + RESCALE_S[event["job"].split("-")[0]]
    for event in run.told:
        if event["event"] in ("start", "rescale"):
            used = [node for node, _ in event["nodes"]]
            ready = max(nodes[n][1] + (0.0 if fixed else physics.provision_s) for n in used)
            cold = 0.0 if warm.issuperset(used) else physics.cold_s
            rescaling = RESCALE_S[event["job"].split("-")[0]]
            assert event["resume_s"] == max(ready, event["time_s"]) + rescaling + cold
            warm.update(used)


@pytest.mark.parametrize("policy", ["boa", "fixed"])
@settings(max_examples=20)
@given(data=st.data())
def test_nobody_queues(policy: str, data: st.DataObject) -> None:
    run = data.draw(setups(policy)).replay()
    interval = run.report.settings.interval_s
    arrived = run.times("arrive")
    for name, started in run.times("start").items():
        if interval is None:
            assert started == arrived[name]
        else:  # the next round; there is none at time 0
            assert started == max(np.ceil(arrived[name] / interval), 1.0) * interval
    assert not run.of("stop")


@every_policy
@settings(max_examples=4)
@given(data=st.data())
def test_the_same_seed_is_the_same_run(policy: str, data: st.DataObject) -> None:
    setup = data.draw(setups(policy))
    assert setup.replay().as_bytes() == setup.replay().as_bytes()


@every_policy
@settings(max_examples=4)
@given(data=st.data())
def test_being_watched_changes_nothing(policy: str, data: st.DataObject) -> None:
    """Nor does it matter how often the series is sampled."""
    setup = data.draw(setups(policy))
    watched, knobs = setup.replay(), setup.knobs
    seldom = replace(setup.asked.settings(policy, knobs.nodes), samples=1)
    unwatched = simulate(watched.world, choose(policy, knobs), seldom)
    assert len(unwatched.series) <= len(watched.report.series)
    assert sorted(unwatched.tally.jcts) == pytest.approx(sorted(watched.report.tally.jcts))
    assert unwatched.gpu_hours == pytest.approx(watched.report.gpu_hours)


def everything() -> bytes:
    """Every policy on one trace."""
    per_node = PER_NODE[0]
    apps = ("quick", "patient", "steady", "large")
    jobs = [
        job(f"{app}-{n}", 400.0 * n + 30.0 * m, app, gpus=2, batch_size=128)
        for n in range(2)
        for m, app in enumerate(apps)
    ]
    knobs = {
        "budget": Knobs(budget=40.0),
        "target": Knobs(target=0.5),
        "nodes": Knobs(nodes={"T4": 2}),
        "width": Knobs(width=4),
        "knob": Knobs(knob=0.5),
        None: Knobs(),
    }
    runs = [
        replay(world(jobs, per_node), name, knobs[known.knob]) for name, known in POLICIES.items()
    ]
    return b"\n".join(run.as_bytes() for run in runs)


def test_another_process_with_other_hashes_gives_the_same_runs() -> None:
    code = "import sys, test_simulation; sys.stdout.buffer.write(test_simulation.everything())"
    folder = Path(__file__).resolve().parent
    path = os.pathsep.join([str(folder), str(folder.parent)])
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=600,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] == everything()
    assert runs[0].count(b'"finish"') == 8 * len(POLICIES)
