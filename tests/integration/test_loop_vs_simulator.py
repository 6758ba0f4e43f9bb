"""The control loop and the simulator replay one trace in virtual time: they must agree.

One scheduler, two drivers. The loop comes with its store, its actor and a cloud that is a file; the
simulator is all in memory.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boa.catalogue.traces import read_trace
from boa.clock import VirtualClock
from boa.model.cluster import Policy
from boa.model.service import ClassPrior
from boa.model.trace import Trace, TraceJob
from boa.model.workload import GpuType
from boa.policy.registry import POLICIES, Choice, Knobs, choose
from boa.policy.rivals.standing import Standing
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.physics import TableTruth
from boa.sim.replay_jobs import profiles_of, replay_spec
from boa.sim.report import SimulationReport
from boa.sim.run import World, simulate, world_of
from boa.sim.scheduled import ScheduledSimulation
from boa.sim.settings import Settings
from boa.solver.planner import frontier
from live import A100, T4, Live, config, prior, profile

JOBS = 60
LIVE_JOBS = 40
"""Of a trace that the loop replays, which stores every step."""
GAP_S = 300.0
PER_HOUR = 1e6
"""Hours of history that the believed rates of arrival are worth: no job changes them."""
NEAR = 1e-9
LOOSE = {"max_spend": 1e9, "keep_warm_s": 0.0}
"""A limit that never binds: all it does is have the scheduler itself decide."""
CLASSES = {
    "steep": profile("steep", work=(900.0, 600.0, 1500.0), alpha=0.9, rescale_s=20.0),
    "flat": profile("flat", work=(1800.0, 1200.0), alpha=0.5, rescale_s=45.0),
    "late": profile("late", work=(400.0, 400.0, 2400.0), gpus={"T4": 1.0, "A100": 2.5}),
}
EPOCHS = {"late": (0.3, 0.5, 0.95)}
"""Exponents of the speedup, where epochs differ."""


def world(types: Sequence[GpuType] = (T4,), jobs: int = JOBS, seed: int = 1) -> World:
    """Classes of a few epochs; arrivals by chance, so that jobs meet at all sorts of moments."""
    chance, at, found = random.Random(seed), 0.0, []
    for n in range(jobs):
        at += chance.expovariate(1 / GAP_S)
        found.append(TraceJob(name=str(n), arrival_s=at, application=chance.choice([*CLASSES])))
    return World(
        trace=Trace(tuple(found)),
        truths={name: truth(name) for name in CLASSES},
        gpu_types={kind.name: kind for kind in types},
    )


def truth(name: str) -> TableTruth:
    known = CLASSES[name]
    rates = {gpu: table.copy() for gpu, table in known.rates.items()}
    for epoch, alpha in enumerate(EPOCHS.get(name, ())):
        for table in rates.values():
            table[epoch, :, 1:] = table[epoch, :, 1:2] * np.arange(1.0, table.shape[2]) ** alpha
    scales = dict.fromkeys(map(str, range(JOBS)), 1.0)
    return TableTruth(profile=replace(known, rates=rates), scales=scales)


def cheapest(of: World) -> float:
    known = Knowledge(
        of.truths, of.gpu_types, ExpectedArrivals.of(of.trace), Settings(learning="perfect")
    )
    return frontier(known.workload()).cheapest


def priors_of(of: World) -> dict[str, ClassPrior]:
    profiles, rates = profiles_of(of), of.trace.arrivals_per_hour()
    return {profiles[app].name: prior(profiles[app], rates[app], PER_HOUR) for app in rates}


# The simulator beside the real loop


def simulated(of: World, choice: Choice, settings: Settings) -> SimulationReport:
    known = Knowledge(of.truths, of.gpu_types, ExpectedArrivals.of(of.trace), settings)
    found = ScheduledSimulation(
        of.trace.jobs,
        known,
        choice.policy,
        settings,
        span_s=of.trace.span_s,
        budget=choice.budget,
        keep_jcts=True,
        priors=priors_of(of),
    )
    found.scheduler.purse.ends_at = math.inf  # no service knows which arrival is the last
    return found.run()


def live_of(of: World, folder: Path, settings: Settings, budget: float, policy: Policy) -> Live:
    assert settings.pacing_h is not None
    return Live(
        config(
            folder,
            budget=budget,
            gpu_types=of.gpu_types,
            priors=priors_of(of),
            max_spend=settings.max_spend,
            max_nodes=settings.max_nodes,
            keep_warm_s=settings.keep_warm_s,
            pacing_h=settings.pacing_h,
            provision_s=settings.provision_s,
            release_s=settings.reclaim_s,
            billing=settings.billing,
        ),
        {profile.name: profile for profile in profiles_of(of).values()},
        policy=policy,
        clock=VirtualClock(),
    )


def replay(of: World, live: Live) -> dict[str, tuple[float, float]]:
    """JCT and dollars of every job; the loop steps whenever anything is due."""
    ids = {}
    for job in of.trace.jobs:
        go_to(live, job.arrival_s)
        profile = live.profiles[of.truths[job.application].name]
        ids[job.name] = live.submit(replay_spec(profile, Path("unused"), name=job.name))
    while live.loop.snapshot.jobs:
        live.clock.advance_to(next_moment(live))
        live.settle()
    ended = {name: live.job(job_id) for name, job_id in ids.items()}
    live.close()
    return {name: ((j.ended_at or 0) - j.submitted_at, j.cost_usd) for name, j in ended.items()}


def go_to(live: Live, moment: float) -> None:
    while (due := next_moment(live)) < moment:
        live.clock.advance_to(due)
        live.settle()
    live.clock.advance_to(moment)  # whoever submits then has it settled, as the simulator does


def next_moment(live: Live) -> float:
    now, state = live.clock.now(), live.loop.state
    moments = [live.engine.wakes_at(), live.loop.scheduler.wakes_at(state, now)]
    for node in state.nodes.values():
        if node.released_at is not None:
            moments.append(node.released_at + live.config.release_s)
        elif node.ready_at is None:
            moments.append(node.requested_at + live.config.provision_s)
    return max(min(moment for moment in moments if moment > now), now)


def held_equal(of: World, choice: Choice, settings: Settings, budget: float, at: Path) -> None:
    report = simulated(of, choice, settings)
    lived = replay(of, live_of(of, at, settings, budget, choice.policy))
    assert report.tally.named is not None
    assert len(lived) == len(report.tally.named) == LIVE_JOBS
    for name, (jct, _) in lived.items():
        assert jct == pytest.approx(report.tally.named[name], rel=NEAR), name
    dollars = sum(cost for _, cost in lived.values())
    assert dollars == pytest.approx(report.spend_per_hour * of.trace.span_s / 3600, rel=NEAR)


LIMITED = Settings(
    interval_s=None,
    learning="service",
    provision_s=90.0,
    reclaim_s=30.0,
    keep_warm_s=120.0,
    pacing_h=4.0,
)


@pytest.mark.slow
def test_boa_under_caps_shortage_and_pacing_does_live_what_was_simulated(tmp_path: Path) -> None:
    of = world([T4, A100], LIVE_JOBS)
    budget = 1.4 * cheapest(of)
    settings = replace(LIMITED, max_spend=1.3 * budget, max_nodes={"T4": 6, "A100": 2})
    held_equal(of, choose("boa", Knobs(budget=budget)), settings, budget, tmp_path)


@pytest.mark.slow
def test_whole_nodes_by_price_under_caps_and_shortage_do_live_what_was_simulated(
    tmp_path: Path,
) -> None:
    of = world([T4, A100], LIVE_JOBS)
    budget = 1.6 * cheapest(of)
    settings = replace(
        LIMITED,
        interval_s=60.0,
        billing="node",
        max_spend=2.0 * budget,
        max_nodes={"T4": 6, "A100": 2},
    )
    held_equal(of, choose("boa", Knobs(budget=budget), "node"), settings, budget, tmp_path)


@pytest.mark.slow
def test_a_rival_under_caps_and_shortage_does_live_what_was_simulated(tmp_path: Path) -> None:
    of = world([T4, A100], LIVE_JOBS)
    settings = replace(LIMITED, interval_s=60.0, max_spend=24.0, max_nodes={"T4": 5, "A100": 2})
    choice = choose("sia-autoscale", Knobs(target=0.6))
    held_equal(of, choice, settings, 1.0, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiresias", "gavel"])
def test_a_fixed_cluster_does_live_what_was_simulated(name: str, tmp_path: Path) -> None:
    """Rented with the first job, given back when there is none."""
    of, nodes = world([T4, A100], LIVE_JOBS), {"T4": 4, "A100": 2}
    choice = Choice(policy=Standing(choose(name, Knobs(nodes=nodes)).policy, nodes))
    settings = replace(LIMITED, interval_s=60.0, max_nodes=nodes)
    held_equal(of, choice, settings, 1.0, tmp_path)


RULES = [("efficiency", Knobs(target=0.6)), ("optimus-price", Knobs(knob=600.0))]


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "knobs"), RULES)
def test_a_rule_for_single_jobs_does_live_what_was_simulated(
    policy: str, knobs: Knobs, tmp_path: Path
) -> None:
    of = world([T4, A100], LIVE_JOBS)
    settings = replace(LIMITED, max_spend=24.0, max_nodes={"T4": 5, "A100": 2})
    held_equal(of, choose(policy, knobs), settings, 1.0, tmp_path)


# The quick simulator beside the scheduler


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "knobs"), RULES)
def test_without_limits_a_rule_for_single_jobs_does_what_the_scheduler_does(
    policy: str, knobs: Knobs
) -> None:
    of, choice = world([T4, A100]), choose(policy, knobs)
    quick = Settings(interval_s=None, learning="perfect")
    one, other = (
        simulate(of, choice, settings, keep_jcts=True)
        for settings in (quick, replace(quick, **LOOSE))  # type: ignore[arg-type]
    )
    assert one.tally.rescalings > 0
    assert one.tally.named == pytest.approx(other.tally.named, rel=NEAR)
    assert one.spend_per_hour == pytest.approx(other.spend_per_hour, rel=NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("learning", ["perfect", "class"])
def test_without_limits_the_quick_simulator_does_what_the_scheduler_does(learning: str) -> None:
    of = world()
    choice = choose("boa", Knobs(budget=1.3 * cheapest(of)))
    quick = Settings(interval_s=None, learning=learning)  # type: ignore[arg-type]
    assert not quick.scheduled
    one, other = (
        simulate(of, choice, settings, keep_jcts=True)
        for settings in (quick, replace(quick, **LOOSE))  # type: ignore[arg-type]
    )
    assert one.tally.named == pytest.approx(other.tally.named, rel=NEAR)
    ours, theirs = one.document(), other.document()
    for key in ("spend_per_hour", "rented_spend_per_hour", "rescalings_per_job", "plans"):
        assert ours[key] == pytest.approx(theirs[key], rel=NEAR), key


@pytest.mark.slow
def test_on_newtrace_the_quick_simulator_does_what_the_scheduler_does(shared_data: Path) -> None:
    """A third of its jobs: many move at once, and some arrive while a plan is made."""
    sia = shared_data / "sia"
    trace = read_trace(sia / "workloads" / "newtrace" / "workload-1.csv")
    of = world_of(replace(trace, jobs=trace.jobs[:320]), sia / "traces", ["T4"])
    choice, quick = choose("boa", Knobs(budget=140.0)), Settings(interval_s=None)
    one, other = (
        simulate(of, choice, settings, keep_jcts=True)
        for settings in (quick, replace(quick, **LOOSE))  # type: ignore[arg-type]
    )
    assert one.document()["plans"] > 5
    assert one.tally.named == pytest.approx(other.tally.named, rel=NEAR)
    assert one.spend_per_hour == pytest.approx(other.spend_per_hour, rel=NEAR)


@pytest.mark.slow
def test_a_rival_in_rounds_does_about_what_the_scheduler_does() -> None:
    """As published, rounds fall on the full minute and see what ended since the last one; the
    service's begin with the first job, and an end is seen at once."""
    of = world()
    settings = Settings(interval_s=POLICIES["pollux-autoscale"].interval_s, learning="perfect")
    choice = choose("pollux-autoscale", Knobs(target=0.6))
    one = simulate(of, choice, settings).document()
    other = simulate(of, choice, replace(settings, **LOOSE)).document()  # type: ignore[arg-type]
    for key in ("average_jct_s", "spend_per_hour"):
        assert one[key] == pytest.approx(other[key], rel=0.05), key
