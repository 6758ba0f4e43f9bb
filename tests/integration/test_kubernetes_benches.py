"""bench/kubernetes.py in small: what it measures, it measures."""

from pathlib import Path

import pytest

from _kube_load import load
from _kube_scaling import scaling
from _kube_starts import PLACED, parts, starts
from _table import Measured
from kube.cluster import Cluster
from restart import START

pytestmark = pytest.mark.kubernetes

NAMES = {**PLACED, **START}


def total_is_the_sum_of(table: Measured, *but: str) -> None:
    for row in table.rows:
        found = {name: one for name, one in row.items() if name not in but}
        seconds = [one for one in found.values() if isinstance(one, float)]
        assert sum(seconds) == pytest.approx(2 * float(row["total_s"] or 0), abs=0.002), row


def test_parts_of_a_start_are_between_one_mark_and_the_next() -> None:
    marks = {"created": 2.0, "scheduled": 2.5, "running": 4.0, "began": 4.5, "stepped": 9.0}
    found = parts(1.0, marks, NAMES, "stepped")
    assert found == {
        "total_s": 8.0,
        "create_s": 1.0,
        "schedule_s": 0.5,
        "container_s": 1.5,
        "to_script_s": 0.5,
        "first_step_s": 4.5,
    }


def test_what_the_api_tells_late_has_taken_no_longer_than_what_came_of_it() -> None:
    marks = {"created": 2.0, "scheduled": 3.0, "running": 7.0, "began": 5.0, "stepped": 9.0}
    found = parts(1.0, marks, NAMES, "stepped")
    assert (found["container_s"], found["to_script_s"], found["first_step_s"]) == (2.0, 0.0, 4.0)


def test_starts_on_pods_are_measured_beside_local_ones(kube: Cluster, tmp_path: Path) -> None:
    started, stopped = starts({"fake": kube}, tmp_path, [2], 1, "_kube_light_job.py", print)
    assert [(row["engine"], row["start"]) for row in started.rows] == [
        ("local", "cold"),
        ("local", "warm"),
        ("fake", "cold"),
        ("fake", "warm"),
    ]
    for table in (started, stopped):
        total_is_the_sum_of(table, "over_local")
        assert all(row["over_local"] for row in table.rows if row["engine"] == "fake")
    assert all(row["gate_s"] is not None for row in started.rows if row["engine"] == "fake")


def test_nodes_rented_from_karpenters_double_are_measured(kube: Cluster, tmp_path: Path) -> None:
    came, went = scaling("fake", kube, tmp_path, [2], 1, print)
    for table in (came, went):
        assert [row["nodes"] for row in table.rows] == [2]
        total_is_the_sum_of(table, "per_node_s")


def test_a_service_with_pods_is_measured(kube: Cluster, tmp_path: Path) -> None:
    table = load(kube, tmp_path / "load", pods=3, steady_s=0.0, say=print)
    begin, steady = table.rows
    assert (begin["phase"], steady["phase"]) == ("all start", "steady")
    assert float(begin["POST_per_s"] or 0) > 0
    assert not steady.get("POST_per_s")
    assert all(float(row["step_p50_ms"] or 0) > 0 for row in table.rows)
