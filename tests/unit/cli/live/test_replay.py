"""Where a replayed training is at any time, and how fast it goes on which GPUs."""

from typing import Any

import pytest

from boa.train.replay import Reporter, Timeline, Unusable, rates_on
from replaying import PROFILE, TOTAL

RATES = [1.0, 2.0, 4.0]


def test_epochs_end_when_their_work_is_done() -> None:
    timeline = Timeline(PROFILE["work"], RATES)
    assert timeline.ends == [100.0, 200.0, 225.0]
    assert timeline.over == 225.0


@pytest.mark.parametrize(
    ("seconds", "position"),
    [
        (0.0, (0, 0.0, 0.0)),
        (30.0, (0, 30.0, 30.0)),
        (100.0, (1, 0.0, 100.0)),  # a boundary belongs to the epoch that begins
        (150.0, (1, 100.0, 200.0)),
        (200.0, (2, 0.0, 300.0)),
        (225.0, (2, 100.0, TOTAL)),  # the end is the last epoch in full
        (1e9, (2, 100.0, TOTAL)),
    ],
)
def test_progress_follows_from_the_time_alone(
    seconds: float, position: tuple[int, float, float]
) -> None:
    assert Timeline(PROFILE["work"], RATES).at(seconds) == position


def test_a_resumed_run_counts_its_own_units_and_the_epoch_s_whole_progress() -> None:
    timeline = Timeline(PROFILE["work"], RATES, epoch=1, progress=150.0)
    assert timeline.ends == [25.0, 50.0]
    assert timeline.at(0.0) == (1, 150.0, 0.0)
    assert timeline.at(10.0) == (1, 170.0, 20.0)
    assert timeline.at(25.0) == (2, 0.0, 50.0)
    assert timeline.at(50.0) == (2, 100.0, 150.0)


def test_nothing_is_left_of_a_training_that_is_done() -> None:
    timeline = Timeline(PROFILE["work"], RATES, epoch=2, progress=100.0)
    assert timeline.over == 0.0
    assert timeline.at(0.0) == (2, 100.0, 0.0)


@pytest.mark.parametrize(
    ("width", "nodes", "rate"),
    [
        (1, 1, 1.0),
        (2, 1, 2.0),
        (2, 2, 1.6),
        (3, 1, 2.5),  # never measured on one node: as across nodes
        (3, 2, 2.5),
        (9, 2, 2.5),  # wider than measured: no faster
        (1, 2, 1.0),
    ],
)
def test_the_rate_is_that_of_the_width_and_the_nodes(width: int, nodes: int, rate: float) -> None:
    assert rates_on(PROFILE, "T4", width, nodes) == [rate] * 3


def test_what_was_never_measured_cannot_be_replayed() -> None:
    with pytest.raises(Unusable, match="BOA_GPU_TYPE: got 'slot'; expected one of T4"):
        rates_on(PROFILE, "slot", 1, 1)
    wide: dict[str, Any] = {
        "work": [1],
        "rates": {"T4": {"one_node": [[0, 1]], "across": [[0, 1]]}},
    }
    with pytest.raises(Unusable, match="BOA_WIDTH: got 1"):
        rates_on(wide, "T4", 1, 1)


@pytest.mark.parametrize("url", ["ftp://host:1/x", "https://host/x", "host:1", "http://host/x", ""])
def test_only_http_and_https_with_a_port_are_reported_to(url: str) -> None:
    with pytest.raises(Unusable, match="BOA_REPORT_URL"):
        Reporter(url, "")
