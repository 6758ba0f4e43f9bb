"""The command line as a process: exit codes, pipes, interrupts, bugs, progress, files."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from boa.cli import main
from integration.runner import STRICT, Boa


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "import sys, boa.cli; sys.exit(boa.cli.main())", *arguments]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **{**pipes, **options})


def test_from_the_shell_the_exit_code_is_the_process_s(workload: str) -> None:
    for arguments, code in (
        (["plan", workload, "--budget", "20"], 0),
        (["plan", workload], 2),
        (["plan", workload, "--budget", "0.01"], 3),
    ):
        process = start(*arguments)
        _, err = process.communicate()
        assert process.returncode == code
        assert err.count("\n") == (code != 0)


def test_a_reader_that_goes_away_is_no_error(workload: str) -> None:
    process = start("frontier", workload, "--points", "20000", "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert said == ""


def test_an_interrupt_ends_quietly(workload: str, tmp_path: Path) -> None:
    pipe = tmp_path / "slow.yaml"
    os.mkfifo(pipe)  # a file that never comes: the command waits for it
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's & would ignore it
    process = start("plan", str(pipe), "--budget", "20", preexec_fn=listen)
    with pipe.open("w"):  # opens once the command reads
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "")


def test_a_bug_is_one_line_unless_asked_for_more(
    run: Boa, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("boa.solver.planner.plan", broken)
    monkeypatch.delenv("BOA_DEBUG", raising=False)
    run("plan", workload, "--budget", 10, code=1)
    assert "ZeroDivisionError: oops" in run.err
    assert "BOA_DEBUG=1" in run.err
    monkeypatch.setenv("BOA_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["plan", workload, "--budget", "20"])


def test_numbers_that_json_lacks_become_null(capsys: pytest.CaptureFixture[str]) -> None:
    from boa.cli.console import emit_json

    emit_json({"a": [float("inf"), 1.5], "b": float("nan")})
    assert json.loads(capsys.readouterr().out, **STRICT) == {"a": [None, 1.5], "b": None}


def test_a_failed_write_leaves_the_old_file_whole(tmp_path: Path) -> None:
    from boa.atomic_file import draft_of
    from boa.cli.console import write_file
    from boa.errors import FileError

    path = tmp_path / "plan.json"
    path.write_text("old")
    draft_of(path).mkdir()
    with pytest.raises(FileError):
        write_file(path, "new", "--output")
    assert path.read_text() == "old"


class Terminal:
    """A stderr that is a terminal."""

    def __init__(self) -> None:
        self.said = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.said += text

    def flush(self) -> None: ...


def test_long_steps_show_progress_on_a_terminal_and_clean_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from boa.cli.console import working

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with working("solving", delay=0.0) as progress:
        progress(3, 10)
        deadline = time.monotonic() + 60
        while "solving… 3/10" not in terminal.said and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "solving… 3/10" in terminal.said
    assert terminal.said.endswith("\r\x1b[2K")
