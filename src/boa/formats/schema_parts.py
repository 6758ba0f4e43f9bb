"""What all our JSON Schemas are made of."""

from typing import Any, TypeAlias

from boa.formats.fields import CLASS_PATTERN, MAX_NAME, VERSION

Schema: TypeAlias = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
NAME: Schema = {"type": "string", "minLength": 1, "pattern": r"\S"}
TEXT: Schema = {**NAME, "maxLength": MAX_NAME}
CLASS: Schema = {"type": "string", "maxLength": MAX_NAME, "pattern": f"^{CLASS_PATTERN}$"}
VERSION_1: Schema = {"const": VERSION, "description": "The version of this format."}


def object_of(required: Schema, optional: Schema | None = None) -> Schema:
    """An object with exactly these fields."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def number(description: str, **limits: Any) -> Schema:
    return {"type": "number", "description": description, **limits}


def whole(description: str, least: int, most: int, **more: Any) -> Schema:
    limits = {"minimum": least, "maximum": most}
    return {"type": "integer", "description": description, **limits, **more}
