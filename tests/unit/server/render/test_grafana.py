"""The Grafana dashboard in examples/ asks for what the service tells."""

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fakes import FakeService
from unit.server.routes.test_money import plan_state

FILE = Path(__file__).parents[4] / "examples" / "grafana-dashboard.json"
ROWS = ["Budget", "Jobs", "Cluster", "Plan", "Service"]
METRIC = re.compile(r"\bboa_\w+")
SELECTED = re.compile(r"\b(boa_\w+)\{([^}]*)\}")
BY = re.compile(r"\bby \((\w+)\) \(")


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


@pytest.fixture
def told(tmp_path: Path) -> dict[str, set[str]]:
    """Labels by name of every sample that a service with all there is tells."""
    service = FakeService(tmp_path)
    control = service.control
    service.submit()
    control.put(replace(control.run(service.submit()), metrics={"noise_scale": 5.0}))
    control.plan = plan_state()
    control.money = replace(control.money, max_spend=30.0)
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(service.ask("GET", "/metrics").text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def expressions(dashboard: dict[str, Any]) -> list[str]:
    panels = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())
    ]
    variables = [
        variable["query"]["query"]
        for variable in dashboard["templating"]["list"]
        if variable["type"] == "query"
    ]
    return panels + variables


def test_every_metric_that_it_asks_for_is_told(
    dashboard: dict[str, Any], told: dict[str, set[str]]
) -> None:
    asked = {name for text in expressions(dashboard) for name in METRIC.findall(text)}
    assert len(asked) > 30
    assert asked <= told.keys(), asked - told.keys()


def test_every_metric_that_is_told_is_shown(
    dashboard: dict[str, Any], told: dict[str, set[str]]
) -> None:
    asked = {name for text in expressions(dashboard) for name in METRIC.findall(text)}
    kept_back = {"boa_last_event", "boa_plans_total"}
    assert {name for name in told if not name.endswith("_created")} - asked == kept_back


def test_sums_are_by_labels_that_the_metrics_have(
    dashboard: dict[str, Any], told: dict[str, set[str]]
) -> None:
    for text in expressions(dashboard):
        labels = set(BY.findall(text))
        for name in METRIC.findall(text):
            assert labels <= told[name], text


def test_expressions_are_whole_and_choose_the_server(dashboard: dict[str, Any]) -> None:
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"]
            for opened, closed in ("()", "{}", "[]"):
                assert text.count(opened) == text.count(closed), text
            selected = SELECTED.findall(text)
            assert [name for name, _ in selected] == METRIC.findall(text), text
            assert {what for _, what in selected} == {'instance=~"$instance"'}, text


def test_every_panel_asks_the_chosen_data_source(dashboard: dict[str, Any]) -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    for panel in dashboard["panels"]:
        if panel["type"] != "row":
            assert panel["datasource"] == chosen
            assert panel["targets"]
            assert all(target["datasource"] == chosen for target in panel["targets"])
            references = [target["refId"] for target in panel["targets"]]
            assert len(set(references)) == len(references)
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert variables["datasource"]["query"] == "prometheus"
    used = {name for text in expressions(dashboard) for name in re.findall(r"\$(\w+)", text)}
    assert used - {"__range", "__rate_interval"} <= variables.keys()


def test_panels_have_their_own_ids_and_places(dashboard: dict[str, Any]) -> None:
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)


def test_it_has_its_rows_and_a_name_that_stays(dashboard: dict[str, Any]) -> None:
    assert [panel["title"] for panel in dashboard["panels"] if panel["type"] == "row"] == ROWS
    assert (dashboard["uid"], dashboard["id"]) == ("boa-constrictor", None)
    assert dashboard["schemaVersion"] >= 39
