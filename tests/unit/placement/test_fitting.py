"""Who gets what when GPUs are short, in small clusters that a person can follow."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from boa.model.cluster import Allocation, Node, Share
from boa.model.events import Shortage
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.placement.fitting import Fitted, Room, Want, can_rent, fit
from boa.scheduler.words.of_shortages import shortage

TYPES = {
    "T4": GpuType(name="T4", price=1.0, gpus_per_node=4),
    "A100": GpuType(name="A100", price=3.0, gpus_per_node=4),
}
T4_ONLY = {"T4": TYPES["T4"]}


@dataclass(frozen=True)
class Linear:
    """So much per GPU of each type."""

    per_gpu: Mapping[str, float]
    base: int = 1

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        if gpu not in self.per_gpu:
            return None
        widths = np.arange(65.0)
        rates: Floats = np.where(widths < self.base, 0.0, widths * self.per_gpu[gpu])
        return np.stack([rates, rates])


FOUR_TIMES = Linear({"T4": 1.0, "A100": 4.0})


def t4(width: int, arrival: float = 0.0, least: int = 1, types: tuple[str, ...] = ("T4",)) -> Want:
    share = Share("T4", width)
    return Want(share=share, min=least, types=types, arrival=arrival, prediction=FOUR_TIMES)


def on(node: int, count: int = 4, gpu: str = "T4") -> Allocation:
    return Allocation(gpu, ((node, count),))


def nodes(count: int, gpu: str = "T4", first: int = 0) -> list[Node]:
    return [Node(first + n, gpu, 4) for n in range(count)]


def widths(fitted: Fitted) -> dict[str, int]:
    return {job: allocation.width for job, allocation in fitted.allocations.items()}


def said(fitted: Fitted) -> dict[str, str]:
    return {job: shortage(short) for job, short in fitted.short.items()}


# Where everything can be had


def test_missing_nodes_are_rented_and_unused_ones_left_alone() -> None:
    there = [*nodes(1), *nodes(1, "A100", first=1)]
    fitted = fit({"a": t4(4), "b": t4(8)}, {"a": on(0)}, there, TYPES, 7, Room())
    assert fitted.allocations == {"a": on(0), "b": Allocation("T4", ((7, 4), (8, 4)))}
    assert fitted.new_nodes == (Node(7, "T4", 4), Node(8, "T4", 4))
    assert (fitted.short, fitted.give_back) == ({}, ())


def test_ready_nodes_come_first() -> None:
    ready_last = [Node(5, "T4", 4), Node(3, "T4", 4)]
    assert fit({"a": t4(4)}, {}, ready_last, T4_ONLY, 9, Room()).allocations == {"a": on(5)}


def test_a_limit_that_is_just_kept_is_no_limit() -> None:
    room = Room(max_nodes={"T4": 2}, spend_left=8.0)
    fitted = fit({"a": t4(8)}, {}, [], T4_ONLY, 0, room)
    assert (widths(fitted), fitted.short) == ({"a": 8}, {})


# Narrower


def test_a_job_is_as_wide_as_there_is_room_for() -> None:
    fitted = fit({"a": t4(16)}, {}, [], T4_ONLY, 0, Room(max_nodes={"T4": 2}))
    assert widths(fitted) == {"a": 8}
    assert said(fitted) == {
        "a": "runs on 8 of 16×T4: no more than 2 nodes of T4 can be had now",
    }
    short = Shortage(gpu_type="T4", width=16, given=("T4", 8), why="max_nodes", most_nodes=2)
    assert fitted.short == {"a": short}


def test_a_newcomer_gets_its_place_from_whoever_has_most() -> None:
    room = Room(max_nodes={"T4": 4})
    before = {
        "wide": Allocation("T4", ((0, 4), (1, 4))),
        "small": on(2),
        "other": Allocation("T4", ((3, 4),)),
    }
    wants = {"wide": t4(8), "small": t4(4), "other": t4(4), "new": t4(8, arrival=9.0)}
    fitted = fit(wants, before, nodes(4), T4_ONLY, 4, room)
    assert widths(fitted) == {"wide": 4, "small": 4, "other": 4, "new": 4}
    assert fitted.allocations["small"] == before["small"], "nobody else is touched"
    assert fitted.allocations["other"] == before["other"]
    assert set(fitted.short) == {"wide", "new"}


@pytest.mark.parametrize(("least", "then"), [(5, {"a": 3, "b": 5}), (6, {"a": 8})])
def test_nobody_is_narrowed_below_its_minimum_or_for_nothing(
    least: int, then: dict[str, int]
) -> None:
    wants = {"a": t4(8, least=3), "b": t4(8, arrival=1.0, least=least)}
    before = {"a": Allocation("T4", ((0, 4), (1, 4)))}
    fitted = fit(wants, before, nodes(2), T4_ONLY, 2, Room(max_nodes={"T4": 2}))
    assert widths(fitted) == then


def test_widths_that_cannot_run_are_skipped() -> None:
    wants = {"a": t4(16)._replace(prediction=Linear({"T4": 1.0}, base=5))}
    assert widths(fit(wants, {}, [], T4_ONLY, 0, Room(max_nodes={"T4": 2}))) == {"a": 8}
    fitted = fit(wants, {}, [], T4_ONLY, 0, Room(max_nodes={"T4": 1}))
    assert fitted.allocations == {}, "4 GPUs are no use to it"


def test_free_gpus_are_used_wherever_they_are() -> None:
    before = {"a": on(0, 3), "b": on(1, 3)}
    wants = {"a": t4(3), "b": t4(3), "new": t4(2)}
    fitted = fit(wants, before, nodes(2), T4_ONLY, 2, Room(max_nodes={"T4": 2}))
    assert fitted.allocations == {**before, "new": Allocation("T4", ((0, 1), (1, 1)))}
    assert fitted.short == {}


def test_who_is_narrow_grows_when_there_is_room_again() -> None:
    wants = {"a": t4(16), "b": t4(4)}
    before = {"a": Allocation("T4", ((0, 4), (1, 4))), "b": on(2)}
    fitted = fit(wants, before, nodes(3), T4_ONLY, 3, Room(max_nodes={"T4": 5}))
    assert widths(fitted) == {"a": 16, "b": 4}
    assert fitted.allocations["b"] == before["b"]


# Another type


def test_who_finds_no_room_goes_to_the_type_that_comes_nearest_in_speed() -> None:
    wants = {"a": t4(4, types=("T4", "A100"))}
    fitted = fit(wants, {}, [], TYPES, 0, Room(max_nodes={"T4": 0}))
    assert fitted.allocations == {"a": on(0, 1, "A100")}, "one A100 is as fast as four T4"
    assert said(fitted) == {
        "a": "runs on 1×A100 instead of 4×T4: no more than 0 nodes of T4 can be had now"
    }


def test_what_the_cloud_said_is_told_to_who_waits() -> None:
    room = Room(max_nodes={"T4": 1}, why={"T4": "quota reached"})
    fitted = fit({"a": t4(8, least=8)}, {}, [], T4_ONLY, 0, room)
    told = "waits for 8×T4: no more than 1 node of T4 can be had now (quota reached)"
    assert said(fitted) == {"a": told}
    assert fitted.short["a"].why == "no_capacity"


def test_who_was_moved_to_another_type_comes_back_when_there_is_room() -> None:
    wants = {"a": t4(4, types=("T4", "A100"))}
    before, there = {"a": on(0, 1, "A100")}, nodes(1, "A100")
    still_full = fit(wants, before, there, TYPES, 1, Room(max_nodes={"T4": 0}))
    assert still_full.allocations == before
    free = fit(wants, before, there, TYPES, 1, Room(max_nodes={"T4": 1}))
    assert free.allocations == {"a": on(1)}


def test_a_type_of_unknown_speed_is_the_last_to_be_tried() -> None:
    types = {**TYPES, "V100": GpuType(name="V100", price=2.0, gpus_per_node=4)}
    wants = {"a": t4(4, types=())}
    fitted = fit(wants, {}, [], types, 0, Room(max_nodes={"T4": 0}))
    assert fitted.allocations["a"].gpu == "A100"
    fitted = fit(wants, {}, [], types, 0, Room(max_nodes={"T4": 0, "A100": 0}))
    assert fitted.allocations["a"] == on(0, 4, "V100")


def test_a_type_that_cannot_be_rented_here_is_named() -> None:
    want = {"a": Want(share=Share("H100", 4), types=("H100",))}
    fitted = fit(want, {}, [], TYPES, 0, Room())
    assert said(fitted) == {"a": "waits for 4×H100: H100 cannot be rented here"}
    assert fitted.short["a"].why == "no_such_type"


# Waiting


def test_who_came_first_is_served_first_and_nobody_waits_for_room_that_is_free() -> None:
    wants = {
        "late": t4(4, arrival=3.0, least=4),
        "early": t4(4, arrival=1.0, least=4),
        "small": t4(2, arrival=4.0),
    }
    fitted = fit(wants, {}, [], T4_ONLY, 0, Room(max_nodes={"T4": 1}))
    assert widths(fitted) == {"early": 4}
    lent = fit(wants, {}, [], T4_ONLY, 0, Room(max_nodes={"T4": 2}))
    assert widths(lent) == {"early": 4, "late": 4}
    without = {job: want for job, want in wants.items() if job != "late"}
    assert widths(fit(without, {}, [], T4_ONLY, 0, Room(max_nodes={"T4": 2}))) == {
        "early": 4,
        "small": 2,
    }


def test_running_jobs_are_not_stopped_for_those_that_came_before_them() -> None:
    wants = {"early": t4(4, arrival=1.0, least=4), "late": t4(4, arrival=3.0, least=4)}
    fitted = fit(wants, {"late": on(0)}, nodes(1), T4_ONLY, 1, Room(max_nodes={"T4": 1}))
    assert fitted.allocations == {"late": on(0)}


def test_a_job_whose_node_is_lost_is_placed_anew() -> None:
    fitted = fit({"a": t4(4)}, {"a": on(0)}, nodes(1, first=1), T4_ONLY, 2, Room())
    assert fitted.allocations == {"a": on(1)}


# The cap on the spend


def test_the_cap_is_never_crossed() -> None:
    fitted = fit({"a": t4(16)}, {}, [], T4_ONLY, 0, Room(spend_left=11.9))
    assert widths(fitted) == {"a": 8}
    assert fitted.short["a"].why == "spend_cap"
    assert said(fitted) == {
        "a": "runs on 8 of 16×T4: another T4 node would cost more than the cap on the spend leaves"
    }


def test_the_cap_is_shared_by_all_types() -> None:
    dear = Want(share=Share("A100", 8), types=("A100",))
    fitted = fit({"a": t4(8), "b": dear}, {}, [], TYPES, 0, Room(spend_left=20.0))
    spend = sum(TYPES[node.gpu].price * node.gpus for node in fitted.new_nodes)
    assert (widths(fitted), spend) == ({"a": 8, "b": 4}, 20.0)


def test_idle_nodes_go_at_once_when_somebody_is_short_because_of_what_they_cost() -> None:
    there = nodes(1, "A100")
    short = fit({"a": t4(8)}, {}, there, TYPES, 1, Room(spend_left=4.0))
    assert (widths(short), short.give_back) == ({"a": 4}, (0,))
    gone = fit({"a": t4(8)}, short.allocations, short.new_nodes, TYPES, 2, Room(spend_left=12.0))
    assert (widths(gone), gone.give_back) == ({"a": 8}, ())


def test_nodes_being_given_back_are_paid_for_until_they_are_gone() -> None:
    room = Room(max_nodes={"T4": 2}, spend_left=100.0, releasing={"T4": 1})
    assert widths(fit({"a": t4(8)}, {}, [], T4_ONLY, 5, room)) == {"a": 4}


def test_a_lowered_cap_costs_the_least_used_nodes() -> None:
    before = {"a": on(0), "b": on(1, 2)}
    wants = {"a": t4(4), "b": t4(2)}
    fitted = fit(wants, before, nodes(3), T4_ONLY, 3, Room(spend_left=-8.0))
    assert fitted.give_back == (1, 2)
    assert widths(fitted) == {"a": 2, "b": 2}
    assert fitted.new_nodes == ()
    # The same again while they are on their way out.
    later = Room(spend_left=-8.0, releasing={"T4": 2})
    again = fit(wants, fitted.allocations, nodes(1), T4_ONLY, 3, later)
    assert (again.allocations, again.give_back) == (fitted.allocations, ())


def test_a_lowered_number_of_nodes_costs_the_least_used_ones() -> None:
    before = {"a": on(0), "b": on(1, 2)}
    fitted = fit({"a": t4(4), "b": t4(2)}, before, nodes(2), T4_ONLY, 2, Room(max_nodes={"T4": 1}))
    assert fitted.give_back == (1,)
    assert widths(fitted) == {"a": 2, "b": 2}


@pytest.mark.parametrize("odd", [Node(0, "T4", 8), Node(0, "H100", 4)])
def test_a_node_of_another_make_than_can_be_rented_now_goes(odd: Node) -> None:
    fitted = fit({"a": t4(4)}, {"a": on(0)}, [odd], T4_ONLY, 1, Room())
    assert fitted.give_back == (0,)
    assert fitted.allocations == {"a": on(1)}


# The question alone


@pytest.mark.parametrize(
    ("room", "answer"),
    [
        (Room(), True),
        (Room(max_nodes={"T4": 3}), True),
        (Room(max_nodes={"T4": 2}), False),
        (Room(max_nodes={"T4": 3}, releasing={"T4": 1}), False),
        (Room(max_nodes={"A100": 0}), True),
        (Room(spend_left=8.0), True),
        (Room(spend_left=7.9), False),
    ],
)
def test_whether_nodes_can_be_rented(room: Room, answer: bool) -> None:
    assert can_rent(nodes(2, first=1), nodes(1), TYPES, room) is answer
