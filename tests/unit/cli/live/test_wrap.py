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


def test_it_starts_the_ranks_itself_and_says_so(run: Boa, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    run("wrap", "--", "torchrun", "train.py", code=2)
    assert "launcher: single" in run.err


def test_submitted_without_a_launcher_it_is_one_process(run: Boa, service: FakeService) -> None:
    run("submit", "--class", "gpt", "--", "boa", "wrap", "--", "torchrun", "train.py")
    assert service.control.active["1"].spec.launcher == "single"
