"""Execution plans as measured, and Rubick's rule on small examples."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from boa.catalogue.plan_times import read_plan_times
from boa.errors import InputError
from boa.goodput.plans import PlanTimes
from boa.model.cluster import Allocation, ClusterView, Decision, JobView, Node, UserRequest
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.rivals.rubick import Rubick, ladder, rescale_threshold

TIMES = PlanTimes.of(
    [
        ("ga", (1,), 1.0),
        ("zero-dp", (1,), 0.9),
        ("ga", (4,), 0.3),
        ("ga", (2, 4), 0.25),
        ("344", (4, 4, 4, 4), 0.1),
    ]
)


@dataclass(frozen=True)
class Known:
    table: Floats

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return self.table


def curve(speeds: dict[int, float], widest: int = 64, per_node: int = 8) -> Known:
    """Rates at these widths, on one node up to its size and across nodes beyond; 0 elsewhere."""
    table = np.zeros((2, widest + 1))
    for width, speed in speeds.items():
        table[int(width > per_node), width] = speed
    return Known(table)


SMALL = curve({1: 1.0, 2: 1.8, 4: 3.0, 8: 4.0})
FLAT = curve({1: 1.0, 2: 1.005, 4: 1.008, 8: 1.009})
LARGE = curve({16: 1.0, 32: 1.5, 64: 2.0})
OFFLOADED = curve({1: 0.02, 8: 0.15, 16: 1.0, 32: 1.5})


def job(name: str, prediction: Known, arrival: float = 0.0, **asked: int | bool) -> JobView:
    return JobView(
        id=name,
        job_class=name,
        arrival=arrival,
        serial=0,
        epoch=0,
        prediction=prediction,
        asked=UserRequest(**asked),  # type: ignore[arg-type]
        rescale_s=260.0,
    )


def view(*jobs: JobView, nodes: int = 1, now: float = 600.0) -> ClusterView:
    return ClusterView(
        now=now,
        jobs=jobs,
        nodes=[Node(n, "A800", 8) for n in range(nodes)],
        gpu_types={"A800": GpuType(name="A800", gpus_per_node=8)},
        next_node=nodes,
    )


def holding(jobs: tuple[JobView, ...], decision: Decision) -> tuple[JobView, ...]:
    return tuple(replace(j, allocation=decision.placements.get(j.id)) for j in jobs)


def widths(decision: Decision) -> dict[str, int]:
    return {name: allocation.width for name, allocation in decision.placements.items()}


# What was measured


def test_the_fastest_plan_counts_and_nodes_are_interchangeable() -> None:
    assert TIMES.best((1,)) == ("zero-dp", 0.9)
    assert TIMES.best((4, 2)) == TIMES.best((2, 4)) == ("ga", 0.25)


def test_an_unmeasured_placement_runs_as_the_best_one_inside_it() -> None:
    assert TIMES.best((3,)) == ("zero-dp", 0.9)
    assert TIMES.best((7, 1)) == ("ga", 0.3)
    assert TIMES.best((8, 3)) == ("ga", 0.25)


def test_whole_nodes_stand_in_for_halves_only_where_nothing_else_fits() -> None:
    halves = PlanTimes.of([("641", (4,) * 6, 5.0)])
    assert halves.best((8, 8, 8)) == ("641", 5.0)
    assert halves.best((8, 8, 7)) is None
    assert TIMES.best((8, 8)) == ("ga", 0.25)


def test_nothing_fits_on_fewer_gpus_than_were_ever_measured() -> None:
    assert PlanTimes.of([("442", (8, 8), 1.0)]).best((8, 7)) is None


def test_rates_are_on_one_node_and_on_the_fewest_across() -> None:
    rates = TIMES.rates(4, 16)
    assert rates.shape == (2, 17)
    assert rates[0] == pytest.approx([0, 1 / 0.9, 1 / 0.9, 1 / 0.9, 1 / 0.3] + [0] * 12)
    assert rates[1, 1] == 0, "a single GPU is never across nodes"
    assert rates[1, [6, 8, 16]] == pytest.approx([4, 4, 10])


def test_plan_times_are_read_and_plans_that_cannot_run_left_out(tmp_path: Path) -> None:
    path = tmp_path / "model.csv"
    path.write_text("exec_plan,placement,iter_time\nga,1,0\nzero-offload,1,9.5\n182,88,1.5\n")
    times = read_plan_times(path)
    assert times.best((1,)) == ("zero-offload", 9.5)
    assert times.best((8, 8)) == ("182", 1.5)
    path.write_text("exec_plan,placement,iter_time\nga,8x,1\n")
    with pytest.raises(InputError, match="one digit per node"):
        read_plan_times(path)


# The rule


@pytest.mark.parametrize(
    ("per_node", "steps"), [(8, (1, 2, 4, 8, 16)), (6, (1, 3, 6, 12)), (1, (1, 2, 3))]
)
def test_every_width_divides_the_next_up_to_a_node(per_node: int, steps: tuple[int, ...]) -> None:
    assert ladder(per_node, steps[-1]) == steps


def test_a_job_alone_takes_all_that_speeds_it_up() -> None:
    assert widths(Rubick().decide(view(job("a", SMALL)))) == {"a": 8}


def test_a_gain_under_one_percent_is_no_gain() -> None:
    assert widths(Rubick().decide(view(job("a", FLAT)))) == {"a": 1}


def test_small_models_stay_inside_one_node() -> None:
    across = curve({1: 1.0, 2: 2.0, 4: 4.0, 8: 8.0, 16: 16.0})
    assert widths(Rubick().decide(view(job("a", across), nodes=2))) == {"a": 8}
    assert widths(Rubick().decide(view(job("a", across, gpus=16), nodes=2))) == {"a": 16}


def test_free_gpus_go_to_the_highest_slope() -> None:
    poor = curve({1: 1.0, 2: 1.2, 4: 1.4, 8: 1.6})
    jobs = (job("poor", poor), job("same", poor, 1.0), job("good", SMALL, 2.0))
    assert widths(Rubick().decide(view(*jobs))) == {"poor": 2, "same": 2, "good": 4}


def test_an_arrival_takes_gpus_where_they_are_missed_the_least() -> None:
    first = (job("a", SMALL), job("b", SMALL, 1.0))
    running = holding(first, Rubick().decide(view(*first)))
    assert [j.allocation and j.allocation.width for j in running] == [4, 4]
    decision = Rubick().decide(view(*running, job("c", SMALL, 599.0)))
    assert widths(decision) == {"a": 4, "b": 2, "c": 2}, "the later of equals gives way"


def test_a_large_model_waits_for_whole_nodes_rather_than_stop_others() -> None:
    small = tuple(job(f"s{n}", SMALL, float(n)) for n in range(9))
    running = holding(small, Rubick().decide(view(*small, nodes=2)))
    decision = Rubick().decide(view(*running, job("large", LARGE, 500.0), nodes=2))
    assert "large" not in decision.placements
    assert len(decision.placements) == 9


def test_whole_nodes_are_cleared_for_a_large_model_where_the_fewest_gpus_move() -> None:
    stays = replace(job("stays", SMALL), allocation=Allocation("A800", ((0, 4),)))
    moves = replace(job("moves", FLAT, 1.0), allocation=Allocation("A800", ((1, 1),)))
    decision = Rubick().decide(view(stays, moves, job("large", LARGE, 500.0), nodes=3))
    assert decision.placements == {
        "stays": Allocation("A800", ((0, 4),)),
        "moves": Allocation("A800", ((0, 1),)),
        "large": Allocation("A800", ((1, 8), (2, 8))),
    }


def test_a_model_that_fits_only_by_offloading_runs_so_until_there_is_room() -> None:
    full = (job("a", SMALL, gpus=8, guaranteed=True),)
    running = holding(full, Rubick().decide(view(*full, nodes=2)))
    llama = job("llama", OFFLOADED, 1.0)
    decision = Rubick().decide(view(*running, llama, nodes=2))
    assert widths(decision) == {"a": 8, "llama": 8}
    alone = Rubick().decide(view(*holding((llama,), decision), nodes=2, now=6000.0))
    assert widths(alone) == {"llama": 16}


def test_guaranteed_jobs_push_best_effort_ones_out() -> None:
    first = (job("a", SMALL), job("b", SMALL, 1.0))
    running = holding(first, Rubick().decide(view(*first)))
    promised = job("c", SMALL, 500.0, gpus=7, guaranteed=True)
    assert widths(Rubick().decide(view(*running, promised))) == {"c": 8}


def test_a_rescaling_must_pay_within_the_jobs_age() -> None:
    assert rescale_threshold(age=520.0, rescalings=0, rescale_s=260.0) == 1.5
    assert rescale_threshold(age=520.0, rescalings=1, rescale_s=260.0) == 2.0
    pair = (job("a", SMALL), job("b", SMALL))
    running = holding(pair, Rubick().decide(view(*pair)))
    left = running[:1]  # at 4, with a gain of a third at 8
    assert widths(Rubick().decide(view(*left, now=700.0))) == {"a": 4}
    assert widths(Rubick().decide(view(*left, now=800.0))) == {"a": 8}
