"""Prints the shapes of all answers as an OpenAPI document, which `src/api/schema.ts` is made from.

npm run types    (in web/, with boa installed in ../.venv)
"""

import json
import sys
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import is_typeddict

from boa.server.render.openapi import SHAPES


def document() -> dict[str, Any]:
    schemas: dict[str, Any] = {}
    for module in SHAPES:
        for name, shape in vars(module).items():
            if is_typeddict(shape) and not name.startswith("_"):
                found = TypeAdapter(shape).json_schema(ref_template="#/components/schemas/{model}")
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
