"""The parts of a supervisor that need no process."""

import os
import time
from pathlib import Path

import pytest

from boa.engines.processes import run_files, run_supervisor


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kept(rank: int = 0) -> str:
    parts = (Path(f"{rank}.old.log"), Path(f"{rank}.log"))
    return "".join(part.read_text() for part in parts if part.exists())


def size() -> int:
    """Bytes of the log, without the marks of its times."""
    parts = [path for path in Path().iterdir() if not path.name.endswith(".times.log")]
    return sum(path.stat().st_size for path in parts)


def test_times_of_a_day_are_some_thousands(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "time", lambda: now)
    log = run_files.Log(0, 4096)
    for second in range(86_400):
        now = float(second)
        log.write(b"\n")
    assert 1000 < len(Path("0.times.log").read_text().splitlines()) < 10_000


def test_a_short_log_is_what_was_printed() -> None:
    log = run_files.Log(0, 10_000)
    log.write(b"one\n")
    log.write(b"two\n")
    assert kept() == "one\ntwo\n"


@pytest.mark.parametrize("piece", [1, 7, 1000, 65536])
def test_a_long_log_keeps_its_newest_lines_whole_and_says_what_came_before(piece: int) -> None:
    limit, count = 4096, 2000
    printed = b"".join(b"line %d\n" % n for n in range(count))
    log = run_files.Log(0, limit)
    for begin in range(0, len(printed), piece):
        log.write(printed[begin : begin + piece])
        assert size() <= limit
    lines = kept().splitlines()
    newest = [line for line in lines if not line.startswith("[boa] ")]
    assert newest == [f"line {n}" for n in range(count - len(newest), count)]
    before = int(lines[0].split()[1])
    assert printed[before:].decode().splitlines() == newest


def test_a_log_without_lines_is_cut_all_the_same() -> None:
    log = run_files.Log(0, 4096)
    log.write(b"x" * 100_000)
    assert size() <= 4096
    assert kept().endswith("x" * 1000)


def test_a_log_that_its_job_made_longer_is_cut_back_at_the_next_line() -> None:
    log = run_files.Log(0, 4096)
    log.write(b"one\n")
    os.truncate("0.log", 2**40)
    log.write(b"two\n")
    assert size() == 8
    assert kept() == "one\ntwo\n"


def test_what_a_full_disk_did_not_take_is_counted_and_told_later() -> None:
    log = run_files.Log(0, 10_000)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log.fd)
    os.close(full)
    log.write(b"lost\n")
    log.write(b"lost as well\n")
    Path("0.log").unlink()
    os.close(log.fd)
    log.fd = -1  # as after a turn
    log.write(b"kept\n")
    assert kept().splitlines()[-2:] == [
        "[boa] 18 bytes of output could not be written here",
        "kept",
    ]


def test_a_process_is_told_from_another_of_the_same_number() -> None:
    me = run_supervisor.identity(os.getpid())
    assert me.split(".")[0] == str(os.getpid())
    assert run_supervisor.identity(os.getpid()) == me
    assert run_supervisor.identity(os.getppid()) != me
    assert run_supervisor.identity(2**22 + 1) == ""


@pytest.mark.parametrize(
    ("code", "words"),
    [(3, "exit code 3"), (-9, "killed by SIGKILL"), (-40, "killed by signal 40")],
)
def test_an_exit_code_is_told_in_words(code: int, words: str) -> None:
    assert run_files.described(code) == words


def test_an_outcome_fits_into_the_space_set_aside_however_long_its_reason(here: Path) -> None:
    for reason in ("short", "long " * 1000, "two\nlines", "ä" * 1000):
        run_files.write_outcome(str(here), None, False, reason)
        assert (here / run_files.OUTCOME).stat().st_size == run_files.RESERVED
        assert not (here / run_files.RESERVE).exists()
