"""`boa compare`: frontiers, ratios and what was left out."""

import csv
from pathlib import Path
from typing import Any

import pytest

from integration.runner import CONTRACT, Boa, same

SWEEP = ["--policies", "boa,sia,sia-autoscale,fixed,reservation", "--budgets", "1,8,10,14,19"]
SWEEP += ["--targets", "0.5,0.9", "--widths", "1,4,8", "--perfect"]


def test_a_comparison_has_points_ratios_and_what_was_left_out(
    run: Boa, trace: Path, tmp_path: Path
) -> None:
    path = tmp_path / "points.csv"
    found = run.json("compare", trace, *SWEEP, "--csv", path, "--jobs", 2)
    assert set(found) == {"points", "billing", "comparisons", "left_out"}
    values: dict[str, list[Any]] = {}
    for point in found["points"]:
        assert set(point) >= CONTRACT | {"knob", "value"}
        values.setdefault(point["policy"], []).append((point["knob"], point["value"]))
    assert values == {
        "boa": [("budget", 8), ("budget", 10), ("budget", 14), ("budget", 19)],
        "sia": [("nodes", f"T4={n}") for n in (1, 2, 4, 5)],
        "sia-autoscale": [("target_efficiency", 0.5), ("target_efficiency", 0.9)],
        "fixed": [("width", 1), ("width", 4), ("width", 8)],
        "reservation": [(None, None)],
    }
    (failed,) = found["left_out"]
    assert (failed["policy"], failed["value"]) == ("boa", 1)
    assert "the cheapest plan spends" in failed["why"]
    boa = [p for p in found["points"] if p["policy"] == "boa"]
    low, high = (f(p["spend_per_hour"] for p in boa) for f in (min, max))
    by_knob = {(p["policy"], p["value"]): p for p in found["points"]}
    assert found["comparisons"]
    for ratio in found["comparisons"]:
        rival = by_knob[ratio["policy"], ratio["value"]]
        assert low <= ratio["at_gpus"] == rival["spend_per_hour"] <= high
        assert ratio["jct_ratio"] == pytest.approx(rival["average_jct_s"] / ratio["boa_jct_s"])
        assert ratio["p95_ratio"] > 0
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert len(rows) == len(found["points"])
    alone = run.json("compare", trace, *SWEEP, "--jobs", 1)
    assert [same(p) for p in alone["points"]] == [same(p) for p in found["points"]]


def test_a_point_is_what_simulate_gives(run: Boa, trace: Path) -> None:
    flags = ["--gpus", "T4,A100", "--rescale-s", 5, "--seed", 2]
    found = run.json("compare", trace, "--policies", "boa", "--budgets", 80, *flags)
    alone = run.json("simulate", trace, "--policy", "boa", "--budget", 80, *flags)
    assert same({**alone, "knob": "budget", "value": 80.0} | found["points"][0]) == same(
        {**alone, "knob": "budget", "value": 80.0}
    )
    assert found["comparisons"] == []


def test_a_person_reads_who_is_slower_at_the_same_spend(run: Boa, trace: Path) -> None:
    said = run("compare", trace, *SWEEP, "--jobs", 1)
    for words in (
        "× BOA",
        "budget 14",
        "nodes T4=4",
        "fixed: average JCT ",
        "at the same spend (",
        "left out: boa budget 1: a budget of 1 per hour",
        "physics: perfect knowledge",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--policies", "boa"], 2, "--policies boa needs --budgets"),
        (["--policies", "boa,bob", "--budgets", 9], 2, "--policies: got 'bob'"),
        (["--policies", "boa,boa", "--budgets", 9], 2, "each once"),
        (["--policies", "boa", "--budgets", "9,x"], 2, "--budgets: got 'x'"),
        (["--policies", "boa", "--budgets", "1,2", "--jobs", 1], 3, "the cheapest plan spends"),
        (["--policies", "fixed", "--widths", "99"], 2, "--width: got 99"),
        (["--policies", "fixed", "--widths", "0"], 2, "--widths: got '0'"),
        (["--policies", "fixed", "--jobs", "0"], 2, "--jobs: got '0'"),
        (["--policies", "sia", "--nodes-list", "V100=2"], 2, "--nodes-list: got 'V100'"),
        (["--policies", "sia", "--nodes-list", "T4=0"], 2, "--nodes-list T4: got '0'"),
        (["--policies", "sia", "--nodes-list", "2", "--gpus", "T4,A100"], 2, "--nodes-list: got 2"),
        (["--policies", "sia", "--budgets", "2", "--gpus", "T4,A100"], 2, "needs --nodes-list"),
        (["--policies", "sia-autoscale", "--targets", "2"], 2, "--targets: got '2'"),
        (["--policies", "fixed", "--csv", "/nowhere/x"], 2, "--csv /nowhere/x: there is no folder"),
    ],
)
def test_a_comparison_that_cannot_be_is_one_line(
    run: Boa, trace: Path, flags: list[object], code: int, said: str
) -> None:
    assert run("compare", trace, *flags, code=code) == ""
    assert run.err.startswith("error: ")
    assert run.err.count("\n") == 1
    assert said in run.err


def test_by_the_node_policies_are_compared_at_the_same_bill(
    run: Boa, trace: Path, tmp_path: Path
) -> None:
    page = tmp_path / "bill.html"
    flags = ["--policies", "boa,fixed", "--budgets", "8,14,30", "--widths", "1,2,4", "--perfect"]
    flags += ["--billing", "node", "--provision-s", "60", "--jobs", "1"]
    found = run.json("compare", trace, *flags, "--plot", page)
    assert found["billing"] == "node"
    by_knob = {(p["policy"], p["value"]): p for p in found["points"]}
    assert found["comparisons"]
    for ratio in found["comparisons"]:
        assert ratio["at_gpus"] == by_knob[ratio["policy"], ratio["value"]]["bill_per_hour"]
    assert "Average bill" in page.read_text()
    said = run("compare", trace, *flags)
    for words in ("GPUs billed", "at the same bill (", "whole nodes billed"):
        assert words in said
