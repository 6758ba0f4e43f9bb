"""Time that no jump of the machine's clock can disturb."""

import time

import pytest

from boa.clock import SteadyClock, VirtualClock


class Machine:
    """What a machine says of the time: by its wall, and since it booted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.uptime = 1_000_000.0, 50.0
        monkeypatch.setattr(time, "time", lambda: self.wall)
        monkeypatch.setattr(time, "clock_gettime", lambda _: self.uptime)

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.uptime += seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_a_clock_that_is_set_moves_nothing(machine: Machine) -> None:
    clock = SteadyClock()
    for jump in (7200.0, -86_400.0):
        before = clock.now()
        machine.wall += jump
        machine.pass_by(10.0)
        assert clock.now() == pytest.approx(before + 10.0)
    assert clock.jump() == pytest.approx(7200.0 - 86_400.0)


def test_compressed_time_passes_so_many_times_as_fast(machine: Machine) -> None:
    clock = SteadyClock(speed=60.0)
    before = clock.now()
    machine.pass_by(2.0)
    assert clock.now() - before == pytest.approx(120.0)


def test_a_service_goes_on_where_it_stopped_plus_what_has_passed(machine: Machine) -> None:
    clock = SteadyClock(speed=60.0)
    machine.pass_by(5.0)
    last = (clock.now(), machine.wall)
    machine.pass_by(10.0)
    assert SteadyClock(60.0, last).now() == pytest.approx(last[0] + 600.0)


def test_time_never_runs_back_over_a_restart(machine: Machine) -> None:
    last = (SteadyClock().now(), machine.wall)
    machine.wall -= 3600.0
    assert SteadyClock(1.0, last).now() >= last[0]


def test_virtual_time_refuses_to_run_back() -> None:
    clock = VirtualClock(10.0)
    with pytest.raises(ValueError, match="cannot run back"):
        clock.advance_to(9.0)
