"""Parts of `bench/campaign.py`: worlds that fail, what fails in them, and who watches."""

import sys
from pathlib import Path

_TESTS = str(Path(__file__).resolve().parents[2] / "tests")
if _TESTS not in sys.path:  # servers that tests have too: PostgreSQL, an AWS emulator
    sys.path.append(_TESTS)
