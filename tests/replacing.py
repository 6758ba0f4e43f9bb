"""What a job can put in the place of a file, and calls that must not wait for it."""

import os
import shutil
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

PATIENCE_S = 300.0
"""Only a call that hangs takes so long."""
_T = TypeVar("_T")


def make(kind: str, path: Path) -> None:
    """Something that is no plain file, in the place of whatever was there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        secret = path.with_name("elsewhere")
        secret.write_text("somebody else's")
        path.symlink_to(secret)
    elif kind == "link to a pipe":
        os.mkfifo(path.with_name("elsewhere"))
        path.symlink_to(path.with_name("elsewhere"))
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            here = os.getcwd()
            os.chdir(path.parent)  # the name of a socket may not be long
            try:
                bound.bind(path.name)
            finally:
                os.chdir(here)
    else:
        raise AssertionError(kind)


KINDS = ("pipe", "link", "link to a pipe", "folder", "socket")


def promptly(call: Callable[[], _T]) -> _T:
    """Its result; a call that waits for ever fails."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as problem:
            future.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return future.result(PATIENCE_S)
