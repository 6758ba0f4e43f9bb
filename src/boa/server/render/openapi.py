"""The OpenAPI document: what FastAPI finds in the routes, and what it cannot know."""

import ast
import inspect
from itertools import pairwise
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import is_typeddict

from boa.api import (
    access,
    answers,
    classes,
    estimates,
    files,
    history,
    money,
    notify,
    plans,
    reports,
    secrets,
    sweeps,
    terms,
    what_if,
)
from boa.server.http.errors import DESCRIPTIONS, ERROR
from boa.server.http.guard import OPEN
from boa.server.render import examples

PATH = "/api/openapi.json"
REPORT_PATH = "/api/v1/jobs/{job}/report"
ABOUT = """\
Submit training jobs and a budget; the service learns how the jobs speed up, plans, rents nodes, and
starts, rescales and stops the jobs so that they finish as soon as the budget allows.

Times are Unix seconds of the server's clock, durations are seconds (`_s`), rates are per hour
(`_per_hour`), money is USD. Every error is `{"error": {"message", "exit_code", "field"?,
"expected"?}}`. Bodies are at most 1 MiB, of what-if 8 MiB, of batches 16 MiB.
"""
TAGS = [
    {"name": "jobs", "description": "Submit jobs, look at them, stop them, read their logs."},
    {"name": "money", "description": "The budget, and what was spent."},
    {"name": "cluster", "description": "Rented nodes."},
    {"name": "planning", "description": "The plan in force, and what was learned of classes."},
    {"name": "what if", "description": "Simulate other policies and budgets."},
    {"name": "events", "description": "What happened, as a list or as a stream."},
    {"name": "secrets", "description": "Values that jobs get and nobody is shown."},
    {"name": "access", "description": "Who asks, tokens, the audit log."},
    {"name": "notify", "description": "Whom notices go to."},
    {"name": "service", "description": "Is it up? Metrics."},
    {"name": "running jobs", "description": "What a job's own process asks for."},
]
_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "The server's own token ($BOA_TOKEN, or the one in its data folder), or one "
        "that an admin has given out. Started with --no-token, it wants none, and answers to its "
        "own machine only.",
    },
    "report token": {
        "type": "http",
        "scheme": "bearer",
        "description": "$BOA_REPORT_TOKEN of the run.",
    },
}
SHAPES = (
    *(answers, access, plans, classes, estimates, files, history, what_if, notify),
    *(money, reports, secrets, sweeps, terms),
)
_STRICT = ConfigDict(extra="forbid", defer_build=True)  # or a service looks at all when it starts
_OPEN = ConfigDict(extra="allow", defer_build=True)
WITH_MORE = (what_if.ComparisonPoint,)
"""Shapes that may have fields beside those they name."""
_CLASS = "Jobs that share model and data."


def forbid_extras() -> None:
    """Let pydantic check the answers to the letter."""
    for module in SHAPES:
        for shape in vars(module).values():
            if is_typeddict(shape):
                shape.__pydantic_config__ = _OPEN if shape in WITH_MORE else _STRICT


def document(app: FastAPI) -> dict[str, Any]:
    found = get_openapi(
        title=app.title, version=app.version, description=ABOUT, routes=app.routes, tags=TAGS
    )
    components = found["components"]
    components["securitySchemes"] = _SCHEMES
    components["schemas"] |= examples.schemas()
    for shape in (answers.Received, answers.ErrorAnswer):
        _add(components["schemas"], shape)
    _explain(components["schemas"])
    _as_submitted(components["schemas"]["JobDetails"])
    found["security"] = [{"token": []}]
    for path in OPEN & found["paths"].keys():
        for operation in found["paths"][path].values():
            operation["security"] = []
    found["paths"][REPORT_PATH] = {"post": _report()}
    return found


def _add(schemas: dict[str, Any], shape: type) -> None:
    """A shape that no route's type names."""
    found = TypeAdapter(shape).json_schema(ref_template="#/components/schemas/{model}")
    schemas |= found.pop("$defs", {})
    schemas[shape.__name__] = found


def _explain(schemas: dict[str, Any]) -> None:
    """Give every field of our shapes the docstring below it in its module."""
    classes = {
        node.name: node
        for module in SHAPES
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef)
    }
    for name in schemas.keys() & classes.keys():
        for field, said in _docstrings(name, classes).items():
            schemas[name]["properties"][field]["description"] = said


def _as_submitted(details: dict[str, Any]) -> None:
    """A job's spec has the shape of what is submitted, which is described once."""
    spec = details["properties"]["spec"]
    details["properties"]["spec"] = {
        "$ref": "#/components/schemas/JobSpec",
        "description": spec["description"],
    }


def _docstrings(name: str, classes: dict[str, ast.ClassDef]) -> dict[str, str]:
    """By field, those of its base included."""
    found: dict[str, str] = {}
    for base in classes[name].bases:
        assert isinstance(base, ast.Name)
        if base.id in classes:
            found |= _docstrings(base.id, classes)
        elif base.id.endswith("OfClass"):
            found["class"] = _CLASS
    for field, below in pairwise(classes[name].body):
        match field, below:
            case ast.AnnAssign(ast.Name(key)), ast.Expr(ast.Constant(str(said))):
                found[key] = " ".join(said.split())
    return found


def _report() -> dict[str, Any]:
    from boa.server.routes.report import Reports

    received = {"application/json": {"schema": {"$ref": "#/components/schemas/Received"}}}
    return {
        "tags": ["running jobs"],
        "summary": "Report",
        "description": inspect.getdoc(Reports),
        "operationId": "report",
        "security": [{"report token": []}],
        "parameters": [
            {"name": "job", "in": "path", "required": True, "schema": {"type": "string"}}
        ],
        **examples.body("Report", examples.REPORT),
        "responses": {
            "200": {"description": "It was taken.", "content": received},
            **{
                str(status): {"description": DESCRIPTIONS[status], "content": ERROR}
                for status in (400, 401, 403, 404, 409, 413, 422)
            },
        },
    }
