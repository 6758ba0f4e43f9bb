"""Reading plan files: what is accepted, and one error with its path for what is not."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import boa
from boa.errors import InputError
from boa.formats.plan import PlanSettings, load_plan, parse_plan
from boa.solver.solution import as_document

WORKLOAD: dict[str, Any] = {
    "version": 1,
    "gpu_types": {"T4": {"price": 1.0}, "A100": {"price": 3.0}},
    "classes": [
        {
            "name": "small",
            "arrivals_per_hour": 6,
            "rescale_s": 30,
            "max_gpus": 8,
            "epochs": [
                {"work_s": 600, "speedup": {"T4": {"amdahl": 0.9}, "A100": {"power": 0.8}}},
                {"work_s": 900, "speedup": {"T4": {"amdahl": 0.95}, "A100": {"power": 0.9}}},
            ],
        },
        {
            "name": "large",
            "arrivals_per_hour": 1,
            "min_gpus": 2,
            "epochs": [{"work_s": 4000, "speedup": {"A100": {"table": {2: 2.0, 4: 3.5, 8: 6.0}}}}],
        },
    ],
}
MINIMAL: dict[str, Any] = {
    "classes": [
        {"name": "small", "variants": [{"share": 1, "gpu_type": "T4", "widths": [1, 2]}]},
        {"name": "large", "variants": [{"share": 1, "gpu_type": "A100", "widths": [4]}]},
    ]
}


@pytest.fixture
def workload() -> boa.Workload:
    return boa.parse_workload(WORKLOAD)


def variant(**changes: Any) -> dict[str, Any]:
    """The minimal plan with another first variant."""
    document = copy.deepcopy(MINIMAL)
    document["classes"][0]["variants"][0].update(changes)
    return document


def test_names_and_variants_are_enough(workload: boa.Workload) -> None:
    plan, settings = parse_plan(MINIMAL, workload)
    assert plan["small"].variants[0].widths == (1, 2)
    assert plan["small"].variants[0].gpu_types == ("T4", "T4")
    assert settings == PlanSettings(rescaling=True, routing="class", billing="gpu")


def test_classes_may_come_in_any_order(workload: boa.Workload) -> None:
    turned = {"classes": MINIMAL["classes"][::-1]}
    assert parse_plan(turned, workload) == parse_plan(MINIMAL, workload)


def test_fractional_widths_are_widths(workload: boa.Workload) -> None:
    plan, _ = parse_plan(variant(widths=[1.5, 2.25]), workload)
    assert plan["small"].variants[0].widths == (1.5, 2.25)


def test_a_job_may_change_its_gpu_type(workload: boa.Workload) -> None:
    document = variant(gpu_types=["T4", "A100"])
    del document["classes"][0]["variants"][0]["gpu_type"]
    plan, _ = parse_plan(document, workload)
    assert len(set(plan["small"].variants[0].gpu_types)) == 2


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"rescaling": False},
        {"routing": "migrate"},
        {"routing": "epoch", "rescaling": False},
        {"billing": "node"},
    ],
)
def test_every_plan_we_write_reads_back_as_itself(
    workload: boa.Workload, tmp_path: Path, rules: dict[str, Any]
) -> None:
    solution = boa.plan(workload, 9.0, **rules)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(as_document(solution)))
    plan, settings = load_plan(path, workload)
    assert plan == solution.plan
    assert settings == PlanSettings(**{"rescaling": True, **rules})
    again = boa.evaluate(workload, plan, rescaling=settings.rescaling, billing=settings.billing)
    assert again == solution.outcome


def broken(path: str, value: Any) -> dict[str, Any]:
    """The minimal plan with a value put at a path such as `classes.0.name`."""
    document: Any = copy.deepcopy(MINIMAL)
    *way, last = (int(key) if key.isdigit() else key for key in path.split("."))
    here = document
    for key in way:
        here = here[key]
    here[last] = value
    return dict(document)


ROUTES = {"share": 0.5, "gpu_type": "T4", "width": 1}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], "the file"),
        ({}, "classes"),
        ({"classes": []}, "classes"),
        ({"classes": [3]}, "classes[0]"),
        ({"classes": MINIMAL["classes"][:1]}, "classes"),
        ({"classes": [*MINIMAL["classes"], MINIMAL["classes"][0]]}, "classes[2].name"),
        (broken("version", 2), "version"),
        (broken("version", True), "version"),
        (broken("rescaling", "no"), "rescaling"),
        (broken("routing", "any"), "routing"),
        (broken("billing", ["gpu"]), "billing"),
        (broken("classes.0.name", "unknown"), "classes[0].name"),
        (broken("classes.0.name", 7), "classes[0].name"),
        (broken("classes.0.variants", []), "classes[0].variants"),
        (broken("classes.0.epochs", []), "classes[0]"),
        ({"classes": [{"name": "small"}, MINIMAL["classes"][1]]}, "classes[0]"),
        (variant(share=0.9), "classes[0].variants"),
        (variant(share=float("nan")), "classes[0].variants[0].share"),
        (variant(share=-0.1), "classes[0].variants[0].share"),
        (variant(widths=[1]), "classes[0].variants[0].widths"),
        (variant(widths=[1, 2, 3]), "classes[0].variants[0].widths"),
        (variant(widths="12"), "classes[0].variants[0].widths"),
        (variant(widths=[0, 2]), "classes[0].variants[0].widths[0]"),
        (variant(widths=[1, 9]), "classes[0].variants[0].widths[1]"),
        (variant(widths=[1, True]), "classes[0].variants[0].widths[1]"),
        (variant(gpu_type="H100"), "classes[0].variants[0].gpu_type"),
        (variant(gpu_type=["T4"]), "classes[0].variants[0].gpu_type"),
        (variant(gpu_types=["T4", "T4"]), "classes[0].variants[0]"),
        (variant(width=3), "classes[0].variants[0].width"),
        (broken("classes.1.variants.0.gpu_type", "T4"), "classes[1].variants[0].gpu_type"),
        (broken("classes.1.variants.0.widths", [1]), "classes[1].variants[0].widths[0]"),
    ],
)
def test_one_error_names_the_field(document: Any, field: str, workload: boa.Workload) -> None:
    with pytest.raises(InputError) as wrong:
        parse_plan(document, workload)
    assert wrong.value.field == field
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("epochs", "field"),
    [
        ([[ROUTES]], "classes[0].epochs"),
        ([[ROUTES], [ROUTES, ROUTES]], "classes[0].epochs[0]"),
        ([[ROUTES, ROUTES], []], "classes[0].epochs[1]"),
        ([[{**ROUTES, "width": 99}], [ROUTES]], "classes[0].epochs[0][0].width"),
        ([[{**ROUTES, "gpu_type": "?"}], [ROUTES]], "classes[0].epochs[0][0].gpu_type"),
        ([[{"share": 1}], [ROUTES]], "classes[0].epochs[0][0].gpu_type"),
    ],
)
def test_routes_per_epoch_are_checked_too(epochs: Any, field: str, workload: boa.Workload) -> None:
    document = {"classes": [{"name": "small", "epochs": epochs}, MINIMAL["classes"][1]]}
    with pytest.raises(InputError) as wrong:
        parse_plan(document, workload)
    assert wrong.value.field == field


def test_shares_may_be_off_by_rounding(workload: boa.Workload) -> None:
    third = {"share": 0.3333333, "gpu_type": "T4", "widths": [1, 2]}
    document = broken("classes.0.variants", [third, third, third])
    assert len(parse_plan(document, workload)[0]["small"].variants) == 3
