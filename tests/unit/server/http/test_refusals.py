"""Refused requests in the audit log: told at once, and never so many that they fill a disk."""

from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from boa.model.access import AuditEntry
from boa.server.http.refusals import KINDS, LONGEST_S, Kind, Refusals, kind_of


class Log:
    def __init__(self) -> None:
        self.now = 1000.0
        self.lines: list[AuditEntry] = []
        self.refusals = Refusals(self.write, lambda: self.now)

    def write(self, lines: Sequence[AuditEntry]) -> "Future[None]":
        self.lines += lines
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def pass_s(self, seconds: float) -> None:
        self.now += seconds
        self.refusals.tick()

    @property
    def said(self) -> list[tuple[str, int]]:
        return [(line.address, line.count) for line in self.lines]


@pytest.fixture
def log() -> Log:
    return Log()


def kind(n: int = 0) -> Kind:
    return kind_of(401, "", "", f"10.0.0.{n}", "GET", "/api/v1/jobs")


def test_the_first_of_a_kind_is_told_at_once_and_the_others_counted(log: Log) -> None:
    for _ in range(1000):
        log.refusals.add(kind())
    assert log.said == [("10.0.0.0", 1)]
    log.pass_s(61)
    assert log.said == [("10.0.0.0", 1), ("10.0.0.0", 999)]
    log.pass_s(1000)
    assert len(log.lines) == 2


def test_from_many_addresses_only_some_have_lines_of_their_own(log: Log) -> None:
    for n in range(5000):
        log.refusals.add(kind(n))
    assert len(log.lines) == KINDS
    log.pass_s(61)
    assert len(log.lines) == KINDS + 1
    assert sum(line.count for line in log.lines) == 5000


def test_a_flood_of_a_day_leaves_a_few_hundred_lines(log: Log) -> None:
    for n in range(24 * 3600):
        log.refusals.add(kind(n))
        log.pass_s(1)
    log.refusals.close()
    assert len(log.lines) < 24 * (KINDS + 1) + 200
    assert sum(line.count for line in log.lines) == 24 * 3600


def test_windows_are_short_again_after_a_quiet_time(log: Log) -> None:
    for n in range(200_000):
        log.refusals.add(kind(n % 3))
        log.pass_s(0.1)
    log.pass_s(LONGEST_S)
    log.pass_s(LONGEST_S)
    log.refusals.add(kind(7))
    log.pass_s(LONGEST_S)
    log.lines.clear()
    log.refusals.add(kind(7))
    log.refusals.add(kind(7))
    log.pass_s(61)
    assert log.said == [("10.0.0.7", 1), ("10.0.0.7", 1)]


def test_what_was_counted_is_told_at_the_end_and_paths_are_kept_short(log: Log) -> None:
    odd = kind_of(401, "", "", "10.0.0.1", "GET", "/\n\x1b[31m" + "x" * 10_000)
    log.refusals.add(odd)
    log.refusals.add(odd)
    log.refusals.close()
    assert [line.count for line in log.lines] == [1, 1]
    assert all(line.subject.isprintable() and len(line.subject) <= 80 for line in log.lines)
