"""A child process that is asked by lines of JSON, and that ends when nobody can ask any more."""

import contextlib
import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class ChildTrouble(Exception):
    """It could not do what it was asked to, or is gone."""


class Child:
    """May be asked from any thread; answers come in turn.

    A child reads its standard input: the end of that is the end of whoever asks, however it came
    about. (PR_SET_PDEATHSIG alone would not do: it tells of the end of a *thread*.)
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        self._lock = threading.Lock()
        self._log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                argv,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                start_new_session=True,  # Ctrl-C is for who asks, and who closes it then
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, **question: Any) -> Any:
        """Its answer.

        Raises:
            ChildTrouble: with what it says, or with the end of its log.
        """
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            try:
                self._process.stdin.write(json.dumps(question).encode() + b"\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except (BrokenPipeError, ValueError):
                line = b""
        if not line:
            raise ChildTrouble(f"{question} was not answered; {self._log} ends: {self._tail()}")
        answer = json.loads(line)
        if "error" in answer:
            raise ChildTrouble(f"{question}: {answer['error']}")
        return answer["answer"]

    def _tail(self) -> str:
        with contextlib.suppress(OSError):
            return self._log.read_text(errors="replace")[-2000:]
        return "(no log)"

    def close(self) -> None:
        """Let it end by itself; it is killed if it does not in a minute."""
        with self._lock:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        try:
            self._process.wait(300)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
