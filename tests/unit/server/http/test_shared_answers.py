"""Answers that take long: who works them out, for whom, and for how long they are kept."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from boa.server.http.shared_answers import CHEAP_S, LONGEST_S, TIMES, Shared, nearly

DAY, HOUR, NOW = 86_400.0, 3_600.0, 1_790_000_000.0


@dataclass
class Desk:
    """Somebody to ask, whose clock moves only while work is done, or when told."""

    at: float = 0.0
    done: list[str] = field(default_factory=list)
    most: int = 32

    def __post_init__(self) -> None:
        self.shared = Shared[int](self.most, clock=lambda: self.at)

    def work(self, name: str, takes: float) -> Callable[[], int]:
        def do() -> int:
            self.at += takes
            self.done.append(name)
            return len(self.done)

        return do

    def ask(self, name: str, takes: float = 1.0) -> int:
        return self.shared.of(name, self.work(name, takes)).result(300)


def test_many_who_ask_at_once_wait_for_one_and_are_told_at_once_that_they_wait() -> None:
    shared, go, began = Shared[int](), threading.Event(), list[int]()

    def work() -> int:
        began.append(1)
        assert go.wait(300)
        return 7

    futures = [shared.of("same", work) for _ in range(50)]
    other = shared.of("another", lambda: 8)
    assert other.result(300) == 8, "nobody waits for another question"
    go.set()
    assert {future.result(300) for future in futures} == {7}
    assert began == [1]


def test_an_answer_is_kept_for_so_many_times_as_it_took_and_no_longer() -> None:
    desk = Desk()
    assert desk.ask("dear", takes=2.0) == 1
    desk.at += 2.0 * TIMES
    assert desk.ask("dear", takes=2.0) == 1
    desk.at += 0.1
    assert desk.ask("dear", takes=1000.0) == 2
    desk.at += LONGEST_S + 0.1
    assert desk.ask("dear") == 3, "never for longer than that"


def test_what_is_cheap_is_worked_out_anew() -> None:
    desk = Desk()
    assert [desk.ask("cheap", takes=CHEAP_S / 2) for _ in range(3)] == [1, 2, 3]


def test_an_error_is_told_to_those_who_wait_and_not_kept() -> None:
    desk = Desk()

    def fail() -> int:
        desk.at += 10.0
        raise OSError("the disk")

    for _ in range(2):
        with pytest.raises(OSError, match="the disk"):
            desk.shared.of("same", fail).result(300)
    assert desk.ask("same") == 1


def test_only_so_many_answers_are_kept_and_the_last_asked_for_longest() -> None:
    desk = Desk(most=2)
    assert [desk.ask(name) for name in "abacab"] == [1, 2, 1, 3, 1, 4]


def test_who_gives_up_waiting_ends_it_for_nobody_else() -> None:
    shared, go = Shared[int](), threading.Event()
    first = shared.of("same", lambda: int(go.wait(300)))
    second = shared.of("same", lambda: 2)
    assert not first.cancel()
    go.set()
    assert second.result(300) == 1


@pytest.mark.parametrize("length", [HOUR, DAY, 7 * DAY, 30 * DAY])
def test_pages_that_ask_for_the_last_so_long_mostly_ask_the_same(length: float) -> None:
    """Each a little later than the one before, for a tenth of a thousandth of the time."""
    asked = [NOW + n * length / 100_000 for n in range(10)]
    keys = {nearly(now - length, now, now) for now in asked}
    assert len(keys) <= 2
    assert nearly(NOW - length, NOW, NOW) != nearly(NOW - 1.01 * length, NOW, NOW)


def test_a_time_that_has_ended_is_like_no_other() -> None:
    assert nearly(NOW - DAY, NOW - HOUR, NOW) != nearly(NOW - DAY + 1, NOW - HOUR, NOW)
    assert nearly(NOW - DAY, NOW - HOUR, NOW) == nearly(NOW - DAY, NOW - HOUR, NOW + 1)
    nearly(NOW, NOW, NOW)  # and one without any length is one, too
