"""Waits that double, up to a limit."""

import pytest

from boa.backoff import doubled


def test_each_failure_doubles_the_wait_until_it_is_long_enough() -> None:
    assert [doubled(30.0, n, 200.0) for n in range(1, 6)] == [30.0, 60.0, 120.0, 200.0, 200.0]


@pytest.mark.parametrize(("first", "failures"), [(30.0, 10_000), (500.0, 1), (1e-9, 10**9)])
def test_no_wait_is_above_the_limit_however_often_it_failed(first: float, failures: int) -> None:
    assert doubled(first, failures, 200.0) == 200.0


def test_who_does_not_wait_never_does() -> None:
    assert doubled(0.0, 10_000, 200.0) == 0.0
