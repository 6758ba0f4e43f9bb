"""The command line: what a command loads, what its help says, what it makes of words."""

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, get_args

import click
import pytest

from boa.cli import help as helping
from boa.cli import main, options, root, shell
from boa.cli.commands import COMMANDS
from boa.model.workload import Billing
from boa.solver import planner

NOBODY = "http://127.0.0.1:9"
"""Where nobody listens."""
EDGES = ("fastapi", "highspy", "httpx", "matplotlib", "pydantic", "rich", "sqlalchemy", "typer")
LOADED = """
import sys
from boa.cli import main
code = main(sys.argv[1:])
print(code, *sorted(sys.modules), file=sys.stderr)
"""


def loaded(*words: str) -> tuple[int, set[str]]:
    """The exit code of a command in a process of its own, and every module it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        env={**os.environ, "BOA_SERVER": NOBODY, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=True,
    )
    code, *modules = done.stderr.splitlines()[-1].split()
    return int(code), set(modules)


# What is loaded


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["ps"], 4),
        (["cost"], 4),
        (["submit", "--class", "bert", "--", "true"], 4),
        (["show", "1"], 4),
        (["plan", "--help"], 0),
        (["simulate", "--help"], 0),
    ],
)
def test_a_command_that_computes_nothing_loads_nothing_to_compute_with(
    words: list[str], code: int
) -> None:
    ended, modules = loaded(*words)
    assert ended == code
    assert not modules & {*EDGES, "numpy", "yaml", "http.client"}


def test_help_loads_no_command() -> None:
    _, modules = loaded("--help")
    commands = {name for name in modules if name.startswith(("boa.cli.plan", "boa.cli.live"))}
    assert commands == set()


def test_a_plan_loads_numpy_and_none_of_the_edges() -> None:
    example = "examples/rubick-a800.yaml"
    code, modules = loaded("plan", example, "--budget", "1000")
    assert code == 0
    assert "numpy" in modules
    assert not modules & {*EDGES, "statistics", "boa.solver.milp", "boa.solver.glue"}


def test_numpy_is_loaded_without_threads_and_the_environment_stays_as_it_was() -> None:
    script = (
        "import os\nfrom boa.cli import options\noptions.load_numpy()\n"
        "print(options.THREADS in os.environ, len(os.listdir('/proc/self/task')))"
    )
    plain = {name: value for name, value in os.environ.items() if name != options.THREADS}
    done = subprocess.run(
        [sys.executable, "-c", script], env=plain, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "1"]


# What the help says


def commands() -> list[tuple[str, click.Command]]:
    top = root()
    return list(shell.every(top, top.make_context("boa", [], resilient_parsing=True)))


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_line_of_a_command_is_the_first_of_its_own_help(entry: shell.Entry) -> None:
    assert entry.summary == helping.summary(shell.loaded(entry))


def test_the_help_lists_every_command_under_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for entry in COMMANDS:
        assert f"{entry.name} {entry.summary}" in said
    assert "Commands plan" in said
    assert "A running service serve" in said


@pytest.mark.parametrize(("name", "command"), commands(), ids=lambda found: str(found))
def test_every_option_and_argument_is_in_the_help_with_its_meaning(
    name: str, command: click.Command
) -> None:
    assert isinstance(command, shell.Command)
    context = command.make_context(name, [], resilient_parsing=True)  # as whoever asks has it
    said = " ".join(command.get_help(context).split())
    for about in command.said.values():
        assert " ".join(about.help.split()) in said
        assert about.metavar in said
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert all(option in said for option in (*parameter.opts, *parameter.secondary_opts))
    assert "[bold]" not in said


def test_a_group_without_a_command_shows_its_help_and_is_wrong_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["trace"]) == 2
    said, wrong = capsys.readouterr()
    assert "Usage: boa trace" in said
    assert "generate" in said
    assert wrong == ""


# What words become


def told(
    count: Annotated[int, shell.Option("--count", min=1, metavar="N")] = 3,
    share: Annotated[float | None, shell.Option("--share", metavar="X")] = None,
    names: Annotated[list[str] | None, shell.Option("--name", metavar="N")] = None,
    fast: Annotated[bool | None, shell.Option("--fast/--slow")] = None,
) -> None:
    """Say what was read."""
    print(repr((count, share, names, fast)))


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("", (3, None, None, None)),
        ("--count 2 --share 0.5", (2, 0.5, None, None)),
        ("--name a --name=b --slow", (3, None, ["a", "b"], False)),
        ("--fast", (3, None, None, True)),
    ],
)
def test_words_become_what_the_signature_says(
    words: str, read: tuple[object, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run(shell.command(told), words.split()) == 0
    assert capsys.readouterr().out.strip() == repr(read)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("ps --limit x", "--limit: got 'x'; expected a whole number >= 1"),
        ("ps --limit 0", "--limit: got '0'; expected a whole number >= 1"),
        ("submit --total-work x --class a -- true", "--total-work: got 'x'; expected a number"),
        ("pln", "No such command 'pln'. Did you mean 'plan'? See 'boa --help'."),
        ("workload descrbe", "No such command 'descrbe'. Did you mean 'describe'?"),
        ("ps extra", "unexpected extra argument"),
        ("show", "Missing argument 'JOB|CLASS'. See 'boa show --help'."),
    ],
)
def test_wrong_words_are_one_line_that_says_what_would_be_right(
    words: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    said, wrong = capsys.readouterr()
    assert said == ""
    assert error in wrong
    assert wrong.count("\n") == 1


@dataclass(frozen=True)
class Sizes:
    """A group of options."""

    least: Annotated[int, shell.Option("--least", metavar="N")]
    most: Annotated[int | None, shell.Option("--most", metavar="N")] = None
    names: Annotated[list[str] | None, shell.Option("--name", metavar="N")] = None


def grouped(
    where: Annotated[str, shell.Argument(metavar="WHERE")],
    *,
    fast: Annotated[bool, shell.Option("--fast")] = False,
    sizes: Sizes,
    json: options.Json = False,
) -> None:
    """Say what was read."""
    print(where, fast, sizes, json)


def test_the_fields_of_a_group_are_options_in_its_place_and_the_command_gets_one_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = shell.command(grouped)
    assert [p.name for p in command.params] == ["where", "fast", "least", "most", "names", "json"]
    words = ["here", "--least", "1", "--name", "a", "--name", "b", "--json"]
    assert shell.run(command, words) == 0
    assert capsys.readouterr().out.strip() == f"here False {Sizes(1, None, ['a', 'b'])} True"
    assert shell.run(command, ["here", "--least", "2", "--most", "3", "--fast"]) == 0
    assert capsys.readouterr().out.strip() == f"here True {Sizes(2, 3)} False"


def test_an_option_of_a_group_that_has_no_default_must_be_given() -> None:
    with pytest.raises(click.MissingParameter, match="least"):
        shell.run(shell.command(grouped), ["here"])


@pytest.mark.parametrize(("name", "command"), commands(), ids=lambda found: str(found))
def test_no_two_parameters_of_a_command_share_a_name(name: str, command: click.Command) -> None:
    names = [parameter.name for parameter in command.params]
    assert len(set(names)) == len(names)


def test_choices_are_those_of_the_solver() -> None:
    assert (options.SOLVERS, options.ROUTINGS) == (planner.SOLVERS, planner.ROUTINGS)
    assert get_args(Billing) == options.BILLINGS


def test_a_shell_can_complete_commands_and_options(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_BOA_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("COMP_WORDS", "boa fro")
    assert main([]) == 0
    assert capsys.readouterr().out == "plain,frontier\n"
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("COMP_WORDS", "boa ps --cl")
    assert main([]) == 0
    assert capsys.readouterr().out == "plain,--class\n"
