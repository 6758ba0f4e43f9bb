"""Histories of the whole loop under prices that change: no cap is crossed, and every dollar is
charged at the price that held."""

import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.records import NodeRecord
from boa.scheduler.money.costs import costs
from boa.scheduler.money.ledger import bill
from changing_prices import Factors, charged, rate
from live import LONG, START, Live, config, prior, profile, spec

HOUR = 3600.0
SHORT = profile("short", work=(3600.0,), alpha=0.8)
SPAN_S = 8 * HOUR
CAP = 24.0
"""Six nodes at the usual price."""


@st.composite
def schedules(draw: st.DrawFn) -> Factors:
    """Changes an hour or more apart, in steps of ten minutes."""
    at, steps = START, []
    for _ in range(draw(st.integers(1, 4))):
        at += draw(st.integers(6, 15)) * 600.0 + draw(st.sampled_from([0.0, 77.0]))
        steps.append((at, draw(st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]))))
    return Factors(tuple(steps))


def lived(
    folder: Path, schedule: Factors, arrivals: Sequence[int], billing: str, crash_at: int | None
) -> tuple[Sequence[NodeRecord], Live]:
    settings = config(
        folder,
        budget=12.0,
        max_spend=CAP,
        billing=billing,
        provision_s=120.0,
        release_s=60.0,
        keep_warm_s=300.0,
        priors={"long": prior(LONG, 0.3), "short": prior(SHORT, 2.0)},
    )
    live = Live(settings, {"long": LONG, "short": SHORT}, schedule=schedule)
    for number, ticks in enumerate(sorted(arrivals)):
        ahead = START + ticks * 900.0 - live.clock.now()
        if ahead > 0:
            live.advance(ahead)
        if number == crash_at:
            live.crash()
        live.submit(spec("long" if number % 3 == 0 else "short"))
    live.advance(START + SPAN_S - live.clock.now())
    assert live.store is not None
    return live.store.nodes_between(-math.inf, math.inf), live


@settings(max_examples=12)
@given(
    schedule=schedules(),
    arrivals=st.lists(st.integers(0, 24), min_size=3, max_size=14),
    billing=st.sampled_from(["gpu", "node"]),
    crash_at=st.none() | st.integers(0, 5),
)
def test_whatever_prices_do_no_cap_is_crossed_and_every_dollar_is_what_the_cloud_charged(
    schedule: Factors, arrivals: list[int], billing: str, crash_at: int | None
) -> None:
    with TemporaryDirectory() as folder:
        nodes, live = lived(Path(folder), schedule, arrivals, billing, crash_at)
        now = live.clock.now()
        moments = {at for at, _ in schedule.steps} | {n.billed_from or START for n in nodes}
        most = max(rate(nodes, 1.0, schedule, at) for at in moments)
        assert most <= CAP * (1 + 1e-9)
        spent = charged(nodes, 1.0, schedule, now)
        money = live.loop.snapshot.money
        assert money.total == pytest.approx(spent, rel=1e-9, abs=1e-9)
        assert live.store is not None
        holds = live.store.holds_between(-math.inf, math.inf)
        found = bill(nodes, holds, -math.inf, now)
        assert [money.jobs, money.idle, money.provisioning] == pytest.approx(
            [found.jobs, found.idle, found.provisioning], rel=1e-9, abs=1e-6
        )
        held = live.store.held_between(-math.inf, math.inf)
        _, rows = costs(nodes, held, START, now, "class")
        assert sum(row["total_usd"] for row in rows) == pytest.approx(spent, rel=1e-9, abs=1e-6)
        live.close()
