"""The paper's tables and figures that need no simulation, redone from the public data."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from boa.paper.pool import ResultStore
from boa.paper.registry import STUDIES
from boa.paper.study import QUICK, Evidence, StudyOutcome


def redone(name: str, data: Path, folder: Path) -> StudyOutcome:
    evidence = Evidence(ResultStore(folder, data), QUICK, data)
    study = STUDIES[name]
    assert study.runs(evidence) == []
    outcome = study.result(evidence)
    assert isinstance(study.draw(outcome), Figure)
    return outcome


def test_workload_table_all_but_one_share_is_as_printed(shared_data: Path, tmp_path: Path) -> None:
    outcome = redone("workload-table", shared_data, tmp_path)
    off = [
        row["model"]
        for row in outcome.rows
        if abs(row["share_percent"] - row["printed_percent"]) > 0.011
    ]
    assert off == ["YOLOv3"]
    assert outcome.verdict == "partly"


def test_speedups_are_sublinear_and_change_during_training(
    shared_data: Path, tmp_path: Path
) -> None:
    outcome = redone("speedups", shared_data, tmp_path)
    assert outcome.verdict == "matches"
    wide = [row for row in outcome.rows if row["gpus"] == 64]
    assert [row["phase"] for row in wide] == ["after 10 % of training", "at its end"]
    assert all(row["gpu_hours_over_one_gpu"] > 2 for row in wide)


def test_routing_at_arrival_is_within_five_percent(shared_data: Path, tmp_path: Path) -> None:
    outcome = redone("routing", shared_data, tmp_path)
    assert outcome.verdict == "matches"
    assert 0 < outcome.numbers["most"] < 0.05


@pytest.mark.slow
def test_algorithm_1_is_near_the_optimum_and_never_better(
    shared_data: Path, tmp_path: Path
) -> None:
    outcome = redone("algorithm-1", shared_data, tmp_path)
    above = [row["above"] for row in outcome.rows if row["above"] is not None]
    assert len(above) >= 18
    assert all(value >= -1e-9 for value in above)
    assert outcome.numbers["pollux"] < 0.1
