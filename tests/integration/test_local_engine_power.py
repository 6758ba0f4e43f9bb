"""What a power cut, a failing disk or a stray hand leaves of a run: it costs that run at most."""

import errno
import logging
import marshal
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boa.engines import local
from boa.engines.processes import run_files, run_supervisor
from boa.model.runs import RunKey
from local_runs import Runs, alive, until

WAITING = 'trap "exit 0" TERM; echo ready; while :; do sleep 0.02; done'
LONG_AGO = "1.1.another"
"""A supervisor of before the machine restarted."""


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    runs.close()


def _ended(runs: Runs, job: str = "7") -> RunKey:
    """A run that is over, and that nobody has heard of yet."""
    key = runs.start("true", job=job)
    until(lambda: (runs.folder(key) / run_files.OUTCOME).exists())
    return key


# What is promised


def test_an_end_is_on_the_disk_with_all_that_leads_to_it_before_anybody_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    folder = tmp_path / "runs" / "7" / "1"
    folder.mkdir(parents=True)
    (tmp_path / "runs" / ".runs").mkdir()

    def noting(what: str, real: Callable[..., None]) -> Callable[..., None]:
        def call(fd: Any, *more: Any) -> None:
            path = os.readlink(f"/proc/self/fd/{fd}") if isinstance(fd, int) else fd
            done.append(f"{what} {os.path.relpath(path, folder)}")
            real(fd, *more)

        return call

    for name in ("fsync", "fdatasync", "rename"):
        monkeypatch.setattr(os, name, noting(name, getattr(os, name)))
    run_files.write_outcome(str(folder), 0, False, "")
    first = ["fdatasync reserve", "rename reserve", "fsync ."]
    assert done == [*first, "fsync ../../.runs", "fsync ..", "fsync ../.."]
    done.clear()
    run_files.write_outcome(str(folder), 0, True, "stopped when asked")
    assert done == ["rename reserve"], "the store knows already, and somebody waits"


# What is gone


def test_a_run_whose_beginning_the_disk_forgot_is_over_though_the_machine_did_not_restart(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where only the disk was gone: the service takes it for running, and asks for nothing."""
    key = runs.start("sh", "-c", WAITING, job="7")
    runs.until_up(key)
    os.kill(runs.supervisor(key), signal.SIGKILL)
    until(lambda: not alive(runs.supervisor(key)))
    (up,) = runs.folder(key).glob("up.*")
    monkeypatch.setattr(local, "UNASKED_S", 0.0)
    runs.engine.close()  # which hears nothing of all that
    up.rename(runs.folder(key) / run_supervisor.LAUNCH)
    runs.crash()
    end = runs.end(key)
    assert end.run_lost
    assert end.reason == "lost: the disk has forgotten that it had begun"


def test_a_run_that_had_not_begun_begins_when_it_is_asked_for_again(runs: Runs) -> None:
    launch = runs.launch("sh", "-c", WAITING, job="7")
    runs.engine.start(launch)
    runs.until_up(launch.key)
    os.kill(runs.supervisor(launch.key), signal.SIGKILL)
    until(lambda: not alive(runs.supervisor(launch.key)))
    (up,) = runs.folder(launch.key).glob("up.*")
    runs.engine.close()
    up.rename(runs.folder(launch.key) / run_supervisor.LAUNCH)
    runs.crash()
    runs.engine.start(launch)
    runs.until_up(launch.key)


def test_a_run_without_its_folder_is_not_known_and_nobody_is_hindered(runs: Runs) -> None:
    gone, there = _ended(runs, "7"), _ended(runs, "8")
    for path in runs.folder(gone).iterdir():
        path.unlink()
    runs.folder(gone).rmdir()
    runs.crash()
    assert list(runs.engine.runs()) == [there]
    assert runs.end(there).exit_code == 0


def test_a_run_lost_with_its_machine_is_no_failure_also_when_told_again(runs: Runs) -> None:
    key = RunKey("9", 1)
    _marked(runs, key)
    (runs.folder(key) / f"up.{LONG_AGO}").touch()
    for _ in range(2):
        runs.crash()
        end = runs.end(key)
        assert (end.exit_code, end.run_lost) == (None, True)
        assert end.reason == "lost: the machine restarted"


def test_a_run_that_came_back_in_a_power_cut_does_not_begin_by_itself(runs: Runs) -> None:
    """Its job may have gone on since, and run now."""
    key = RunKey("9", 1)
    launched = runs.launch("sh", "-c", "echo began", job="9")
    files = runs.engine._beginnings.of(launched, 1, "").files
    for boot, lost in (
        (run_supervisor.identity(os.getpid()).rpartition(".")[2], False),
        ("x", True),
    ):
        document = run_files.unpacked(files[run_supervisor.LAUNCH])
        _marked(runs, key)
        launch = runs.folder(key) / run_supervisor.LAUNCH
        launch.write_bytes(run_files.packed({**document, "boot": boot}))
        runs.crash()
        runs.poll()
        assert not list(runs.folder(key).glob("*.log"))
        if lost:
            assert runs.end(key).run_lost
        else:
            runs.engine.stop(key, 0.0)
            assert runs.end(key).reason == "stopped before it began"
        runs.engine.forget(key)
        shutil.rmtree(runs.folder(key))


# What is damaged


def _text(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.symlink_to("/dev/zero")


ODD: dict[str, Callable[[Path], Any]] = {
    "empty": _text(b""),
    "zeros": _text(b"\0" * 1024),
    "garbled": _text(os.urandom(512)),
    "text": _text(b"nonsense\nnonsense"),
    "number": _text(b"99999999999999999999999\n0\n\n"),
    "folder": Path.mkdir,
    "pipe": _pipe,
    "link": _link,
    "loop": lambda path: path.symlink_to(path.name),
}
ODDITIES = pytest.mark.parametrize("odd", ODD)


@ODDITIES
def test_an_odd_outcome_is_a_lost_run_and_no_failure(
    runs: Runs, odd: str, caplog: pytest.LogCaptureFixture
) -> None:
    key, other = _ended(runs, "7"), _ended(runs, "8")
    outcome = runs.folder(key) / run_files.OUTCOME
    outcome.unlink()
    ODD[odd](outcome)
    with caplog.at_level(logging.WARNING, "boa.engines"):
        runs.crash()
        end = runs.end(key)
    assert (end.exit_code, end.run_lost) == (None, True)
    assert [line for line in caplog.messages if line.startswith("job 7, attempt 1: lost: how it")]
    assert runs.end(other).exit_code == 0
    runs.engine.forget(key)
    assert [path.name for path in runs.folder(key).iterdir()] == ["0.log"]


@ODDITIES
def test_an_odd_launch_is_a_lost_run_and_no_failure(runs: Runs, odd: str) -> None:
    key = RunKey("9", 1)
    _marked(runs, key)
    ODD[odd](runs.folder(key) / run_supervisor.LAUNCH)
    runs.crash()
    assert runs.end(key).run_lost


def test_a_supervisor_that_finds_its_launch_damaged_says_that_it_is_no_failure(runs: Runs) -> None:
    key = RunKey("9", 1)
    _marked(runs, key)
    whole = run_files.packed({"plans": [], "workdir": "/", "grace_s": 1.0, "log_bytes": 1})
    (runs.folder(key) / run_supervisor.LAUNCH).write_bytes(whole[:-3])
    pid = os.posix_spawnp(
        "python3",
        [
            "python3",
            "-I",
            "-c",
            _SUPERVISE,
            os.path.dirname(run_supervisor.__file__),
            str(runs.folder(key)),
        ],
        os.environ,
    )
    os.waitpid(pid, 0)
    runs.crash()
    end = runs.end(key)
    assert end.run_lost
    assert end.reason.startswith("lost: what it was to run is damaged")


_SUPERVISE = (
    "import sys; sys.path.append(sys.argv[1]); "
    "import run_supervisor; run_supervisor.main(sys.argv[2])"
)


def test_what_marshal_would_die_of_is_never_given_to_it() -> None:
    data = run_files.packed({"plans": [1, 2, 3]})
    assert run_files.unpacked(data) == {"plans": [1, 2, 3]}
    for damaged in (b"", data[:-1], data[:8], data[1:], marshal.dumps({}), b"0" * 40):
        with pytest.raises(ValueError, match=r"empty|as it was written"):
            run_files.unpacked(damaged)


NAMES = ("up.", "up.x.y.z", "up.1", "claimed.-1.2.x", "claimed..", "up.99999999999999.1.x", "owner")


@pytest.mark.parametrize("name", NAMES)
def test_names_that_no_supervisor_gives_mean_nothing(runs: Runs, name: str) -> None:
    key = _ended(runs)
    for path in runs.folder(key).glob("up.*"):
        path.unlink()
    (runs.folder(key) / name).touch()
    runs.crash()
    assert runs.end(key).exit_code == 0


STRAY = ("x", "x.y.5", "a b.1", "7.²", "7.01", "..1", "7.", "7.99999999999999999999", "é.1", "-")


def test_stray_names_among_the_runs_are_named_in_the_log_and_hinder_nobody(
    runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    key = _ended(runs)
    index = runs.root / "runs" / ".runs"
    for name in STRAY:
        (index / name).touch()
    (index / "55.1").mkdir()
    os.mkfifo(index / "56.1")
    (index / "57.1").symlink_to("/dev/zero")
    with caplog.at_level(logging.WARNING, "boa.engines"):
        runs.crash()
    assert list(runs.engine.runs()) == [key]
    assert runs.end(key).exit_code == 0
    said = [line for line in caplog.messages if "no run is marked by this" in line]
    assert len(said) == len(STRAY) + 3 - 1, "one line each, but for what begins with a dot"


def test_stray_logs_are_not_listed_but_those_that_a_job_has_replaced(runs: Runs) -> None:
    key = _ended(runs)
    for name in ("x.log", "1.2.log", ".log", "².log", "1.old.old.log"):
        (runs.folder(key) / name).touch()
    (runs.folder(key) / "1.log").mkdir()
    os.mkfifo(runs.folder(key) / "2.log")
    (runs.folder(key) / "3.log").symlink_to("/dev/zero")
    (runs.folder(key).parent / "5").touch()
    (runs.folder(key).parent / "²").mkdir()
    names = sorted(file.path.name for file in runs.engine.logs("7"))
    assert names == ["0.log", "1.log", "2.log", "3.log"], "who reads one of the latter is told"
    (runs.root / "runs" / "8").touch()
    assert list(runs.engine.logs("8")) == []
    assert runs.end(key).exit_code == 0


@pytest.mark.parametrize("odd", ["folder", "pipe", "loop"])
def test_something_else_in_the_place_of_a_log_takes_that_log_and_no_more(
    runs: Runs, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:  # no supervisor yet
        patch.setattr(runs.engine, "_supervise", lambda run: None)
        key = runs.start("sh", "-c", "echo lost; echo lost >&2; exit 3", job="7")
    ODD[odd](runs.folder(key) / "0.log")
    runs.start("sh", job="7")
    assert runs.end(key).exit_code == 3


@pytest.mark.parametrize("odd", ["folder", "pipe", "loop", "garbled", "empty"])
def test_something_else_in_the_place_of_the_stop_file_does_not_keep_a_run_from_ending(
    runs: Runs, odd: str
) -> None:
    key = runs.start("sh", "-c", WAITING, grace_s=30.0)
    runs.until_printed(key, "ready")
    runs.until_up(key)
    ODD[odd](runs.folder(key) / run_supervisor.STOP)
    runs.engine.stop(key, 120.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (0, True)


def test_a_folder_that_cannot_be_read_is_a_lost_run(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, other = _ended(runs, "7"), _ended(runs, "8")
    real = os.listdir

    def failing(path: Any = ".") -> list[str]:
        if str(path) == str(runs.folder(key)):
            raise OSError(errno.EIO, "Input/output error")
        return real(path)

    def failing_open(path: Any, *more: Any, **named: Any) -> int:
        if str(path).startswith(str(runs.folder(key))):
            raise OSError(errno.EIO, "Input/output error")
        return opened(path, *more, **named)

    opened = os.open
    monkeypatch.setattr(os, "listdir", failing)
    monkeypatch.setattr(os, "open", failing_open)
    runs.crash()
    assert runs.end(key).run_lost
    assert runs.end(other).exit_code == 0
    runs.engine.forget(key)


def test_a_file_in_the_place_of_a_runs_folder_is_a_lost_run(runs: Runs) -> None:
    key = RunKey("9", 1)
    _marked(runs, key)
    runs.folder(key).rmdir()
    runs.folder(key).touch()
    runs.crash()
    assert runs.end(key).run_lost
    runs.engine.forget(key)
    assert list(runs.engine.runs()) == []


def _marked(runs: Runs, key: RunKey) -> None:
    runs.folder(key).mkdir(parents=True)
    (runs.root / "runs" / ".runs" / f"{key.job}.{key.attempt}").touch()


def test_a_supervisor_that_takes_its_run_while_another_service_looks_is_not_overlooked(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(runs.engine, "_supervise", lambda run: None)
        key = runs.start("true")
    me = run_supervisor.identity(os.getpid())
    read = run_files.read_plain

    def late(path: str, *most: int) -> bytes:
        if path.endswith(run_supervisor.LAUNCH):
            os.rename(path, runs.folder(key) / f"claimed.{me}")  # this very moment
        return read(path, *most)

    monkeypatch.setattr(run_files, "read_plain", late)
    runs.crash()
    runs.poll()
    assert runs.told(key, ended=True) is None
    os.rename(runs.folder(key) / f"claimed.{me}", runs.folder(key) / f"claimed.{LONG_AGO}")
    runs.crash()
    assert runs.end(key).run_lost
