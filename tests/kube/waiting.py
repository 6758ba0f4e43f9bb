"""Waiting for states, never for times."""

import time
from collections.abc import Callable
from typing import TypeVar

_What = TypeVar("_What")


def until(
    what: str, check: Callable[[], _What], limit_s: float = 300, pause_s: float = 0.05
) -> _What:
    """The first answer of `check` that is true.

    Raises:
        TimeoutError: it never was.
    """
    end = time.monotonic() + limit_s
    while not (found := check()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {limit_s:.0f} s: {what}")
        time.sleep(pause_s)
    return found
