"""What a restart takes by the state's bytes: what was measured, and nothing better than that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.catalogue.calibration import RUBICK_RESCALE_S
from boa.catalogue.figures import known_figures
from boa.catalogue.restarts import Way, measured_restarts, restart_s, rubick_state_bytes
from boa.errors import InputError

WAYS: tuple[Way, ...] = ("memory", "disk")
STATES = st.floats(0, 1e12)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_measured_is_what_is_said(way: Way) -> None:
    for found in measured_restarts(way):
        assert restart_s(found.state_bytes, way) == pytest.approx(found.seconds)
        # parts are medians of their own
        assert sum(found.parts.values()) == pytest.approx(found.seconds, abs=0.04)


@given(STATES, STATES, st.sampled_from(WAYS))
def test_more_state_never_takes_less_and_memory_never_more_than_the_disk(
    one: float, other: float, way: Way
) -> None:
    assert restart_s(min(one, other), way) <= restart_s(max(one, other), way)
    assert restart_s(one, "memory") < restart_s(one, "disk")


def test_a_state_smaller_than_any_measured_is_taken_for_the_smallest() -> None:
    assert restart_s(0, "memory") == measured_restarts("memory")[0].seconds


def test_a_larger_state_goes_on_at_the_last_pace() -> None:
    *_, low, high = measured_restarts("memory")
    further = 2 * high.state_bytes - low.state_bytes
    assert restart_s(further, "memory") == pytest.approx(2 * high.seconds - low.seconds)


def test_every_model_of_rubick_has_a_state() -> None:
    for application in known_figures("rubick").applications:
        assert 0 < restart_s(rubick_state_bytes(application, 24), "disk") < RUBICK_RESCALE_S
    with pytest.raises(InputError, match="application"):
        rubick_state_bytes("resnet18")


def test_a_way_that_is_none_is_an_error() -> None:
    with pytest.raises(InputError, match="memory, disk"):
        restart_s(1e9, "air")  # type: ignore[arg-type]
