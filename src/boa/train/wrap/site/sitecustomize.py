"""Read by Python as it starts, in processes that `boa wrap` runs: sees what is logged to trackers.

One that was there before is read as well.
"""

import contextlib
import importlib
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [each for each in sys.path if os.path.abspath(each or ".") != _here]
sys.modules.pop("sitecustomize", None)
with contextlib.suppress(Exception):  # a Python without BOA, or an older one
    importlib.import_module("boa.train.trackers").watch()
with contextlib.suppress(ImportError):
    importlib.import_module("sitecustomize")
