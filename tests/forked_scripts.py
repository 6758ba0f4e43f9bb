"""A script's processes as forks of one that has imported it: libraries take seconds to import.

python forked_scripts.py MODULE SOCKET    # calls the module's main() for whoever asks
"""

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

# the end of a script, but for taking apart what was imported: longer than all that these scripts do
from boa.engines.processes.forked_worker import _ended as ended
from boa.engines.processes.forked_worker import _finish as finish

HERE = Path(__file__).resolve()
MOST = 2**17
"""Bytes of a request."""


class Forked:
    """What `subprocess.Popen` is for other processes, as far as tests need it."""

    def __init__(self, at: socket.socket, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        pipes = [os.pipe() for _ in range(4)]
        (theirs, mine), *outputs = pipes
        given = [theirs, *(write for _, write in outputs)]
        socket.send_fds(at, [json.dumps([list(arguments), dict(env)]).encode()], given)
        for end in given:
            os.close(end)
        self.stdin = os.fdopen(mine, "w")
        self.stdout, self.stderr, self._status = (os.fdopen(read) for read, _ in outputs)
        self.pid = int(self._status.readline())
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it has ended
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = int(self._status.readline())
        return self.returncode

    def communicate(self) -> tuple[str, str]:
        self.stdin.close()
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.append(self.stderr.read()))
        reader.start()
        out = self.stdout.read()
        reader.join()
        self.wait()
        return out, said[0]

    def close(self) -> None:
        """To be called once it has ended, or is about to."""
        self.wait()
        for pipe in (self.stdin, self.stdout, self.stderr, self._status):
            with suppress(BrokenPipeError):  # what it was sent and did not read
                pipe.close()


class Script:
    """The process that has imported a script; its forks are children of children of its own."""

    def __init__(self, module: str, base: "Script | None" = None) -> None:
        """`base`: one whose imports it begins with, as a fork of that process."""
        self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process: subprocess.Popen[bytes] | None = None
        with there:
            if base is not None:
                request = json.dumps([module, None]).encode()
                socket.send_fds(base._here, [request], [there.fileno()])
                return
            self._process = subprocess.Popen(
                [sys.executable, str(HERE), module, str(there.fileno())],
                pass_fds=[there.fileno()],
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
            )

    def start(self, arguments: Sequence[str], env: Mapping[str, str]) -> Forked:
        return Forked(self._here, arguments, env)

    def close(self) -> None:
        self._here.close()
        if self._process is not None:
            self._process.wait()


def main(module: str, link: socket.socket) -> None:
    script = importlib.import_module(module)
    gc.collect()
    gc.freeze()  # or every fork would copy and look through all of the libraries when it ends
    while True:
        message, ends, _, _ = socket.recv_fds(link, MOST, 4)
        if not message:
            return
        if os.fork() == 0:
            link.close()
            arguments, environment = json.loads(message)
            if environment is None:
                finish(ended(partial(main, arguments, socket.socket(fileno=ends[0]))))
            if _watched(ends):
                os._exit(0)
            sys.argv = [f"{module}.py", *arguments]
            os.environ.clear()
            os.environ.update(environment)
            finish(ended(script.main))
        for end in ends:
            os.close(end)
        _reap()


def _watched(ends: Sequence[int]) -> bool:
    """False in the fork that is to run; True in its parent, once that has ended."""
    status = ends[3]
    pid = os.fork()
    if pid == 0:
        for number, end in enumerate(ends[:3]):
            os.dup2(end, number)
        for end in ends:
            os.close(end)
        return False
    for end in ends[:3]:
        os.close(end)
    os.write(status, f"{pid}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(status, f"{code}\n".encode())
    return True


def _reap() -> None:
    """Forks that have ended."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


if __name__ == "__main__":
    main(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
