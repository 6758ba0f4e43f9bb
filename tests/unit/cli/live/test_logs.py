"""`boa logs`: runs apart from each other, all workers, since when, and lines that match."""

import os
from pathlib import Path

import pytest

from boa.client import Client
from boa.engines.processes.run_files import Log
from boa.model.runs import LogFile
from boa.server.http.log_times import marks_of, offset_since
from fakes import FakeService
from integration.runner import Boa


@pytest.fixture
def two_runs(service: FakeService) -> FakeService:
    service.submit()
    service.engine.write("1", "one\nstep 1\nno end", attempt=1)
    service.engine.write("1", "of rank 1\n", attempt=1, rank=1)
    service.engine.write("1", "two\nstep 2\n", attempt=2)
    return service


def test_runs_are_apart_and_named(run: Boa, two_runs: FakeService) -> None:
    first, one, step, end, second, two, *_ = run("logs", 1).splitlines()
    assert first.startswith("── attempt 1")
    assert (one, step, end) == ("one", "step 1", "no end"), "a last line is ended"
    assert second.startswith("── attempt 2")
    assert two == "two"
    assert run("logs", 1, "--attempt", 2) == "two\nstep 2\n", "of one run there is nothing to part"


def test_all_workers_can_be_read_at_once(run: Boa, two_runs: FakeService) -> None:
    said = run("logs", 1, "--rank", "all", "--attempt", 1)
    assert [line for line in said.splitlines() if line.startswith("──")] == [
        "── attempt 1 · rank 0 ──",
        "── attempt 1 · rank 1 ──",
    ]
    assert said.endswith("of rank 1\n")
    document = run.json("logs", 1, "--rank", "all")
    assert [(r["attempt"], r["rank"]) for r in document["runs"]] == [(1, 0), (1, 1), (2, 0)]


def test_only_lines_that_match_are_printed(run: Boa, two_runs: FakeService) -> None:
    said = run("logs", 1, "--grep", r"step \d")
    assert [line for line in said.splitlines() if not line.startswith("──")] == ["step 1", "step 2"]
    assert run.json("logs", 1, "--attempt", 1, "--grep", "no end")["text"] == "no end\n"


def test_runs_without_a_line_that_matches_have_no_head(run: Boa, two_runs: FakeService) -> None:
    head, line = run("logs", 1, "--rank", "all", "--grep", "step 2").splitlines()
    assert head.startswith("── attempt 2")
    assert line == "step 2"
    assert run("logs", 1, "--rank", "all", "--grep", "never said") == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rank", "some"), "--rank: got 'some'; expected a worker's number from 0, or all"),
        (("--rank", "-1"), "--rank"),
        (("--grep", "("), "--grep: "),
        (("--since", "soon"), "a time ago (30m, 12h, 7d, 2w) or a date"),
        (("--rank", "all", "-f"), "follow one worker"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    run: Boa, two_runs: FakeService, words: tuple[str, ...], said: str
) -> None:
    run("logs", 1, *words, code=2)
    assert said in run.err


def test_followed_runs_are_parted_too_and_each_ends_with_its_run(
    run: Boa, two_runs: FakeService
) -> None:
    two_runs.control.end("1", "succeeded", exit_code=0)
    said = run("logs", 1, "-f")
    assert said.startswith("one\nstep 1\nno end")
    assert "── attempt 2" in said
    assert said.endswith("two\nstep 2\n")


def test_a_followed_run_ends_when_another_has_begun(two_runs: FakeService) -> None:
    two_runs.control.run("1", attempt=2)
    with Client() as client:
        assert "".join(client.logs("1", attempt=1, follow=True)) == "one\nstep 1\nno end"


def test_the_newest_lines_may_be_asked_for_by_time(
    run: Boa, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.submit()
    service.engine.write("1", "old\n", attempt=1)
    service.engine.write("1", "new\n", attempt=2)
    long_ago = 1_000_000.0
    os.utime(service.folder / "1" / "1-0-1.log", (long_ago, long_ago))
    with Client() as client:
        since = client.health()["now"] - 3600
        assert "".join(client.logs("1", since=since)) == "new\n"
        assert "".join(client.logs("1")) == "old\nnew\n"


# When what was printed


def test_a_log_knows_when_its_bytes_were_printed_and_seldom_notes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    now = 1000.0
    monkeypatch.setattr("time.time", lambda: now)
    log = Log(0, 10_000)
    for second in range(60):
        now = 1000.0 + second / 4
        log.write(b"%04d\n" % second)
    file = LogFile(1, 0, tmp_path / "0.log")
    marks = marks_of(file)
    assert len(marks) == 15, "once a second"
    os.utime(tmp_path / "0.log", (now, now))
    begin = offset_since([file], 1010.0)
    assert (tmp_path / "0.log").read_bytes()[begin:].startswith(b"0040\n")
    assert offset_since([file], 999.0) == 0
    assert offset_since([file], now + 1) == (tmp_path / "0.log").stat().st_size


def test_times_count_what_was_cut_off_a_long_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    now = 1000.0
    monkeypatch.setattr("time.time", lambda: now)
    log = Log(0, 4096)
    for second in range(1000):
        now = 1000.0 + second
        log.write(b"%04d\n" % second)
    files = [LogFile(1, 0, tmp_path / name) for name in ("0.old.log", "0.log")]
    os.utime(tmp_path / "0.log", (now, now))
    os.utime(tmp_path / "0.old.log", (now - 200, now - 200))
    begin = offset_since(files, now - 10)
    text = b"".join(file.path.read_bytes() for file in files)[begin:]
    assert text == b"".join(b"%04d\n" % second for second in range(989, 1000))
