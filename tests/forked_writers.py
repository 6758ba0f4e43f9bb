"""Writers of state to the disk as forks of a process that has imported torch, which takes seconds.

python forked_writers.py SOCKET                # forks for whoever asks, until its input ends
python -I -S forked_writers.py SOCKET gates …  # what a keeper starts: lives as long as its fork
"""

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module

MOST = 2**16
"""Bytes of a request."""


@contextmanager
def writers() -> Iterator[str]:
    """Where to ask for one."""
    with tempfile.TemporaryDirectory() as folder:  # not a test's: names of sockets are short
        at = os.path.join(folder, "writers")
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(at)
            listener.listen()  # from now on: whoever asks early waits
            process = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno())],
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                env=env,
            )
        try:
            yield at
        finally:
            process.communicate()


def command(python: str, at: str, *words: str) -> list[str]:
    """What a keeper is to start; has `gates` and the words on its command line."""
    return [python, "-I", "-S", __file__, at, "gates", *words]


# What a keeper has started


def ask(at: str, words: Sequence[str]) -> int:
    """Have them written by a fork; its exit code, or 1 if it was killed."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(at)
        socket.send_fds(connection, [json.dumps(words).encode()], [1, 2])
        said = connection.recv(MOST)
    return int(said) if said.isdigit() else 1


# The process that has imported torch


def serve(listener: socket.socket) -> None:
    import_module("boa.train.torch.memory.flushing")  # takes seconds
    import gates
    from boa.engines.processes.forked_worker import _ended as ended
    from boa.engines.processes.forked_worker import _finish as finish

    gc.collect()
    gc.freeze()  # or every fork would copy and look through all of it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how forks' parents ended
    while True:
        ready, _, _ = select.select([0, listener.fileno()], [], [])
        if 0 in ready:
            return
        connection, _ = listener.accept()
        with connection:
            if os.fork() == 0:
                listener.close()
                finish(ended(partial(gates.write, *fork(connection))))


def fork(connection: socket.socket) -> list[str]:
    """Returns in a fork that is to write, and what. Its parent says how it ended, and takes it
    along if who asked does not live any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, outputs, _, _ = socket.recv_fds(connection, MOST, 2)
    pid = os.fork() if message else os._exit(0)
    if pid == 0:
        for number, output in enumerate(outputs, 1):
            os.dup2(output, number)
            os.close(output)
        connection.close()
        words: list[str] = json.loads(message)
        return words
    ended = os.pidfd_open(pid)
    ready, _, _ = select.select([ended, connection.fileno()], [], [])
    if ended not in ready:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(OSError):
        connection.send(str(code).encode())
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(socket.socket(fileno=int(sys.argv[1])))
    else:
        sys.exit(ask(sys.argv[1], sys.argv[3:]))
