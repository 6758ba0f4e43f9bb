"""Bodies that requests may have, and examples, for OpenAPI."""

from typing import Any

from boa.formats.calendar import CALENDAR
from boa.formats.job import BATCH, JOB, MAX_VALUE_BYTES, SECRET_NAME
from boa.formats.job_changes import FIXED
from boa.formats.report import REPORT as REPORT_BODY
from boa.formats.sweep import SWEEP
from boa.model.access import ROLES
from boa.model.job_spec import AMENDABLE
from boa.model.policies import POLICIES, policies_with
from boa.model.workload import BILLINGS

JOB_SPEC = {
    "name": "first try",
    "class": "resnet18",
    "run": "python train.py",
    "workdir": "/home/me/resnet",
    "gpus": {"min": 1, "max": 16},
    "epochs": 90,
}
SWEEP_SPEC = {
    "job": JOB_SPEC,
    "parameters": {"lr": [1e-4, 3e-4, 1e-3], "seed": [1, 2, 3]},
    "halving": {"metric": "loss", "factor": 3},
}
WHAT_IF = {
    "trace": "day",
    "policies": ["boa", "sia-autoscale"],
    "budgets": [60.0, 90.0, 120.0],
    "targets": [0.3, 0.5, 0.7],
}
TOKEN_REQUEST = {"name": "alice", "role": "member", "team": "vision", "expires_in_s": 2592000}
BUDGET_CHANGE = {"budget_per_hour": 14.0, "max_spend_per_hour": 30.0}
SAVED_QUESTION = {"month": "2026-09", "width": 4}
SECRET_VALUE = {"name": "HF_TOKEN", "value": "hf_…"}
REPORT = {
    "attempt": 1,
    "uptime_s": 61.5,
    "epoch": 0,
    "progress": 51200,
    "units": 51200,
    "step": 400,
    "loss": 2.31,
    "metrics": {"accuracy": 0.41},
    "rescale": {"stop": 0.2, "save": 0.5, "start": 1.1, "load": 0.3, "first_step": 0.4},
    "saves": True,
    "saved_s": 40.0,
    "total": 3840000,
}
_RATE = {"type": "number", "exclusiveMinimum": 0}
_COUNT = {"type": "integer", "minimum": 0}


def body(schema: str, example: Any) -> dict[str, Any]:
    """An `openapi_extra` for a body that is read by hand."""
    content = {"schema": {"$ref": f"#/components/schemas/{schema}"}, "example": example}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def schemas() -> dict[str, Any]:
    """JSON Schemas of the bodies above."""
    budget = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {
            "budget_per_hour": {
                "anyOf": [_RATE, {"type": "null"}],
                "description": "Average spend per hour, USD. Left out: as it is, and averages go "
                "on; null: the configured one.",
            },
            "max_spend_per_hour": {
                "anyOf": [_RATE, {"type": "null"}],
                "description": "Never more than this at any moment. Left out: as it is; null: no "
                "such cap.",
            },
        },
    }
    return {
        "JobSpec": JOB.schema(),
        "JobBatch": _batch(),
        "BudgetChange": budget,
        "Report": REPORT_BODY.schema(),
        "SecretValue": _SECRET_VALUE,
        "WhatIf": _WHAT_IF,
        "SavedQuestion": _SAVED,
        "TokenRequest": _TOKEN,
        "Sweep": _sweep(),
        **_changes(),
    }


def _sweep() -> dict[str, Any]:
    """A sweep, its job as it is described once."""
    whole = SWEEP.schema()
    whole["properties"]["job"] = {"$ref": "#/components/schemas/JobSpec"}
    return whole


def _changes() -> dict[str, Any]:
    """Bodies that change some fields of a job."""
    fields = JOB.schema()["properties"]
    own = {name: dict(fields[name]) for name in AMENDABLE}
    again = {name: field for name, field in fields.items() if name not in FIXED}
    taken_away = [own["tags"].pop("additionalProperties"), {"type": "null"}]
    own["tags"] = {**own["tags"], "additionalProperties": {"anyOf": taken_away}}
    for field in (*own.values(), *again.values()):
        field.pop("default", None)
    changes = {"type": "object", "minProperties": 1, "additionalProperties": False}
    resubmission = {
        "changes": {
            "type": "object",
            "additionalProperties": False,
            "properties": again,
            "description": "Fields of the job file that are others this time.",
        },
        "continue": {
            "type": "boolean",
            "default": False,
            "description": "From the checkpoints of the first, which must have ended.",
        },
    }
    return {
        "JobChanges": {**changes, "properties": own},
        "Resubmission": {
            "type": "object",
            "additionalProperties": False,
            "properties": resubmission,
        },
    }


def _batch() -> dict[str, Any]:
    """Jobs at once, each as it is described once."""
    whole = BATCH.schema()
    whole["properties"]["jobs"]["items"] = {"$ref": "#/components/schemas/JobSpec"}
    return whole


def _several(entry: dict[str, Any], meaning: str) -> dict[str, Any]:
    return {
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": entry,
        "description": meaning,
    }


_TOKEN = {
    "type": "object",
    "required": ["name", "role"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "maxLength": 100, "description": "Whose it is: of jobs too."},
        "role": {"enum": list(ROLES), "description": "Each may do what those before it may."},
        "team": {"type": "string", "maxLength": 100, "description": "Sees each other's logs."},
        "expires_in_s": {**_RATE, "description": "How long it is good; left out: until revoked."},
    },
}
_SECRET_VALUE = {
    "type": "object",
    "required": ["name", "value"],
    "additionalProperties": False,
    "properties": {
        "name": {**SECRET_NAME.schema, "description": "Letters, digits and _."},
        "value": {
            "type": "string",
            "minLength": 1,
            "writeOnly": True,
            "description": f"Up to {MAX_VALUE_BYTES // 1024} KB of text. Nothing shows it again.",
        },
    },
}
_SAVED = {
    "title": "What was saved",
    "description": "Which month, and what people did before.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "month": {
            "type": "string",
            "description": "YYYY-MM (UTC); the present one by default.",
            "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])$",
        },
        "width": {
            "type": "integer",
            "description": "GPUs of every job; by default the fewest that it can run on.",
            "minimum": 1,
        },
        "gpu_type": {"type": "string", "description": "GPU type; by default the first."},
    },
}
_WHAT_IF = {
    "type": "object",
    "required": ["policies", "budgets"],
    "oneOf": [{"required": ["trace"]}, {"required": ["trace_file"]}],
    "additionalProperties": False,
    "properties": {
        "trace": {"type": "string", "description": "Its name (GET /api/v1/what-if/traces)."},
        "trace_file": {
            "type": "object",
            "required": ["name", "text"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string", "maxLength": 100, "description": "For errors to name."},
                "text": {"type": "string", "description": "CSV, as boa simulate reads it."},
            },
        },
        "policies": _several(
            {"enum": list(POLICIES)}, "As GET /api/v1/what-if/traces explains them."
        ),
        "budgets": _several(
            _RATE,
            f"USD per hour: of {', '.join(policies_with('budget'))}; fixed clusters "
            f"({', '.join(policies_with('nodes'))}) are as large.",
        ),
        "gpu_types": _several(
            {"type": "string"}, "What can be rented; by default the first of the trace's."
        ),
        "targets": _several(
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            "Target efficiencies of autoscaled rivals; by default 0.3, 0.5 and 0.7.",
        ),
        "seed": {**_COUNT, "default": 0, "description": "The same seed, the same answer."},
        "billing": {
            "enum": list(BILLINGS),
            "description": "What budgets count, and policies are compared at: gpu: what jobs hold. "
            "node: the bill. By default as the service's own budget.",
        },
        "calendar": {
            "anyOf": [CALENDAR.shape.schema, {"const": "own"}],
            "description": "Hours of the week in which the budget, or what GPUs cost, is another; "
            "own: those of the service's own. The trace own begins when its first job came, others "
            "on a Monday; budgets are scaled to each of those asked for.",
        },
    },
}
