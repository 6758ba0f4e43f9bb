"""The example in docs/concepts/bill.md, worked out again: every figure of it is in the text."""

from pathlib import Path

import pytest

from boa.model.cluster import Allocation, ClusterView, JobView, Node
from boa.model.speedup import Floats, Power
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.policy.boa import Planned, planned_of, within_reach
from boa.policy.market.policy import Market
from boa.policy.market.scene import Scene
from boa.policy.market.waiting import seconds_to_go

TEXT = (Path(__file__).parents[2] / "docs/concepts/bill.md").read_text()
EXAMPLE = " ".join(TEXT[TEXT.index("## An example") : TEXT.index("## What is told")].split())
T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
BOOT_S = 120.0
FOUR, TWO, ONE = (Allocation("T4", ((node, n),)) for node, n in ((1, 4), (1, 2), (2, 1)))


class Nothing:
    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return None


def planned(rescale_s: float) -> Planned:
    classes = tuple(
        JobClass(
            name=name,
            arrivals_per_hour=2.0,
            rescale_s=rescale_s,
            epochs=(Epoch(work=3600.0, speedups={"T4": Power(exponent)}),),
        )
        for name, exponent in (("a", 0.8), ("b", 0.5))
    )
    workload = Workload(gpu_types={"T4": T4}, classes=classes)
    return planned_of(within_reach(workload, 8.0)[0], 0, 0.0)


def view(rescale_s: float = 30.0, **jobs: tuple[float, Allocation | None]) -> ClusterView:
    """Jobs by class, with what is left of them and where they are; the nodes that they are on."""
    nodes = {node for _, held in jobs.values() if held for node, _ in held.nodes}
    return ClusterView(
        now=0.0,
        jobs=[
            JobView(
                id=name,
                job_class=name,
                arrival=0.0,
                serial=0,
                epoch=0,
                left=left,
                prediction=Nothing(),
                allocation=held,
                rescale_s=rescale_s,
            )
            for name, (left, held) in jobs.items()
        ],
        nodes=[Node(node, "T4", 4) for node in sorted(nodes)],
        gpu_types={"T4": T4},
        next_node=9,
        memory=planned(rescale_s),
        boot_s={"T4": BOOT_S},
        reclaim_s={"T4": 30.0},
        let_in=frozenset(jobs),
    )


def said(*figures: str) -> bool:
    return all(figure in EXAMPLE for figure in figures)


def test_what_money_and_the_rest_of_a_job_are_worth() -> None:
    found = planned(30.0)
    assert said(f"ρ = {found.price:.0f} job-seconds")
    for name, worth in found.worths(found.price).items():
        course = worth.course
        to_go = (course.times[0] + 30.0) * worth.values
        figures = [
            f"{float(to_go[course.index['T4', width]]):,.0f}" for width in (1, 2, 3, 4, 8, 12)
        ]
        row = next(line for line in TEXT.splitlines() if f"to go for a new *{name}*" in line)
        assert [cell.strip(" *") for cell in row.split("|")[2:8]] == figures


def test_the_first_job_has_three_nodes_rented_for_it() -> None:
    decision = Market().decide(view(a=(1.0, None)))
    worths = [f"${why.worth_per_hour:.2f}/h" for why in decision.reasons.values()]
    assert worths == ["$6.75/h", "$5.29/h", "$5.29/h"]
    assert said("is worth $6.75/h", "two more at once $5.29/h each")


def test_the_second_is_squeezed_in_while_two_more_boot() -> None:
    found = view(a=(0.8, FOUR), b=(1.0, None))
    scene = Scene(found, found.memory, found.memory.price)
    alone = scene.gains(scene.standings, scene.look_s)
    assert alone.urged is not None, "both are let in"
    true = alone.gains - alone.urged[:, None]
    assert [f"{gain:.2f}" for gain in true[:, [1, 3]].flat] == ["0.63", "1.49", "0.97", "1.86"]
    decision = Market().decide(found)
    assert decision.placements == {"a": TWO, "b": Allocation("T4", ((1, 2),))}
    assert [round(why.worth_per_hour or 0.0, 2) for why in decision.reasons.values()] == [4.51] * 2
    ways, room = ({"a": FOUR}, dict(decision.placements)), scene.room(decision.nodes or ())
    jobs = scene.standings
    waits, squeezes = (seconds_to_go(scene, jobs, way, room, BOOT_S) for way in ways)
    assert said(f"comes to {squeezes:,.0f} s, with nobody moved to {waits:,.0f} s", "next 112 s")
    assert said("0.63 s per second on two GPUs and 1.49 on four", "0.97 on two and 1.86 on four")
    assert scene.look_s == pytest.approx(112.5)


def test_it_would_wait_did_rescaling_take_a_minute() -> None:
    decision = Market().decide(view(60.0, a=(0.8, FOUR), b=(1.0, None)))
    assert decision.placements == {"a": FOUR}
    assert said("Did rescaling take 60 s instead of 30, *b* would wait")


def test_whoever_is_alone_on_a_node_is_widened_and_the_node_stays() -> None:
    decision = Market().decide(view(a=(0.1, FOUR), b=(0.05, ONE)))
    assert decision.placements == {"a": FOUR, "b": Allocation("T4", ((2, 4),))}
    assert said(f"would lose ${decision.reasons[2].worth_per_hour:.2f}/h for $4")
