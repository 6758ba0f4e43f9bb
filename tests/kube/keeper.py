"""Keeps processes for a cluster, and ends them when whoever asked for them is gone.

    python keeper.py

Standard library alone. Lines of JSON come in: {"do": "start", "name", "argv", "env", "log"},
{"do": "end", "name", "term_s"}, {"do": "alive", "name"}, {"do": "adopt", "pid"}. All that it has
started dies with it (PR_SET_PDEATHSIG), and it ends when its standard input does, or its parent;
what it has adopted ends before.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from typing import Any

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
_parent = os.getppid()
_kept: dict[str, subprocess.Popen[bytes]] = {}
_adopted: list[int] = []
"""Files that stand for processes: a number could be somebody else's by then."""


def _dies_with_us() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _start(name: str, argv: list[str], env: dict[str, str], log: str) -> int:
    if name in _kept and _kept[name].poll() is None:
        raise RuntimeError(f"{name} is there already")
    with open(log, "ab") as out:
        _kept[name] = subprocess.Popen(
            argv,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            preexec_fn=_dies_with_us,
        )
    return _kept[name].pid


def _end(name: str, term_s: float) -> int | None:
    """SIGTERM and its time first, if any; then SIGKILL."""
    process = _kept.pop(name, None)
    if process is None:
        return None
    if term_s > 0:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(term_s)
    process.kill()
    return process.wait()


def _answer(line: bytes) -> Any:
    asked = json.loads(line)
    match asked.pop("do"):
        case "start":
            return _start(**asked)
        case "end":
            return _end(**asked)
        case "alive":
            process = _kept.get(asked["name"])
            return process is not None and process.poll() is None
        case "adopt":
            _adopted.append(os.pidfd_open(asked["pid"]))
            return None
        case what:
            raise RuntimeError(f"no such thing to do: {what}")


def _questions() -> None:
    begun = b""
    while os.getppid() == _parent:
        if not select.select([0], [], [], 1.0)[0]:
            continue
        if not (read := os.read(0, 1 << 16)):
            return
        *lines, begun = (begun + read).split(b"\n")
        for line in lines:
            try:
                said = {"answer": _answer(line)}
            except Exception as error:
                said = {"error": f"{type(error).__name__}: {error}"}
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        _questions()
    for file in _adopted:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(file, signal.SIGKILL)
    for one in reversed(list(_kept)):
        _end(one, 0)
