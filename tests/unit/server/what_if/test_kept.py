"""Simulations that are kept: what a service finds again after a restart."""

import json
from pathlib import Path
from typing import Any

from boa.api.what_if import Comparison, Simulation
from boa.server.what_if.runner import MOST_KEPT, SimulationQuestion, Simulations
from boa.server.what_if.shelf import Shelf
from boa.server.what_if.traces import catalogue_world, generated_trace
from boa.sim.sweep import Asked, SweepGrid
from fakes import NOW
from replacing import make, promptly


def kept(number: int, state: Any = "done") -> Simulation:
    return {
        "id": str(number),
        "state": state,
        "trace": "day",
        "policies": ["boa"],
        "budgets": [60.0],
        "gpu_types": ["T4"],
        "asked_at": NOW,
        "points_done": 0,
        "points": 1,
        "error": "",
    }


def test_what_ran_or_waited_when_the_service_ended_is_stopped(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    result: Comparison = {"points": [], "comparisons": [], "left_out": []}
    shelf.put(kept(1), result)
    shelf.put(kept(2, "running"))
    shelf.put(kept(10, "waiting"))
    found = Simulations(tmp_path)
    assert [(s["id"], s["state"]) for s in found.all()] == [
        ("10", "stopped"),
        ("2", "stopped"),
        ("1", "done"),
    ]
    assert "result" not in found.all()[-1]
    assert found.get("1")["result"] == result
    assert json.loads((tmp_path / "2.json").read_text())["state"] == "stopped"


def test_files_that_are_no_simulations_are_left_alone(tmp_path: Path) -> None:
    Shelf(tmp_path).put(kept(3))
    for name, text in (("1.json", "{"), ("2.json", "[]"), ("4.json", "{}"), ("x.json", "")):
        (tmp_path / name).write_text(text)
    make("pipe", tmp_path / "5.json")
    assert [s["id"] for s in promptly(lambda: Simulations(tmp_path).all())] == ["3"]


def question() -> SimulationQuestion:
    world = catalogue_world("day", generated_trace("day"), None, {})
    grid = SweepGrid(budgets=[60.0])
    return SimulationQuestion(
        trace="day", world=world, policies=("boa",), grid=grid, asked=Asked(), points=1
    )


def test_the_newest_fifty_are_kept(tmp_path: Path) -> None:
    for number in range(1, MOST_KEPT + 1):
        Shelf(tmp_path).put(kept(number))
    simulations = Simulations(tmp_path)
    assert simulations.ask(question())["id"] == "51"
    simulations.close()
    assert len(simulations.all()) == MOST_KEPT
    assert [s["id"] for s in Simulations(tmp_path).all()] == [str(n) for n in range(51, 1, -1)]


def test_a_folder_that_cannot_be_written_costs_only_the_memory_of_it(tmp_path: Path) -> None:
    (tmp_path / "what-if").write_text("a file")
    simulations = Simulations(tmp_path / "what-if")
    asked = simulations.ask(question())
    simulations.close()
    assert simulations.get(asked["id"])["state"] == "stopped"
