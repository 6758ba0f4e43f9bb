"""Keepers as processes, for tests: one to a "node" that has an address of its own, if so wanted."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from boa.train.keeper.client import listens

WAIT_S = 600.0
"""Only what never comes takes so long, however busy the machine is."""
SELDOM_S = 0.1
"""What is waited for long is looked for as seldom: who looks takes a processor, too."""
HERE = "127.0.0.1"


@contextmanager
def keeper(
    folder: Path, *options: str, lasting: bool = True
) -> Iterator["subprocess.Popen[bytes]"]:
    """Killed at the end, and what it has begun. `lasting`: it is there until then."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "boa.train.keeper.process", str(folder), *options]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        until(lambda: not lasting or listens(folder))
        yield process
    finally:
        kill(process)


def kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(WAIT_S)


def until(so: Callable[[], object]) -> None:
    """Wait for a state; the limit is for what never comes."""
    end, pause_s = time.monotonic() + WAIT_S, 0.01
    while not so():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.2, SELDOM_S)
