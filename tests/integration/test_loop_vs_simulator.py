"""The control loop and the simulator replay one trace in virtual time: they must agree.

Same policies, same placement, same physics; only the machinery between them differs.
"""

from pathlib import Path

import pytest

from boa.model.trace import Trace, TraceJob
from boa.policy.registry import POLICIES, Knobs, choose
from boa.policy.rivals.pollux_autoscale import PolluxAutoscale
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.replay_jobs import profiles_of, replay_spec
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings
from boa.solver.planner import frontier
from live import START, Live, config, prior

MIX = ("cifar10", "bert", "cifar10", "deepspeech2", "cifar10")


def world(jobs: int) -> World:
    trace = Trace(
        tuple(
            TraceJob(name=str(n), arrival_s=420.0 * n, application=MIX[n % len(MIX)])
            for n in range(jobs)
        )
    )
    return world_of(trace, None, ["T4"])


def live_of(of: World, folder: Path, budget: float, policy: PolluxAutoscale | None = None) -> Live:
    profiles = {profile.name: profile for profile in profiles_of(of).values()}
    rates = of.trace.arrivals_per_hour()
    priors = {
        name: prior(profiles[name], rate, 1e6)
        for app, rate in rates.items()
        if (name := of.truths[app].name)
    }
    settings = config(folder, budget=budget, gpu_types=of.gpu_types, priors=priors, pacing_h=8760.0)
    return Live(settings, profiles, policy=policy)


def replay(of: World, live: Live, tick: float) -> tuple[float, float]:
    """Average JCT and spend per hour, as the simulator reports them."""
    live.settle()
    ids = []
    for job in of.trace.jobs:
        wait = START + job.arrival_s - live.clock.now()
        if wait > 0:
            live.advance(wait, tick=tick)
        profile = live.profiles[of.truths[job.application].name]
        ids.append(live.submit(replay_spec(profile, Path("unused"))))
    while live.loop.snapshot.jobs:
        live.advance(tick, tick=tick)
    jobs = [live.job(job_id) for job_id in ids]
    live.close()
    jcts = [(job.ended_at or 0.0) - job.submitted_at for job in jobs]
    spend = sum(job.cost_usd for job in jobs) / of.trace.span_s * 3600
    return sum(jcts) / len(jcts), spend


@pytest.mark.slow
def test_boa_does_live_exactly_what_was_simulated(tmp_path: Path) -> None:
    of = world(15)
    known = Knowledge(
        of.truths, of.gpu_types, ExpectedArrivals.of(of.trace), Settings(learning="perfect")
    )
    budget = 1.5 * frontier(known.workload()).cheapest
    settings = Settings(interval_s=None, learning="perfect")
    simulated = simulate(of, choose("boa", Knobs(budget=budget)), settings).document()
    jct, spend = replay(of, live_of(of, tmp_path, budget), tick=600.0)
    assert jct == pytest.approx(simulated["average_jct_s"], rel=1e-6)
    assert spend == pytest.approx(simulated["spend_per_hour"], rel=1e-6)


@pytest.mark.slow
def test_pollux_with_autoscaling_does_live_about_what_was_simulated(tmp_path: Path) -> None:
    """Its rounds fall at other moments, and what it remembers starts from another population."""
    of = world(10)
    known = POLICIES["pollux-autoscale"]
    settings = Settings(interval_s=known.interval_s, learning="perfect")
    choice = choose("pollux-autoscale", Knobs(target=0.6))
    simulated = simulate(of, choice, settings).document()
    jct, spend = replay(of, live_of(of, tmp_path, 1.0, PolluxAutoscale(0.6)), tick=60.0)
    assert jct == pytest.approx(simulated["average_jct_s"], rel=0.10)
    assert spend == pytest.approx(simulated["spend_per_hour"], rel=0.10)
