"""A file that is replaced is the old one or the new one, whatever comes between."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boa.atomic_file import drafted, replace_file

OLD, NEW = "old " * 100, "new " * 100
KILLED = """
import os, signal, sys
from boa import atomic_file

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

path, when = sys.argv[1:]
real = os.replace
if when == "before":
    os.replace = die
if when == "after":
    os.replace = lambda *names: (real(*names), die())
with atomic_file.drafted(path) as draft:
    draft.write_text("new " * 50)
    if when == "half":
        die()
    draft.write_text("new " * 100)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text(OLD)
    return path


@pytest.mark.parametrize(("when", "left"), [("half", OLD), ("before", OLD), ("after", NEW)])
def test_a_process_that_is_killed_leaves_the_old_or_the_new(
    path: Path, when: str, left: str
) -> None:
    found = subprocess.run([sys.executable, "-c", KILLED, str(path), when], check=False)
    assert found.returncode == -signal.SIGKILL
    assert path.read_text() == left


def test_an_exception_leaves_the_old_and_no_draft(path: Path) -> None:
    def half() -> None:
        with drafted(path) as draft:
            draft.write_text("new")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert path.read_text() == OLD
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("durable", [False, True])
def test_a_full_disk_leaves_the_old_and_no_draft(
    path: Path, durable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(draft: Path, data: bytes) -> int:
        with draft.open("wb") as file:
            file.write(data[:7])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, NEW, durable=durable)
    assert path.read_text() == OLD
    assert list(path.parent.iterdir()) == [path]


def test_a_disk_that_fills_up_while_it_is_forced_out_leaves_the_old(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, NEW, durable=True)
    assert path.read_text() == OLD


def test_what_is_durable_is_on_the_disk_before_it_takes_the_place_and_its_name_after(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def told(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            folder = isinstance(arguments[0], int) and stat.S_ISDIR(os.fstat(arguments[0]).st_mode)
            done.append(f"{name} folder" if folder else name)
            return real(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", told("sync", os.fsync))
    monkeypatch.setattr(os, "replace", told("replace", os.replace))
    replace_file(path, NEW, durable=True)
    assert done == ["sync", "replace", "sync folder"]
    done.clear()
    replace_file(path, OLD)
    assert done == ["replace"]


def test_what_is_no_plain_file_is_written_straight(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace_file(pipe, "told")
        assert os.read(end, 100) == b"told"
    finally:
        os.close(end)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_permissions_are_those_that_opening_it_would_leave(path: Path) -> None:
    opened, new = path.with_name("opened"), path.with_name("new")
    opened.write_text("")
    replace_file(new, b"bytes, too")
    assert new.stat().st_mode == opened.stat().st_mode
    path.chmod(0o640)
    replace_file(path, NEW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_a_link_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text(OLD)
    link.symlink_to("real")
    replace_file(link, NEW)
    assert link.is_symlink()
    assert real.read_text() == NEW
