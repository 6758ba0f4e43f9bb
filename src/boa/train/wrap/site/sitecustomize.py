"""Read by Python as it starts, in processes that `boa wrap` runs: sees what is logged to trackers.

One that was there before is read as well.
"""

import contextlib
import importlib
import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [each for each in sys.path if os.path.abspath(each or ".") != _here]
with contextlib.suppress(Exception):  # a Python without BOA, or an older one
    importlib.import_module("boa.train.trackers").watch()
# this one stays in sys.modules while it is imported, or Python complains
_other = PathFinder.find_spec("sitecustomize", sys.path)
if _other is not None and _other.loader is not None:
    _other.loader.exec_module(module_from_spec(_other))
