"""What time, nodes and neighbours do to a job, worked out by hand."""

import pytest

from boa.catalogue.figures import known_figures
from boa.catalogue.measured_profiles import fitted_truth
from boa.errors import InputError
from boa.model.cluster import Allocation, ClusterView, Decision, Node, Shape, Share
from boa.model.trace import Trace, TraceJob
from boa.model.workload import GpuType
from boa.policy.registry import Choice, Knobs
from boa.sim.knowledge import truths_of
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings
from boa.sim.sweep import Asked
from boa.units import Seconds
from simulations import Replay, job, planned, replay, world

AT_EVENTS = Asked(interval_s=0.0)
T4 = {"T4": 4}
PACE: dict[Shape, Seconds] = {(1,): 2.0, (2,): 1.25, (4,): 0.8, (2, 2): 1.0, (4, 4): 0.5}


def steady(*arrivals: float, rescale_s: float = 30.0, steps: int = 300, per_node: int = 4) -> World:
    """Jobs a, b, c … of `steps` iterations at the pace above."""
    jobs = [
        job(name, at, "steady", steps=steps, gpus=1)
        for name, at in zip("abcdef", arrivals, strict=False)
    ]
    truth = planned("steady", {"T4": per_node}, rescale_s=rescale_s, times=PACE)
    return world(jobs, {"T4": per_node}, {"steady": truth})


def fixed(of: World, width: int, asked: Asked = AT_EVENTS) -> Replay:
    return replay(of, "fixed", Knobs(width=width), asked)


# Alone


@pytest.mark.parametrize(("width", "seconds"), [(1, 2.0), (2, 1.25), (4, 0.8), (8, 0.5)])
def test_a_job_alone_takes_its_rescaling_and_its_work(width: int, seconds: float) -> None:
    run = fixed(steady(100.0), width)
    jct = 30.0 + 300 * seconds
    assert run.times("finish") == {"a": pytest.approx(100.0 + jct)}
    assert run.document["average_jct_s"] == pytest.approx(jct)
    assert run.document["gpu_hours"] == pytest.approx(width * jct / 3600)
    assert run.document["rescaling_s_per_job"] == 30.0
    assert run.document["rescalings_per_job"] == 0


def test_whole_nodes_are_rented_for_a_part_of_one() -> None:
    document = fixed(steady(100.0), 2).document
    assert document["rented_gpus"] == pytest.approx(2 * document["average_gpus"])


def test_a_job_that_ends_just_when_the_series_is_sampled_ends_once() -> None:
    run = fixed(steady(0.0, 500.0, steps=15), 1)
    assert run.times("finish") == {"a": 60.0, "b": 560.0}
    assert run.document["completed"] == 2


def test_a_trace_that_comes_all_at_once_is_spread_over_its_makespan() -> None:
    document = fixed(steady(0.0, 0.0), 1).document
    assert document["makespan_s"] == 630.0
    assert document["average_gpus"] == pytest.approx(2.0)


def test_jobs_that_would_fit_beside_each_other_share_a_node() -> None:
    run = fixed(steady(0.0, 1.0, 2.0), 2)
    assert [event["nodes"] for event in run.of("start")] == [[[0, 2]], [[0, 2]], [[1, 2]]]
    assert len(run.rented()) == 2


# Rounds


def test_a_job_that_comes_inside_a_round_waits_for_the_next() -> None:
    run = fixed(steady(61.0, 119.0, 120.0, 121.0), 1, Asked(interval_s=60.0))
    assert run.times("start") == {"a": 120.0, "b": 120.0, "c": 120.0, "d": 180.0}
    assert run.document["average_queueing_s"] == pytest.approx((59 + 1 + 0 + 59) / 4)
    # The wait is part of the JCT, the round it ends in is not.
    assert run.report.tally.named is not None
    assert run.report.tally.named["a"] == pytest.approx(59.0 + 30.0 + 600.0)


def test_an_idle_cluster_keeps_nobody_waiting_for_longer() -> None:
    """Whether others run or not, a job that comes when a round begins is part of it."""
    assert fixed(steady(600.0, 6000.0), 1, Asked(interval_s=60.0)).times("start") == {
        "a": 600.0,
        "b": 6000.0,
    }


def test_nodes_go_back_when_the_round_ends_in_which_their_job_did() -> None:
    run = fixed(steady(60.0), 4, Asked(interval_s=60.0))
    assert run.times("finish") == {"a": pytest.approx(60.0 + 30.0 + 240.0)}
    assert run.rented() == {0: ("T4", 60.0, 360.0)}
    ((_, _, until),) = fixed(steady(60.0), 4).rented().values()
    assert until == pytest.approx(330.0)


# Nodes


def test_provisioning_delays_the_first_progress_and_is_paid_for() -> None:
    run = fixed(steady(0.0, 10.0), 2, Asked(interval_s=0.0, provision_s=100.0))
    jct = 30.0 + 375.0
    # Both wait for the node; the second for what is left of it.
    assert run.times("finish") == {"a": pytest.approx(100 + jct), "b": pytest.approx(100 + jct)}
    assert run.document["gpu_hours"] == pytest.approx(2 * (2 * (100 + jct) - 10.0) / 3600)
    ((_, since, until),) = run.rented().values()
    assert since == 0.0
    assert until == pytest.approx(100 + jct)


def test_the_nodes_of_a_fixed_cluster_are_there_from_the_start() -> None:
    asked = Asked(provision_s=100.0)
    run = replay(steady(60.0), "tiresias", Knobs(nodes={"T4": 1}), asked)
    assert run.of("start")[0]["resume_s"] == 90.0


def test_only_the_first_job_on_a_node_starts_cold() -> None:
    asked = Asked(cold_s=50.0)
    run = replay(steady(600.0, 660.0), "tiresias", Knobs(nodes={"T4": 1}), asked)
    assert [e["resume_s"] - e["time_s"] for e in run.of("start")] == [80.0, 30.0]


def test_a_node_rented_anew_is_cold_again() -> None:
    run = fixed(steady(0.0, 5000.0), 4, Asked(interval_s=0.0, cold_s=50.0))
    assert [e["resume_s"] - e["time_s"] for e in run.of("start")] == [80.0, 80.0]


def test_reclaiming_is_reported_apart() -> None:
    plain = fixed(steady(0.0, 5000.0), 2).document
    slow = fixed(steady(0.0, 5000.0), 2, Asked(interval_s=0.0, reclaim_s=120.0)).document
    assert plain["reclaiming_gpus"] == plain["reclaiming_spend_per_hour"] == 0.0
    hours = 5000.0 / 3600
    assert slow["reclaiming_gpus"] * hours == pytest.approx(2 * 4 * 120.0 / 3600)
    billed = slow["rented_spend_per_hour"] + slow["reclaiming_spend_per_hour"]
    assert slow["bill_per_hour"] == pytest.approx(billed)
    apart = ("reclaiming_gpus", "reclaiming_spend_per_hour", "bill_per_hour", "physics")
    assert {k: v for k, v in plain.items() if k not in apart} == {
        k: v for k, v in slow.items() if k not in apart
    }


# Neighbours


Where = dict[str, tuple[tuple[int, int], ...]]
"""(node, GPUs) by job"""


class Placing:
    """Puts every job where it is told to."""

    name = "placing"
    by_job = False

    def __init__(self, where: Where) -> None:
        self.where = {job: Allocation("T4", nodes) for job, nodes in where.items()}

    def decide(self, view: ClusterView) -> Decision:
        return Decision(
            placements={job.id: self.where[job.id] for job in view.jobs}, nodes=tuple(view.nodes)
        )


@pytest.mark.parametrize(
    ("where", "slow"),
    [
        ({"a": ((0, 2), (1, 2)), "b": ((1, 2), (2, 2))}, {"a", "b"}),
        ({"a": ((0, 2), (1, 2)), "b": ((2, 2), (3, 2))}, set()),
        ({"a": ((0, 2), (1, 2)), "b": ((1, 2),)}, set()),  # b does not use the network
        ({"a": ((0, 1),), "b": ((0, 2),)}, set()),
        ({"a": ((0, 2), (1, 2)), "b": ((1, 2), (2, 2)), "c": ((2, 2), (3, 2))}, {"a", "b", "c"}),
    ],
)
def test_interference_slows_jobs_across_nodes_that_share_one(where: Where, slow: set[str]) -> None:
    of = steady(*[60.0] * len(where), steps=60)
    settings = Settings(interference=0.5, cluster={"T4": 4}, learning="perfect")
    report = simulate(of, Choice(policy=Placing(where)), settings, keep_jcts=True)
    assert report.tally.named is not None
    for name, nodes in where.items():
        seconds = 60 * PACE[tuple(count for _, count in nodes)]
        # All are of one length, so they disturb each other to the end.
        assert report.tally.named[name] == pytest.approx(30 + seconds * (2 if name in slow else 1))


def test_interference_ends_with_the_neighbour() -> None:
    jobs = [job(name, 60.0, "steady", steps=steps) for name, steps in (("a", 60), ("b", 30))]
    of = world(jobs, T4, steady().truths)
    where: Where = {"a": ((0, 2), (1, 2)), "b": ((1, 2), (2, 2))}
    settings = Settings(interference=0.5, cluster={"T4": 4}, learning="perfect")
    report = simulate(of, Choice(policy=Placing(where)), settings, keep_jcts=True)
    assert report.tally.named is not None
    # b: 30 iterations at half of one per second; a too, until the next round, then alone.
    assert report.tally.named["b"] == pytest.approx(30 + 60)
    assert report.tally.named["a"] == pytest.approx(120 + (60 - 45))


# Shares that change


class Growing:
    """One GPU in the first half of the epochs, four from then on; at events."""

    name = "growing"
    by_job = True

    def decide(self, view: ClusterView) -> Decision:
        (view_of,) = view.jobs
        if view_of.epoch == 0:
            return Decision(shares={view_of.id: Share("T4", 1, until=1, note="young")})
        assert view_of.note == "young"
        assert view_of.rescalings == 0
        return Decision(shares={view_of.id: Share("T4", 4)})


def test_a_policy_is_asked_again_at_the_epoch_it_named() -> None:
    of = world([job("a", 10.0, "quick")], T4)
    told: list[dict[str, object]] = []
    settings = Settings(interval_s=None, learning="perfect")
    simulate(of, Choice(policy=Growing()), settings, listener=lambda e: told.append(dict(e)))
    start, rescale, finish = (
        next(e for e in told if e["event"] == kind) for kind in ("start", "rescale", "finish")
    )
    first, second = of.truths["quick"].work(of.trace.jobs[0])
    rates = of.truths["quick"].rates("T4")
    assert (rescale["epoch"], rescale["width"]) == (1, 4)
    assert rescale["time_s"] == pytest.approx(10.0 + first / rates[0, 0, 1])
    assert finish["time_s"] == pytest.approx(rescale["time_s"] + second / rates[1, 0, 4])
    assert start["nodes"] == [[0, 1]]
    assert sum(e["event"] == "rent" for e in told) == 1, "its own node has room for it to grow"


def test_a_policy_that_places_nobody_is_not_waited_for_forever() -> None:
    class Idle:
        name = "idle"
        by_job = False

        def decide(self, view: ClusterView) -> Decision:
            return Decision(nodes=(Node(0, "T4", 4),))

    report = simulate(steady(0.0), Choice(policy=Idle()), Settings(cluster={"T4": 1}))
    assert (report.jobs, len(report.tally.jcts)) == (1, 0)


# Where the world comes from


def test_rescaling_times_can_be_overridden() -> None:
    profiles = fitted_truth(known_figures("sia"))
    types = {"T4": GpuType(name="T4", gpus_per_node=4)}
    own = truths_of(profiles, types, slowdown=None, rescale=None)
    assert own["bert"].rescale_s == 120.0
    assert own["ncf"].rescale_s == 15.0
    same = truths_of(profiles, types, slowdown=None, rescale=7.0)
    assert {truth.rescale_s for truth in same.values()} == {7.0}
    assert (own["bert"].rates("T4") == same["bert"].rates("T4")).all()


def test_a_slowdown_is_the_artifacts_own_or_none() -> None:
    profiles = fitted_truth(known_figures("sia"))
    types = {"T4": GpuType(name="T4", gpus_per_node=4)}
    own, none = (
        truths_of(profiles, types, slowdown=kind, rescale=None)["cifar10"].rates("T4")[0, 0, 1]
        for kind in ("sia", "none")
    )
    assert none / own == pytest.approx(1.8)


def test_a_world_without_profiles_is_made_of_the_catalogue() -> None:
    trace = Trace((TraceJob(name="a", arrival_s=60.0, application="ncf"),))
    of = world_of(trace, None, ["T4"])
    run = fixed(of, 4)
    assert run.document["completed"] == 1
    truth = of.truths["ncf"]
    least = 15.0 + float((truth.work(trace.jobs[0]) / truth.rates("T4").max(axis=(1, 2))).sum())
    assert run.document["average_jct_s"] >= least


def test_an_application_without_profiles_is_named() -> None:
    trace = Trace((TraceJob(name="a", arrival_s=60.0, application="unheard-of", line=3),))
    with pytest.raises(InputError, match=r"line 3 \(a\), column application"):
        world_of(trace, None, ["T4"])
