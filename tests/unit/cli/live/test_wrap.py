"""What `boa wrap` cannot use is refused before anything is started."""

import pytest

from fakes import FakeService
from integration.runner import Boa


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--pattern", "step ("], "--pattern: got 'step (' (missing ), unterminated subpattern"),
        (["--pattern", "step \\d+"], "expected a regular expression with (?P<step>…)"),
        (["--pattern", "(?P<loss>.*)"], "--pattern: got '(?P<loss>.*)'; expected one with"),
        (["--checkpoints", ""], "--checkpoints: got ''; expected names of checkpoints"),
        (["--resume", "--from 'x"], "--resume: got"),
        (["--resume", "--from last"], "expected arguments with {checkpoint} among them"),
        (["--signal", "KILL"], "--signal: got 'KILL'; expected one of USR1"),
        (["--settle-s", "-1"], "--settle-s: got '-1'; expected seconds >= 0"),
    ],
)
def test_hostile_options_are_refused_with_one_clear_line(
    run: Boa, given: list[str], said: str
) -> None:
    run("wrap", *given, "--", "no-such-command", code=2)
    assert said in run.err


@pytest.mark.parametrize("command", ["no-such-command", "./no/such/file", "/", ""])
def test_a_command_that_cannot_be_run_is_refused_by_its_name(run: Boa, command: str) -> None:
    run("wrap", "--", command, "--lr", "1", code=2)
    assert run.err.startswith(f"error: COMMAND: got {command!r} (")
    assert "expected a program that can be run here" in run.err
    assert run.err.count("\n") == 1


def test_no_command_is_refused(run: Boa) -> None:
    run("wrap", code=2)
    assert run.err == "error: Missing argument '-- COMMAND...'. See 'boa wrap --help'.\n"


@pytest.mark.parametrize("world", ["2", "x"])
def test_it_starts_the_ranks_itself_and_says_so(
    run: Boa, monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    monkeypatch.setenv("WORLD_SIZE", world)
    run("wrap", "--", "torchrun", "train.py", code=2)
    assert "launcher: single" in run.err


def test_submitted_without_a_launcher_it_is_one_process(run: Boa, service: FakeService) -> None:
    run("submit", "--class", "gpt", "--", "boa", "wrap", "--", "torchrun", "train.py")
    assert service.control.active["1"].spec.launcher == "single"
