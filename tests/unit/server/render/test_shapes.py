"""Shapes say all there is: what the project really computes fits them to the letter."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

import boa
from boa.api.classes import ClassDocument
from boa.api.plans import Plan
from boa.api.what_if import Comparison
from boa.server.app import described
from boa.server.render.openapi import forbid_extras
from boa.sim.comparison import compared
from boa.sim.sweep import Asked, SweepGrid, points_of, run_points
from boa.solver.solution import as_document
from documents import WORKLOAD
from simulations import ADAPTIVE, job, world
from unit.scheduler.learn.test_profiler_plots import learned

FREE: set[str] = {
    "Event.data",  # by its kind
    "ComparisonPoint.physics",  # the simulator's settings, as they are
    "ComparisonPoint",  # beside its figures, what its policy wants told
}
"""What answers hold that no shape describes."""


def fits(shape: Any, document: Any) -> None:
    """To the letter; and it goes over the wire as it is."""
    forbid_extras()
    sent = json.loads(json.dumps(document, allow_nan=False))
    adapter = TypeAdapter(shape)
    checked = adapter.validate_python(sent)
    assert json.loads(adapter.dump_json(checked)) == sent


@pytest.mark.parametrize(
    "rules", [{}, {"routing": "migrate"}, {"routing": "epoch", "rescaling": False}]
)
def test_a_plan_has_its_shape_under_all_rules(rules: dict[str, Any]) -> None:
    fits(Plan, as_document(boa.plan(boa.parse_workload(WORKLOAD), 20.0, **rules)))


def test_widths_stay_whole_on_the_wire() -> None:
    forbid_extras()
    plan = as_document(boa.plan(boa.parse_workload(WORKLOAD), 20.0))
    sent = TypeAdapter(Plan).dump_json(TypeAdapter(Plan).validate_python(plan))
    widths = [v["widths"] for c in json.loads(sent)["classes"] for v in c["variants"]]
    assert all(isinstance(width, int) for row in widths for width in row)


def test_what_was_learned_of_a_class_has_its_shape() -> None:
    fits(ClassDocument, learned().document("net", 0.0))


@pytest.mark.parametrize("policies", [("boa", "pollux-autoscale", "sia"), ("boa", "fixed")])
def test_a_comparison_has_its_shape(policies: tuple[str, ...]) -> None:
    of = world([job(f"j{n}", 60.0 * n, ADAPTIVE[0]) for n in range(6)], {"T4": 4})
    grid = SweepGrid(budgets=[0.01, 4.0, 8.0], targets=[0.5], widths=[1, 2])
    outcomes = run_points(of, points_of(of, policies, grid), Asked())
    result, left_out = compared(of, outcomes)
    assert left_out, "a budget that cannot keep up"
    fits(Comparison, result)


def test_nothing_in_an_answer_is_left_undescribed() -> None:
    document = described()
    schemas = document["components"]["schemas"]
    asked: dict[str, Any] = {}
    for methods in document["paths"].values():
        for operation in methods.values():
            for answer in operation["responses"].values():
                for content in answer.get("content", {}).values():
                    _gather(content.get("schema", {}), schemas, asked)
    assert {"Plan", "ClassDocument", "Comparison", "JobSpec", "Why", "Preview"} <= asked.keys()
    assert {path for name in asked for path in _free(name, schemas[name])} == FREE


def _gather(schema: Any, schemas: dict[str, Any], found: dict[str, Any]) -> None:
    """Named schemas that this one leads to."""
    if isinstance(schema, list):
        for part in schema:
            _gather(part, schemas, found)
    elif isinstance(schema, dict):
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        if name and name not in found:
            found[name] = schemas[name]
            _gather(schemas[name], schemas, found)
        for part in schema.values():
            _gather(part, schemas, found)


def _free(path: str, schema: dict[str, Any]) -> Iterator[str]:
    """Where a schema says of an object only that it is one."""
    if schema.get("additionalProperties") is True:
        yield path
    for name, field in schema.get("properties", {}).items():
        yield from _free(f"{path}.{name}", field)
