"""Changes of a job that is there, or submitted again: checked as whole specs are."""

from typing import Any

from boa.errors import InputError
from boa.formats.job import job_document, read_job_spec
from boa.formats.shapes import cut
from boa.model.job_spec import AMENDABLE, ITS_OWN, JobSpec

FIXED = ("version", "class")
"""Fields that a job which is submitted again keeps."""


def read_changes(spec: JobSpec, document: Any) -> dict[str, Any]:
    """Fields of a job's spec that change, as JSON has them; null takes a limit, or a
    tag, away."""
    if not isinstance(document, dict) or not document:
        expected = f"a mapping of at least one of {', '.join(AMENDABLE)}"
        raise InputError("the body", document, expected)
    for name in document:
        if name not in AMENDABLE:
            expected = f"one of {', '.join(AMENDABLE)}"
            problem = "cannot be changed once a job is submitted"
            raise InputError(cut(name), document[name], expected, problem)
    made = _merged(spec, document)
    changed = {**job_document(made), "priority": made.priority, "weight": made.weight}
    gpus = changed["gpus"]
    changed["tags"] = dict(made.tags)
    changed["gpus"] = {"min": gpus["min"], "max": gpus["max"], "types": gpus.get("types", [])}
    return {name: changed.get(name) for name in document}


def read_again(spec: JobSpec, document: Any) -> JobSpec:
    """The spec of a job that is submitted again, with these fields changed."""
    if not isinstance(document, dict):
        raise InputError("changes", document, "a mapping of fields of a job file")
    for name in document:
        if name in FIXED:
            raise InputError(f"changes.{name}", document[name], "another field: these stay")
    given = job_document(spec)
    for name in ITS_OWN:
        given.pop(name, None)
    return _merged(read_job_spec(given), document, "changes")


def _merged(spec: JobSpec, changes: dict[str, Any], path: str = "") -> JobSpec:
    given = job_document(spec)
    if "priority" in changes or "weight" in changes:  # one takes the place of the other
        given.pop("priority", None)
        given.pop("weight", None)
    document = {**given, **changes}
    if isinstance(changes.get("gpus"), dict):
        limits = {**job_document(spec)["gpus"], **changes["gpus"]}
        if "min" in changes["gpus"] and "max" not in changes["gpus"]:
            limits["max"] = max(limits["max"], limits["min"]) if _counts(limits) else limits["max"]
        if limits.get("types") in ([], None):
            limits.pop("types", None)
        document["gpus"] = limits
    if isinstance(changes.get("tags"), dict):  # kind by kind; null takes one away
        tags = {**spec.tags, **changes["tags"]}
        document["tags"] = {kind: value for kind, value in tags.items() if value is not None}
    return read_job_spec(document, path)


def _counts(limits: dict[str, Any]) -> bool:
    return all(type(limits[name]) is int for name in ("min", "max"))
