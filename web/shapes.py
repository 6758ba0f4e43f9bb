"""Prints what the service serves at /api/openapi.json, which `src/api/schema.ts` is made from.

npm run types    (in web/, with boa installed in ../.venv)
"""

import json
import sys

from boa.server.app import described

if __name__ == "__main__":
    json.dump(described(), sys.stdout, indent=1)
