"""SciPy, loaded for one thread.

Its linear algebra keeps threads that spin between calls. Over many matrices of three by three they
take seconds where the work takes milliseconds, the more the busier the machine is. How many there
are is said by the environment when it is loaded, and by nothing later; whatever this process starts
afterwards finds the environment as it was.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

THREADS = "OPENBLAS_NUM_THREADS"


@contextmanager
def for_one_thread() -> Iterator[None]:
    """Around the first import of SciPy; a number that somebody has set stays."""
    if THREADS in os.environ:
        yield
        return
    os.environ[THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[THREADS]
