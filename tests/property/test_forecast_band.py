"""The forecast's band holds the month's end about as often as it says."""

import random
from datetime import UTC, datetime

import pytest

from boa.model.records import NodeRecord
from boa.scheduler.money.forecast import forecast
from boa.scheduler.money.ledger import bill

HOUR = 3600.0
MONTH = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
END = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
MONTHS = 200


def month_of_nodes(
    seed: int, per_hour: float, mean_h: float, swing: float = 0.0
) -> list[NodeRecord]:
    """Nodes of a dollar an hour that come by chance and stay for a time by chance; `swing`: by how
    much more of them come by day than by night."""
    luck, nodes, at = random.Random(seed), list[NodeRecord](), MONTH - 20 * mean_h * HOUR
    while at < END:
        at += luck.expovariate(per_hour * (1 + swing)) * HOUR
        by_day = (at - MONTH) % (24 * HOUR) < 12 * HOUR
        if luck.random() > (1.0 if by_day else (1 - swing) / (1 + swing)):
            continue
        gone = at + luck.expovariate(1 / mean_h) * HOUR
        nodes.append(
            NodeRecord(
                id=len(nodes) + 1,
                token="t",
                gpu="T4",
                gpus=1,
                price=1.0,
                state="gone",
                requested_at=at,
                billed_from=at,
                gone_at=gone,
            )
        )
    return nodes


def covered(day: float, per_hour: float, mean_h: float, swing: float = 0.0) -> float:
    """Share of simulated months whose bill was in the band that was foretold on that day."""
    inside = 0
    for seed in range(MONTHS):
        nodes = month_of_nodes(seed, per_hour, mean_h, swing)
        now = MONTH + day * 24 * HOUR
        known = [node for node in nodes if (node.billed_from or 0.0) < now]
        band = forecast(known, now).band
        assert band is not None
        inside += band[0] <= bill(nodes, (), MONTH, END).total <= band[1]
    return inside / MONTHS


@pytest.mark.parametrize(
    ("day", "per_hour", "mean_h", "swing"),
    [(3, 2.0, 0.5, 0.0), (10, 1.0, 2.0, 0.0), (25, 1.0, 2.0, 0.0), (10, 1.0, 1.0, 0.8)],
)
def test_four_of_five_months_end_within_their_band(
    day: float, per_hour: float, mean_h: float, swing: float
) -> None:
    assert 0.7 <= covered(day, per_hour, mean_h, swing) <= 0.9
