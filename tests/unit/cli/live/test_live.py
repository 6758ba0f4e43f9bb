"""Every command that talks to a running service: without one, without the token, in general."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from boa.cli.live.service import ago
from boa.cli.tables import listing
from fakes import NOW, FakeService
from integration.runner import Boa

ASKING = [
    ["ps"],
    ["show", "1"],
    ["show", "bert"],
    ["logs", "1"],
    ["stop", "1"],
    ["nodes"],
    ["cost"],
    ["budget", "show"],
    ["budget", "set", "14"],
    ["plan", "--live"],
    ["submit", "--class", "a", "--", "true"],
]


@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_without_a_server_every_command_exits_with_4_and_says_how_to_start_one(
    run: Boa, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("BOA_SERVER", "http://127.0.0.1:9")
    assert run(*command, code=4) == ""
    assert run.err.count("\n") == 1
    assert "http://127.0.0.1:9" in run.err
    assert "boa serve" in run.err


@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_with_a_wrong_token_every_command_says_which_variable_to_set(
    run: Boa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("BOA_TOKEN", "wrong")
    with FakeService(tmp_path, token="right").serving() as url:
        monkeypatch.setenv("BOA_SERVER", url)
        assert run(*command, code=2) == ""
    assert run.err.count("\n") == 1
    assert "set BOA_TOKEN" in run.err


def test_an_address_that_is_none_is_bad_input(run: Boa, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOA_SERVER", "localhost")
    run("ps", code=2)
    assert "BOA_SERVER: got 'localhost'" in run.err


def test_every_command_teaches_with_examples(run: Boa) -> None:
    commands = ["serve", "submit", "ps", "show", "logs", "stop", "nodes", "cost"]
    for command in [*commands, "budget set", "budget show", "plan", "budget"]:
        said = run(*command.split(), "--help")
        assert f"$ boa {command}" in said or "BOA_TOKEN" in said
        assert "--json" in said
    assert "4 no" in run("--help")


# Words


@pytest.mark.parametrize(
    ("then", "words"),
    [
        (None, "–"),
        (NOW, "just now"),
        (NOW + 0.2, "just now"),
        (NOW - 42, "42 s ago"),
        (NOW - 318, "5.3 min ago"),
        (NOW - 3 * 3600, "3 h ago"),
        (NOW - 12 * 86_400, "12 d ago"),
        (NOW + 20, "in 20 s"),
    ],
)
def test_times_are_told_relative_to_the_server_s(then: float | None, words: str) -> None:
    assert ago(NOW, then) == words


# Tables

COLUMNS = ("job", "name", "class", "state", "took", "cost")
ROWS = [("17", "n" * 200, "c" * 200, "[green]running[/green]", "5 min", "$1,234.56")]


def drawn(width: int, rows: Sequence[tuple[str, ...]]) -> list[str]:
    made = listing(COLUMNS, rows, width, right=("cost",), cut=("name", "class"), drop=("took",))
    return list(made.lines(width, colour=False))


def test_names_are_cut_before_anything_else_and_as_little_as_can_be() -> None:
    _, row = drawn(120, ROWS)
    assert len(row) == 120
    number, name, job_class, *rest = row.split()
    assert (number, rest) == ("17", ["running", "5", "min", "$1,234.56"])
    assert abs(len(name) - len(job_class)) <= 1
    _, row = drawn(120, [("17", "n" * 200, "net", *ROWS[0][3:])])
    assert len(row) == 120
    assert row.split()[2] == "net", "a short name leaves its room to a long one"


def test_then_columns_are_left_out_and_key_columns_never_are() -> None:
    head, row = drawn(48, ROWS)
    assert head.split() == ["job", "name", "class", "state", "cost"]
    assert (row.split()[0], row.split()[-2:]) == ("17", ["running", "$1,234.56"])
    assert row.count("…") == 2
    _, row = drawn(34, ROWS)
    assert (row.split()[0], row.split()[-2:]) == ("17", ["running", "$1,234.56"])


# Serving


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.com"])
def test_without_a_token_only_this_machine_is_listened_to(
    run: Boa, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str
) -> None:
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    monkeypatch.setenv("BOA_HOME", str(tmp_path))
    run("serve", "--host", host, "--port", 0, code=2)
    assert f"--host {host}" in run.err
    assert "BOA_TOKEN" in run.err
    config = tmp_path / "boa.yaml"
    config.write_text(f"host: '{host}'\n")
    run("serve", "--config", config, code=2)
    assert "BOA_TOKEN" in run.err


@pytest.mark.parametrize("token", ["two words", "schlüssel"])
def test_a_token_that_no_header_can_carry_is_refused(
    run: Boa, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, token: str
) -> None:
    monkeypatch.setenv("BOA_TOKEN", token)
    monkeypatch.setenv("BOA_HOME", str(tmp_path))
    run("serve", code=2)
    assert "BOA_TOKEN" in run.err
    assert token not in run.err


def test_a_port_in_use_ends_before_anything_is_begun(
    run: Boa, service: FakeService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("BOA_HOME", str(home))
    port = os.environ["BOA_SERVER"].rpartition(":")[2]
    run("serve", "--port", port, code=2)
    assert "address already in use" in run.err
    assert not home.exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--budget", "0"], "--budget: got '0'"),
        (["--speed", "-1"], "--speed: got '-1'"),
        (["--port", "70000"], "port: got 70000"),
        (["--engine", "slurm"], "engine: got 'slurm'; expected one of local, ray"),
        (["--cloud", "moon"], "cloud: got 'moon'; expected with engine local: local"),
        (["--db", "mysql://x"], "db"),
        (["--config", "nowhere.yaml"], "no such file"),
        (["--data", "/dev/null/boa"], "--data /dev/null/boa: not a directory"),
    ],
)
def test_a_bad_flag_of_serve_is_one_clear_error(
    run: Boa, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: list[str], words: str
) -> None:
    monkeypatch.setenv("BOA_HOME", str(tmp_path))
    run("serve", "--port", "0", *flags, code=2)
    assert words in run.err
