"""The published schemas accept what the readers accept, and refuse what they refuse."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

import boa
from boa.errors import InputError
from boa.formats.plan import PLAN, parse_plan
from boa.formats.workload import WORKLOAD as FORMAT
from boa.solver.solution import as_document
from documents import WORKLOAD


def accepts(schema: dict[str, Any], document: Any) -> bool:
    return bool(Draft202012Validator(schema).is_valid(document))


def as_json(text: str) -> Any:
    """YAML as a JSON document: the keys of tables become text."""
    return json.loads(
        json.dumps(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    )


@pytest.mark.parametrize("schema", [FORMAT.schema(), PLAN.schema()], ids=["workload", "plan"])
def test_the_schemas_are_valid_schemas_that_explain_themselves(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    assert schema["description"]
    assert json.loads(json.dumps(schema, allow_nan=False)) == schema


def test_the_contract_s_example_is_a_workload() -> None:
    assert accepts(FORMAT.schema(), WORKLOAD)
    boa.parse_workload(WORKLOAD)


@pytest.mark.parametrize("name", ["newtrace-t4", "newtrace-hetero", "rubick-a800"])
def test_the_shipped_examples_are_workloads(examples: Path, name: str) -> None:
    document = as_json((examples / f"{name}.yaml").read_text("utf-8"))
    if name != "rubick-a800":  # a thousand tables take the validator long: a few are enough
        for job_class in document["classes"]:
            job_class["epochs"] = job_class["epochs"][:2]
    assert accepts(FORMAT.schema(), document)


def test_gpu_types_may_be_left_to_their_defaults() -> None:
    document = {**WORKLOAD, "gpu_types": {"T4": None, "A100": {}}}
    assert accepts(FORMAT.schema(), document)
    assert boa.parse_workload(document).gpu_types["T4"].price == 1.0


DELETE = object()


def changed(path: str, value: Any) -> Any:
    document: Any = copy.deepcopy(WORKLOAD)
    *way, last = (int(key) if key.isdigit() else key for key in path.split("."))
    here = document
    for key in way:
        here = here[key]
    if value is DELETE:
        del here[last]
    else:
        here[last] = value
    return document


EPOCH = "classes.0.epochs.0"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2),
        ("version", DELETE),
        ("extra", 1),
        ("gpu_types", {}),
        ("gpu_types.T4.price", 0),
        ("gpu_types.T4.price", "1"),
        ("gpu_types.T4.gpus_per_node", 1.5),
        ("gpu_types.T4.nodes", 3),
        ("classes", []),
        ("classes", {}),
        ("classes.0.name", ""),
        ("classes.0.name", DELETE),
        ("classes.0.arrivals_per_hour", -1),
        ("classes.0.weight", 0),
        ("classes.0.rescale_s", -1),
        ("classes.0.min_gpus", 0),
        ("classes.0.max_gpus", {"T4": 0}),
        ("classes.0.max_jct_s", 0),
        ("classes.0.epochs", []),
        ("classes.0.epochs", DELETE),
        (f"{EPOCH}.work_s", 0),
        (f"{EPOCH}.work_s", DELETE),
        (f"{EPOCH}.speedup", {}),
        (f"{EPOCH}.speedup.T4", {}),
        (f"{EPOCH}.speedup.T4", {"amdahl": 0.5, "power": 0.5}),
        (f"{EPOCH}.speedup.T4", {"amdahl": 1.5}),
        (f"{EPOCH}.speedup.T4", {"table": {}}),
        (f"{EPOCH}.speedup.T4", {"table": {"0": 1.0}}),
        (f"{EPOCH}.speedup.T4", {"table": {"one": 1.0}}),
        (f"{EPOCH}.speedup.T4", {"table": {"1": 0}}),
        (f"{EPOCH}.speedup.T4", {"power": 0.5, "scale": 0}),
    ],
)
def test_schema_and_reader_refuse_the_same(path: str, value: Any) -> None:
    document = changed(path, value)
    assert not accepts(FORMAT.schema(), document)
    with pytest.raises(InputError):
        boa.parse_workload(document)


@pytest.mark.parametrize(
    "rules", [{}, {"routing": "migrate"}, {"routing": "epoch", "rescaling": False}]
)
def test_every_plan_we_write_fits_the_plan_schema(rules: dict[str, Any]) -> None:
    workload = boa.parse_workload(WORKLOAD)
    document = as_document(boa.plan(workload, 20.0, **rules))
    errors = [e.message for e in Draft202012Validator(PLAN.schema()).iter_errors(document)]
    assert errors == []
    described = set(PLAN.schema()["properties"]) | {"classes"}
    assert set(document) <= described, "every field we write is described"


@pytest.mark.parametrize(
    "variants",
    [
        [],
        [{"share": 1, "widths": [1, 1, 1]}],
        [{"share": 1, "gpu_type": "T4", "gpu_types": ["T4"] * 3, "widths": [1, 1, 1]}],
        [{"share": -1, "gpu_type": "T4", "widths": [1, 1, 1]}],
        [{"share": 1, "gpu_type": "T4", "widths": [0, 1, 1]}],
        [{"share": 1, "gpu_type": "T4", "widths": []}],
        [{"gpu_type": "T4", "widths": [1, 1, 1]}],
        [{"share": 1, "gpu_type": "T4", "widths": [1, 1, 1], "width": 2}],
    ],
)
def test_plan_schema_and_plan_reader_refuse_the_same(variants: list[Any]) -> None:
    document = {"classes": [{"name": "resnet18", "variants": variants}]}
    assert not accepts(PLAN.schema(), document)
    with pytest.raises(InputError):
        parse_plan(document, boa.parse_workload(WORKLOAD))
