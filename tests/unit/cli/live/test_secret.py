"""Secrets from the command line: set without being seen, listed, removed, given to jobs."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from boa.model.job import SecretUse
from boa.runtime.vault import Vault
from fakes import FakeService
from integration.runner import Boa

VALUE = "hunter2-and-more"


@pytest.fixture(autouse=True)
def keys(service: FakeService, tmp_path: Path) -> None:
    service.control.vault = Vault(tmp_path / "secret.key", {})


def typed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def value_of(service: FakeService, name: str) -> str:
    from boa.model.job import JobSpec

    spec = JobSpec(job_class="a", run=("true",), secrets=(SecretUse(name, name),))
    return service.control.vault.values(spec)[name]


def test_a_value_is_read_from_standard_input_less_the_end_of_its_line(
    run: Boa, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, f"{VALUE}\n".encode())
    assert run("secret", "set", "KEY") == ""
    assert "secret KEY is set" in run.err
    assert VALUE not in run.err
    assert value_of(service, "KEY") == VALUE


def test_a_value_is_asked_for_on_a_terminal_and_not_shown(
    run: Boa, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("getpass.getpass", lambda prompt: VALUE)
    answer = run.json("secret", "set", "KEY")
    assert answer["secret"]["name"] == "KEY"
    assert value_of(service, "KEY") == VALUE


def test_ctrl_d_instead_of_a_value_sets_nothing_and_is_no_bug(
    run: Boa, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("getpass.getpass", nothing)
    run("secret", "set", "KEY", code=2)
    assert "value: none was given; expected a value to be typed in" in run.err
    assert service.control.vault.secrets() == []


def test_a_file_is_taken_as_it_is(run: Boa, service: FakeService, tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    path.write_text("{\n}\n")
    run("secret", "set", "KEY", "--from-file", path)
    assert value_of(service, "KEY") == "{\n}\n"
    run("secret", "set", "KEY", "--from-file", tmp_path / "nowhere", code=2)
    assert "no such file" in run.err
    path.write_bytes(b"\xff\xfe")
    run("secret", "set", "KEY", "--from-file", path, code=2)
    assert "has other bytes; expected UTF-8 text" in run.err


def test_a_value_is_no_argument(run: Boa, service: FakeService) -> None:
    run("secret", "set", "KEY", VALUE, code=2)
    assert service.control.vault.secrets() == []


def test_secrets_are_listed_by_name_and_removed(
    run: Boa, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no secrets are set" in run("secret", "list")
    for name in ("ZETA", "KEY"):
        typed(monkeypatch, VALUE.encode())
        run("secret", "set", name)
    listed = run("secret", "list")
    assert [line.split()[0] for line in listed.splitlines()] == ["name", "KEY", "ZETA"]
    assert VALUE not in listed
    document: dict[str, Any] = run.json("secret", "list")
    assert [set(row) for row in document["secrets"]] == [{"name", "set_at", "set_by", "jobs"}] * 2
    assert run.json("secret", "rm", "KEY")["secret"]["name"] == "KEY"
    run("secret", "rm", "KEY", code=2)
    assert "got 'KEY'; expected one that is set" in run.err


def test_a_job_names_secrets_and_the_variables_that_hold_them(
    run: Boa, service: FakeService, tmp_path: Path
) -> None:
    run("submit", "--class", "a", "--secret", "HF_TOKEN", "--secret", "W=WANDB", "--", "true")
    path = tmp_path / "job.yaml"
    path.write_text("{class: a, run: b, secrets: [HF_TOKEN, {name: W, env: WANDB}]}")
    run("submit", path)
    for job in ("1", "2"):
        found = service.control.active[job].spec.secrets
        assert found == (SecretUse("HF_TOKEN", "HF_TOKEN"), SecretUse("W", "WANDB"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--secret", "A-B"], "secrets[0].name: got 'A-B'"),
        (["--secret", "A=RANK"], "secrets[0].env: got 'RANK'"),
        (["--secret", "RANK"], "secrets[0]: got 'RANK'; expected {name: RANK, env: VARIABLE}"),
        (["--secret", "A", "--secret", "A"], "secrets[1]: got 'A'; expected a variable that"),
        (["--secret", "A", "--env", "A=1"], "secrets[0]: got 'A'; expected a variable that"),
    ],
)
def test_a_secret_that_no_job_can_have_is_refused(
    run: Boa, arguments: list[str], words: str
) -> None:
    run("submit", "--class", "a", *arguments, "--", "true", code=2)
    assert words in run.err
