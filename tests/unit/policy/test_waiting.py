"""A newcomer, one node that is taken, and another that could be rented: squeeze, or wait for it."""

from dataclasses import replace

import pytest

from boa.model.cluster import Allocation, ClusterView, Decision, JobView, Node, NodeRoom
from boa.model.job_spec import GpuLimits
from boa.model.speedup import Floats, Power
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.policy.boa import planned_of, within_reach
from boa.policy.market.policy import Market, _reasons
from boa.policy.market.prospects import NO_USE
from boa.policy.market.renting import Weighed
from boa.policy.market.scene import Scene
from boa.policy.market.standings import later, moved
from boa.policy.market.waiting import seconds_to_go

T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
NODE = Node(1, "T4", 4)
ALL = Allocation("T4", ((1, 4),))
HALF = Allocation("T4", ((1, 2),))
QUICK, SLOW = 2.0, 100.0
BOOT_S = 120.0
DEAR = 10_000.0
"""Price of money at which a job gives up GPUs for a little less money."""


class Nothing:
    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return None


def job(name: str, rescale_s: float, held: Allocation | None = None) -> JobView:
    return JobView(
        id=name,
        job_class="a",
        arrival=0.0,
        serial=0,
        epoch=0,
        left=1.0 if held is None else 0.8,
        prediction=Nothing(),
        allocation=held,
        rescale_s=rescale_s,
    )


def view(rescale_s: float, booting_s: float | None = None, room: int = 9) -> ClusterView:
    """`booting_s`: a second node will be ready then."""
    epochs = (Epoch(work=3600.0, speedups={"T4": Power(0.8)}),)
    a = JobClass(name="a", arrivals_per_hour=4.0, rescale_s=rescale_s, max_gpus=4, epochs=epochs)
    workload = Workload(gpu_types={"T4": T4}, classes=(a,))
    booting = {} if booting_s is None else {2: booting_s}
    return ClusterView(
        now=0.0,
        jobs=[job("old", rescale_s, ALL), job("new", rescale_s)],
        nodes=[NODE, *(Node(node, "T4", 4) for node in booting)],
        booting=booting,
        gpu_types={"T4": T4},
        next_node=3,
        memory=planned_of(within_reach(workload, 10.0)[0], 0, 0.0),
        boot_s={"T4": BOOT_S},
        room=NodeRoom(nodes={"T4": room}),
        let_in={"old", "new"},
    )


def widths(decision: Decision) -> dict[str, int]:
    return {name: given.width for name, given in decision.placements.items()}


def test_where_rescaling_is_quick_a_newcomer_is_squeezed_in_though_a_node_is_rented() -> None:
    decision = Market().decide(view(QUICK))
    assert widths(decision) == {"old": 2, "new": 2}
    assert len(decision.nodes or ()) == 2


def test_where_rescaling_is_slow_it_waits_for_the_node_that_is_rented() -> None:
    decision = Market().decide(view(SLOW))
    assert widths(decision) == {"old": 4}
    assert len(decision.nodes or ()) == 2


def test_the_sooner_a_node_is_ready_the_less_is_anybody_squeezed_until_then() -> None:
    waits = [
        "new" not in Market().decide(view(30.0, booting_s=soon, room=0)).placements
        for soon in (25.0, 3000.0)
    ]
    assert waits == [True, False]


def test_where_no_node_is_coming_nobody_waits_for_one() -> None:
    assert widths(Market().decide(view(SLOW, room=0))) == {"old": 2, "new": 2}


def test_both_ways_are_weighed_as_worked_out_by_hand() -> None:
    """Free money and no time after the pause: seconds in which jobs are there, and no more."""
    found = view(0.0, booting_s=BOOT_S)
    scene = Scene(found, found.memory, 0.0)
    jobs, room = scene.standings, scene.room(found.nodes)
    two, four = 2**0.8, 4**0.8
    done = {"still": BOOT_S * four, "squeezed": 2 * BOOT_S * two}
    left = {way: (3600 * 1.8 - work) / four + 2 * BOOT_S for way, work in done.items()}
    still = seconds_to_go(scene, jobs, {"old": ALL}, room, BOOT_S)
    squeezed = seconds_to_go(scene, jobs, {"old": HALF, "new": HALF}, room, BOOT_S)
    assert [still, squeezed] == pytest.approx(list(left.values()), rel=1e-3)


def test_jobs_that_have_the_same_either_way_are_left_out_with_their_gpus() -> None:
    """A neighbour on a node of its own changes nothing, however long it still takes."""
    found = view(SLOW)
    other = Node(7, "T4", 4)
    neighbour = job("neighbour", SLOW, Allocation("T4", ((7, 4),)))
    more = replace(found, jobs=[*found.jobs, neighbour], nodes=[*found.nodes, other])
    alone, beside = Market().decide(found), Market().decide(more)
    assert widths(beside) == {**widths(alone), "neighbour": 4}


def test_seconds_until_a_job_ends_are_those_of_its_course() -> None:
    found = view(SLOW)
    scene = Scene(found, found.memory, 1.0)
    there = moved(scene.standings, {"old": ALL, "new": HALF})
    by_job = dict(zip(there.jobs, there.ends_in, strict=True))
    assert by_job["old"] == pytest.approx(0.8 * 3600 / 4**0.8), "it stays, so there is no pause"
    assert by_job["new"] == pytest.approx(SLOW + 3600 / 2**0.8)
    assert moved(scene.standings, {}).ends_in.tolist() == [float("inf")] * 2


def losing(lost_s: float, left: float = 0.8) -> ClusterView:
    """A stop loses so much work of the old job."""
    found = view(SLOW)
    old, new = found.jobs
    return replace(found, jobs=[replace(old, lost_s=lost_s, left=left), new])


def test_a_job_that_moves_does_the_work_again_that_its_stop_loses() -> None:
    found = losing(200.0)
    standings = Scene(found, found.memory, 1.0).standings
    there = moved(standings, {"old": HALF})
    by_job = dict(zip(there.jobs, there.ends_in, strict=True))
    again = 0.8 * 3600 + 200.0 * 4**0.8
    assert by_job["old"] == pytest.approx(SLOW + again / 2**0.8)
    assert there.lost is not None
    assert not there.lost.any(), "it is not lost twice"
    then = later(standings, {"old": HALF}, SLOW)
    assert then.lost is not None
    assert not then.lost.any()


@pytest.mark.parametrize("given", [{"old": HALF, "new": HALF}, {"new": ALL}])
def test_a_way_that_stops_a_job_takes_longer_by_the_work_that_it_loses(
    given: dict[str, Allocation],
) -> None:
    """A job that loses all its GPUs loses that work too."""
    ways = []
    for lost_s in (0.0, 200.0):
        found = losing(lost_s)
        scene = Scene(found, found.memory, 0.0)
        ways.append(seconds_to_go(scene, scene.standings, given, scene.room(found.nodes), BOOT_S))
    assert ways[1] - ways[0] == pytest.approx(200.0, rel=0.05)


def test_work_of_more_than_the_epoch_so_far_is_that_of_the_epochs_before() -> None:
    found = losing(1e6)
    standings = Scene(found, found.memory, 1.0).standings
    there = moved(standings, {})
    assert (there.epochs[0], there.left[0]) == (0, pytest.approx(1.0))


@pytest.mark.parametrize(("lost_s", "left"), [(0.0, 0.03), (300.0, 0.12)])
def test_a_job_that_would_end_sooner_than_it_is_rescaled_is_not_resized(
    lost_s: float, left: float
) -> None:
    found = losing(lost_s, left)
    many = [replace(found.jobs[1], id=f"new{n}", arrival=float(n)) for n in range(3)]
    jobs = [found.jobs[0], *many]
    everybody = {job.id for job in jobs}
    crowd = replace(found, jobs=jobs, let_in=everybody, room=NodeRoom(nodes={"T4": 0}))
    market = Scene(crowd, crowd.memory, DEAR).market
    row = market.jobs.index("old")
    assert market.states[row][market.held[row]] == ("T4", 4)
    assert (market.gains[row] > NO_USE / 2).sum() == 1
    assert widths(Market(DEAR).decide(crowd))["old"] == 4


def test_a_job_whose_user_no_longer_allows_its_gpus_is_resized_however_short_it_is() -> None:
    found = losing(0.0, left=0.01)
    old = replace(found.jobs[0], limits=GpuLimits(max=2))
    scene = Scene(replace(found, jobs=[old]), found.memory, DEAR)
    assert (scene.market.gains[0] > NO_USE / 2).sum() == 2


def test_nodes_that_are_given_back_tell_the_whole_pause_of_jobs_that_move() -> None:
    found = losing(200.0)
    scene = Scene(found, found.memory, 1.0)
    told = _reasons(scene, [Weighed((NODE,), 1.0, 60.0)], 0, gone=True)
    assert told[1].pause_s == SLOW + 200.0
