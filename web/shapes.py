"""Prints the shapes of all answers as an OpenAPI document: what `src/api/schema.ts` is made from.

    python web/shapes.py | npx openapi-typescript > src/api/schema.ts      (or: npm run types)
"""

import json
import sys
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import is_typeddict

from boa.client import answers, answers_history, answers_plans, answers_what_if

MODULES = (answers, answers_history, answers_plans, answers_what_if)
REFS = "#/components/schemas/{model}"


def document() -> dict[str, Any]:
    schemas: dict[str, Any] = {}
    for module in MODULES:
        for name, shape in vars(module).items():
            if is_typeddict(shape) and not name.startswith("_") and shape.__module__ == module.__name__:
                found = TypeAdapter(shape).json_schema(
                    ref_template=REFS, mode="serialization"
                )
                schemas |= found.pop("$defs", {})
                schemas[name] = found
    return {
        "openapi": "3.1.0",
        "info": {"title": "BOA Constrictor", "version": "1"},
        "paths": {},
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=1)
