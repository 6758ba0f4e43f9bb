"""`boa events` and `boa completion`."""

import json
import subprocess
from pathlib import Path

import pytest

from boa.client import Client
from fakes import NOW, FakeService
from integration.runner import Boa


@pytest.fixture
def told(service: FakeService) -> FakeService:
    service.submit()
    service.control.tell("node_rented", "node 1 is rented")
    service.control.tell("failed", "job 1 failed", job="1")
    return service


def test_events_are_told_oldest_first_with_their_time(run: Boa, told: FakeService) -> None:
    lines = run("events").splitlines()
    assert [line.split()[2] for line in lines] == ["submitted", "node_rented", "failed"]
    assert run("events", "--job", 1, "--limit", 1).endswith("job 1 failed\n")
    assert run("events", "--kind", "node_rented").count("\n") == 1
    assert [e["kind"] for e in run.json("events", "--kind", "failed")["events"]] == ["failed"]
    told.control.clock = NOW + 7200
    assert run("events", "--since", "1h") == ""
    assert run("events", "--since", "3h").count("\n") == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kind", "nonsense"), "--kind: got 'nonsense'; expected one of submitted, started"),
        (("--since", "whenever"), "--since"),
        (("--limit", "-1"), "--limit"),
        (("--job", "abc"), "the id of a job"),
    ],
)
def test_what_makes_no_sense_is_refused(
    run: Boa, told: FakeService, words: tuple[str, ...], said: str
) -> None:
    run("events", *words, code=2)
    assert said in run.err


def test_a_job_that_never_was_is_not_waited_for(run: Boa, told: FakeService) -> None:
    run("events", "-f", "--job", 99, code=2)


def test_what_happens_is_told_as_it_happens_one_document_to_a_line(
    run: Boa, told: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def two(client: Client, *, after: int | None = None, job: str | None = None) -> object:
        told.control.tell("budget", "the budget is $9/h", job=None)
        yield from client.history(after=after, job=job)
        raise KeyboardInterrupt

    monkeypatch.setattr(Client, "events", two)
    said = run("events", "-f", "--json", code=130)
    found = [json.loads(line) for line in said.splitlines()]
    assert [event["kind"] for event in found] == ["submitted", "node_rented", "failed", "budget"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_asks_us(run: Boa, shell: str) -> None:
    assert f"_BOA_COMPLETE={shell}_complete" in run("completion", shell)


def test_the_script_is_one_that_bash_reads(run: Boa, tmp_path: Path) -> None:
    script = tmp_path / "boa.bash"
    script.write_text(run("completion", "bash"))
    assert subprocess.run(["bash", "-n", script], timeout=300).returncode == 0


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("boa submit jo", "file,jo"),
        ("boa submit --env-file ", "file,"),
        ("boa serve --config bo", "file,bo"),
        ("boa submit --class a -- python tr", "file,tr"),
        ("boa completion z", "plain,zsh"),
        ("boa submit --launcher t", "plain,torchrun"),
        ("boa submit --epochs ", ""),
        ("boa artifacts g", "plain,get"),
    ],
)
def test_words_are_completed_by_what_they_may_be_and_files_else(
    run: Boa, monkeypatch: pytest.MonkeyPatch, line: str, offered: str
) -> None:
    """Bash leaves all of a line to who says that he completes it, files too."""
    monkeypatch.setenv("_BOA_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    assert run().strip() == offered


def test_other_shells_are_refused(run: Boa) -> None:
    run("completion", "tcsh", code=2)
    assert "expected one of bash, zsh, fish" in run.err
