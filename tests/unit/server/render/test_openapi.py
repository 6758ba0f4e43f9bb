"""The OpenAPI document is true: every route is in it, and answers in the shapes it promises."""

import gzip
import hashlib
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jsonschema.validators import validator_for
from typing_extensions import is_typeddict

import boa.api
from boa.api import answers
from boa.api.what_if import Simulation
from boa.client import Client
from boa.formats.sweep import read_sweep
from boa.model.access import NOBODY, TokenRecord
from boa.model.notices import NotifyTarget
from boa.runtime.artifacts import ArtifactFolders
from boa.runtime.packages import PackageShelf
from boa.runtime.places import Anywhere
from boa.runtime.report_tokens import report_token
from boa.runtime.vault import Secret
from boa.server.files import JobFiles
from boa.server.render import examples, openapi
from boa.server.what_if.shelf import Shelf
from fakes import NOW, SECRET, FakeService
from learned import learned, learned_on
from unit.server.routes.test_money import plan_state

Operation = tuple[str, str]
ARCHIVE = bytes(1024)
"""A package with nothing in it."""
PACKAGE, DIGEST = gzip.compress(ARCHIVE), hashlib.sha256(ARCHIVE).hexdigest()
REQUESTS: dict[Operation, dict[str, Any]] = {
    ("post", "/api/v1/jobs"): {"json": examples.JOB_SPEC},
    ("post", "/api/v1/jobs/batch"): {"json": {"jobs": [examples.JOB_SPEC]}},
    ("post", "/api/v1/jobs/estimate"): {"json": examples.JOB_SPEC},
    ("get", "/api/v1/packages"): {},
    ("get", "/api/v1/packages/{digest}"): {},
    ("put", "/api/v1/packages/{digest}"): {
        "content": PACKAGE,
        "params": {"total": len(PACKAGE)},
        "headers": {"Content-Type": "application/octet-stream"},
    },
    ("get", "/api/v1/jobs/{job}/artifacts"): {},
    ("get", "/api/v1/jobs/{job}/artifacts/file"): {"params": {"path": "model"}},
    ("get", "/api/v1/jobs"): {"params": {"all": True, "class": "resnet18", "limit": 10}},
    ("get", "/api/v1/jobs/{job}"): {},
    ("post", "/api/v1/jobs/{job}/stop"): {},
    ("post", "/api/v1/jobs/terms"): {"json": examples.JOB_SPEC},
    ("post", "/api/v1/jobs/{job}/pause"): {},
    ("post", "/api/v1/jobs/{job}/resume"): {},
    ("patch", "/api/v1/jobs/{job}"): {"json": {"weight": 2}},
    ("post", "/api/v1/jobs/{job}/resubmit"): {"json": {"changes": {"max_cost": 80}}},
    ("post", "/api/v1/sweeps"): {"json": examples.SWEEP_SPEC},
    ("get", "/api/v1/sweeps"): {"params": {"all": True, "limit": 10}},
    ("get", "/api/v1/sweeps/{sweep}"): {},
    ("post", "/api/v1/sweeps/{sweep}/stop"): {},
    ("get", "/api/v1/jobs/{job}/logs"): {"params": {"tail": 10}},
    ("post", "/api/v1/jobs/{job}/report"): {
        "json": examples.REPORT,
        "headers": {"Authorization": f"Bearer {report_token(SECRET, '1', 1)}"},
    },
    ("get", "/api/v1/cost"): {"params": {"by": "job", "since": 0}},
    ("get", "/api/v1/saved"): {"params": {"month": "2026-09"}},
    ("post", "/api/v1/saved"): {"json": examples.SAVED_QUESTION},
    ("get", "/api/v1/statement"): {"params": {"month": "2026-09"}},
    ("get", "/api/v1/history"): {"params": {"points": 10}},
    ("get", "/api/v1/jobs/{job}/history"): {},
    ("get", "/api/v1/budget"): {},
    ("put", "/api/v1/budget"): {"json": examples.BUDGET_CHANGE},
    ("get", "/api/v1/nodes"): {},
    ("get", "/api/v1/plan"): {},
    ("get", "/api/v1/classes"): {},
    ("get", "/api/v1/classes/{name}"): {},
    ("get", "/api/v1/classes/{name}/why"): {},
    ("post", "/api/v1/classes/{name}/retry"): {},
    ("get", "/api/v1/frontier"): {},
    ("get", "/api/v1/preview"): {"params": {"budget_per_hour": 12}},
    ("get", "/api/v1/what-if/traces"): {},
    ("post", "/api/v1/what-if"): {"json": examples.WHAT_IF},
    ("get", "/api/v1/what-if"): {},
    ("get", "/api/v1/what-if/{simulation}"): {},
    ("post", "/api/v1/what-if/{simulation}/stop"): {},
    ("get", "/api/v1/events"): {"params": {"after": 0}},
    ("get", "/api/v1/live"): {},
    ("get", "/api/v1/whoami"): {},
    ("get", "/api/v1/secrets"): {},
    ("post", "/api/v1/secrets"): {"json": examples.SECRET_VALUE},
    ("delete", "/api/v1/secrets/{name}"): {},
    ("get", "/api/v1/tokens"): {},
    ("post", "/api/v1/tokens"): {"json": examples.TOKEN_REQUEST},
    ("post", "/api/v1/tokens/{name}/revoke"): {},
    ("get", "/api/v1/audit"): {"params": {"since": 0, "who": "", "limit": 10}},
    ("get", "/api/v1/jobs/{job}/logs/runs"): {},
    ("get", "/api/v1/notify"): {},
    ("post", "/api/v1/notify/{name}/test"): {},
    ("get", "/api/v1/health"): {},
    ("get", "/metrics"): {},
}
"""One request for every operation."""
RIGHT = {"job": "1", "name": "small", "simulation": "1", "digest": DIGEST, "sweep": "s1"}
"""What is there to ask for."""
SIMULATION: Simulation = {
    "id": "1",
    "state": "done",
    "trace": "day",
    "policies": ["boa"],
    "budgets": [60.0],
    "gpu_types": ["T4"],
    "asked_at": NOW,
    "points_done": 1,
    "points": 1,
    "error": "",
}
"""One that was asked for before."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[FakeService]:
    Shelf(tmp_path / "what-if").put(SIMULATION, {"points": [], "comparisons": [], "left_out": []})
    nobody = NotifyTarget(name="small", kind="slack", url="http://127.0.0.1:9/")
    files = JobFiles(
        packages=PackageShelf(tmp_path / "packages"),
        artifacts=ArtifactFolders(tmp_path / "artifacts"),
        places=Anywhere(),
    )
    files.packages.receive(DIGEST, NOBODY, offset=0, total=len(PACKAGE), data=PACKAGE)
    (tmp_path / "artifacts" / "1").mkdir(parents=True)
    (tmp_path / "artifacts" / "1" / "model").touch()
    service = FakeService(tmp_path, files=files, targets=(nobody,))
    service.submit(name="first", gpus={"max": 4})
    service.control.run("1")
    service.submit("bert")
    service.control.end("2", "failed", exit_code=1)
    service.control.submit_sweep(read_sweep(examples.SWEEP_SPEC))
    service.control.plan = plan_state()
    service.control.documents = {"small": learned("small", [learned_on("T4")])}
    token = TokenRecord(name="small", role="viewer", digest="ab", created_at=NOW)
    service.control.tokens = {"small": token}
    service.control.vault.adopt(Secret(name="small", sealed="", set_at=NOW))
    yield service
    service.simulations.close()


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    service = FakeService(tmp_path_factory.mktemp("service"))
    return service.ask("GET", "/api/openapi.json").json()


def check(instance: Any, schema: dict[str, Any], document: dict[str, Any]) -> None:
    whole = {**schema, "components": document["components"]}
    kind = validator_for(whole, default=jsonschema.Draft202012Validator)
    kind(whole).validate(instance)


def operations(document: dict[str, Any]) -> dict[Operation, dict[str, Any]]:
    return {
        (method, path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_every_operation_is_tried_below(document: dict[str, Any]) -> None:
    assert operations(document).keys() == REQUESTS.keys()


def test_every_schema_is_one(document: dict[str, Any]) -> None:
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_an_answer_has_the_promised_status_type_and_shape(
    service: FakeService, document: dict[str, Any], method: str, path: str
) -> None:
    promised = operations(document)[method, path]["responses"]
    real = path.format(**RIGHT)
    answer = service.ask(method.upper(), real, **REQUESTS[method, path])
    assert answer.is_success, answer.text
    kind = answer.headers["content-type"].partition(";")[0]
    content = promised[str(answer.status_code)]["content"][kind]
    if kind == "application/json":
        assert content["schema"], "said what it is"
        check(answer.json(), content["schema"], document)


WRONG: list[dict[str, Any]] = [
    {"path": {"job": "99", "name": "nobody", "simulation": "99", "digest": "99", "sweep": "s99"}},
    {"params": {"unheard": "of"}},
    {"params": {"limit": "x", "by": "y", "tail": "z", "after": "x"}},
    {"content": b"{", "headers": {"Content-Type": "application/json"}},
    {"content": b"[1]", "headers": {"Content-Type": "application/json"}},
    {"content": b" " * 1_100_000, "headers": {"Content-Type": "application/json"}},
    {"headers": {"Origin": "https://evil.example"}},
    {"headers": {"Authorization": "Bearer wrong"}},
]


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_a_wrong_request_gets_a_promised_error_or_is_right_after_all(
    service: FakeService, document: dict[str, Any], method: str, path: str
) -> None:
    promised = operations(document)[method, path]["responses"]
    for wrong in WRONG:
        parts = {**RIGHT, **wrong.get("path", {})}
        given = {**REQUESTS[method, path], **{k: v for k, v in wrong.items() if k != "path"}}
        if "content" in given:
            given.pop("json", None)
        answer = service.ask(method.upper(), path.format(**parts), **given)
        assert str(answer.status_code) in promised, (wrong, answer.text)
        if not answer.is_success:
            schema = promised[str(answer.status_code)]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ErrorAnswer"}
            check(answer.json(), schema, document)


def test_bodies_are_described_and_their_examples_are_right(document: dict[str, Any]) -> None:
    tried = 0
    for (method, path), operation in operations(document).items():
        bodies = {"json", "content"} & REQUESTS[method, path].keys()
        assert ("requestBody" in operation) == bool(bodies)
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            if kind != "application/json":
                continue
            check(content["example"], content["schema"], document)
            tried += 1
    assert tried == 13


def test_every_operation_and_parameter_says_what_it_is_for(document: dict[str, Any]) -> None:
    names = set()
    for operation in operations(document).values():
        assert operation["description"]
        assert operation["tags"][0] in {tag["name"] for tag in document["tags"]}
        names.add(operation["operationId"])
    assert len(names) == len(REQUESTS), "each has a name of its own"


def test_what_needs_a_token_says_so(document: dict[str, Any]) -> None:
    assert document["security"] == [{"token": []}]
    apart = {
        path: operation["security"]
        for (_, path), operation in operations(document).items()
        if "security" in operation
    }
    assert apart == {
        "/api/v1/health": [],
        "/api/v1/jobs/{job}/report": [{"report token": []}],
    }
    schemes = document["components"]["securitySchemes"]
    assert {scheme["scheme"] for scheme in schemes.values()} == {"bearer"}


def test_answers_are_described_by_the_docstrings_of_their_shapes(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["Cost"]["properties"]["idle_usd"]["description"].startswith("GPUs that were")
    inherited = schemas["JobDetails"]["properties"]
    said = inherited["rescalings"]["description"]
    assert said == "Changes of GPUs by decision, after the first start."
    assert inherited["class"]["description"]
    assert set(schemas["JobRow"]["required"]) == answers.JobRow.__required_keys__
    assert schemas["JobRow"]["additionalProperties"] is False
    assert schemas["Live"]["properties"]["gone"]["description"]
    assert schemas["Live"]["required"] == ["now", "complete"]


def test_the_client_can_ask_everything_that_people_may(document: dict[str, Any]) -> None:
    """One method for every operation but reports, metrics."""
    asked = {
        "submit": "submit",
        "submit_many": "submit_many",
        "estimate": "estimate",
        "packages": "packages",
        "package": "pack",
        "upload": "pack",
        "artifacts": "artifacts",
        "artifact": "artifact",
        "jobs": "jobs",
        "job": "job",
        "stop": "stop",
        "terms": "terms",
        "pause": "pause",
        "resume": "resume",
        "change": "change",
        "resubmit": "resubmit",
        "submit_sweep": "submit_sweep",
        "sweeps": "sweeps",
        "sweep": "sweep",
        "stop_sweep": "stop_sweep",
        "logs": "logs",
        "log_runs": "log_runs",
        "notify_targets": "notify_targets",
        "notify_test": "notify_test",
        "cost": "cost",
        "history": "cluster_history",
        "job_history": "job_history",
        "budget": "budget",
        "set_budget": "set_budget",
        "nodes": "nodes",
        "plan": "plan",
        "classes": "classes",
        "job_class": "job_class",
        "retry_class": "retry_class",
        "frontier": "frontier",
        "preview": "preview",
        "why": "why",
        "statement": "statement",
        "saved": "saved",
        "ask_saved": "ask_saved",
        "what_if_traces": "what_if_traces",
        "what_if": "what_if",
        "simulations": "simulations",
        "simulation": "simulation",
        "stop_simulation": "stop_simulation",
        "events": "events",
        "live": "live",
        "whoami": "whoami",
        "secrets": "secrets",
        "set_secret": "set_secret",
        "remove_secret": "remove_secret",
        "tokens": "tokens",
        "add_token": "add_token",
        "revoke_token": "revoke_token",
        "audit": "audit",
        "health": "health",
    }
    found = {operation["operationId"] for operation in operations(document).values()}
    assert found - {"report", "prometheus"} == set(asked)
    assert all(hasattr(Client, method) for method in asked.values())


def test_every_shape_is_explained_and_held_to_the_letter() -> None:
    named = [module.name for module in pkgutil.iter_modules(boa.api.__path__, "boa.api.")]
    modules = [importlib.import_module(name) for name in named if not name.endswith(".of_class")]
    with_shapes = {
        module.__name__
        for module in modules
        if any(is_typeddict(a) and a.__module__ == module.__name__ for a in vars(module).values())
    }
    assert with_shapes == {module.__name__ for module in openapi.SHAPES}
