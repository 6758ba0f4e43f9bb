"""`boa frontier --billing node --boot-s`: bill and JCT foretold at a few of its budgets."""

from pathlib import Path
from typing import Any

import pytest

from boa.model.workload import Workload
from boa.sim import foretold as sim
from boa.sim.foretold import Figure, Foretold
from integration.runner import Boa

GOOD = """\
version: 1
gpu_types:
  T4: {price: 1.0, gpus_per_node: 4}
classes:
  - name: a
    arrivals_per_hour: 4
    rescale_s: 20
    epochs:
      - {work_s: 600, speedup: {T4: {amdahl: 0.9}}}
  - name: b
    arrivals_per_hour: 2
    epochs:
      - {work_s: 9000, speedup: {T4: {power: 0.8}}}
"""
NODES = ("--billing", "node", "--boot-s", "60")


@pytest.fixture
def workload(tmp_path: Path) -> str:
    path = tmp_path / "workload.yaml"
    path.write_text(GOOD)
    return str(path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Budgets that were simulated: here a bill of 1.1 times as much, and 1,000 s."""
    budgets: list[float] = []

    def quick(workload: Workload, budget: float, **times: Any) -> Foretold:
        budgets.append(budget)
        return Foretold(
            bill=Figure(mean=1.1 * budget, error=0.5),
            jct=Figure(mean=1000.0, error=20.0),
            over_bound=Figure(mean=1.2, error=0.02),
            draws=3,
            jobs=240,
        )

    monkeypatch.setattr(sim, "foretold", quick)
    return budgets


def test_five_budgets_and_the_marked_one_are_simulated(
    run: Boa, workload: str, asked: list[float]
) -> None:
    found = run.json("frontier", workload, *NODES, "--points", 12, "--budget", 40)
    assert found["simulated_per_hour"] == asked == sorted(asked)
    assert len(asked) == 6
    points = found["points"]
    assert {points[0]["budget_per_hour"], points[-1]["budget_per_hour"], 40.0} < set(asked)
    told = [p["budget_per_hour"] for p in points if p["foretold"] is not None]
    assert told == [budget for budget in asked if budget != 40]
    assert found["chosen"]["foretold"]["bill_per_hour"] == pytest.approx(44)
    assert found["chosen"]["foretold"]["jct_error_s"] == 20
    assert found["chosen"]["foretold"]["by"] == "simulation"


def test_a_person_reads_both_and_how_they_were_found(
    run: Boa, workload: str, asked: list[float]
) -> None:
    said = run("frontier", workload, *NODES, "--points", 3)
    assert "foretold bill" in said
    assert "16.7 min ± 20 s" in said
    assert "simulated at 3 budgets, 3 draws of 240 jobs each" in said


def test_nobody_reads_that_money_is_of_no_use_where_nodes_that_boot_have_one(
    run: Boa, workload: str, asked: list[float]
) -> None:
    assert "buys nothing, unless nodes boot" in run("frontier", workload, *NODES, "--points", 3)
    said = " ".join(run("plan", workload, *NODES, "--budget", 500).split())
    assert "no use for it, unless nodes boot" in said
    assert "unless" not in run("plan", workload, "--billing", "node", "--budget", 500)


@pytest.mark.parametrize("times", ["--boot-s", "--reclaim-s"])
def test_nodes_take_a_day_at_most(run: Boa, workload: str, times: str) -> None:
    """With longer ones the simulation would not seem to end."""
    run("plan", workload, "--budget", 40, "--billing", "node", times, "1e12", code=2)
    expected = f"{times}: got '1e12'; expected a number of seconds from 0 to 86400 (a day)"
    assert expected in run.err


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_the_picture_has_what_is_foretold(
    run: Boa, workload: str, asked: list[float], suffix: str, tmp_path: Path
) -> None:
    picture = tmp_path / f"frontier.{suffix}"
    run("frontier", workload, *NODES, "--points", 3, "--no-glue", "--plot", picture)
    assert "foretold" in picture.read_text("utf-8") or suffix == "svg"
    assert picture.stat().st_size > 5_000


def test_without_boots_nothing_is_simulated(run: Boa, workload: str, asked: list[float]) -> None:
    found = run.json("frontier", workload, "--billing", "node", "--points", 3)
    assert asked == []
    assert "simulated_per_hour" not in found
    assert "foretold" not in found["points"][0]
