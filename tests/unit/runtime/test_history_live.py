"""What was, of a real service: the control loop, its store and the routes over them."""

import asyncio
from typing import Any

import httpx
import pytest

from boa.scheduler.money.ledger import bill
from boa.server.app import create_app
from live import START, Live, spec

HOUR = 3600.0


def ask(live: Live, path: str, **params: Any) -> Any:
    assert live.store is not None
    app = create_app(
        live.loop, live.store, live.engine, token=None, secret=b"secret", version="1.2.3"
    )

    async def answered() -> httpx.Response:
        base = "http://127.0.0.1:8420"
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.get(f"/api/v1/{path}", params=params)

    answer = asyncio.run(answered())
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def live(lives: Any) -> Live:
    """Two jobs have run, and a third one does."""
    live: Live = lives(keep_warm_s=300.0)
    live.engine.report_s = 20.0
    for _ in range(2):
        live.submit(spec("halves", epochs=2))
        live.advance(400.0, tick=30.0)
    live.finish()
    live.advance(900.0, tick=30.0)
    live.submit(spec("halves", epochs=2))
    live.advance(300.0, tick=30.0)
    return live


def test_the_history_adds_up_to_the_bill(live: Live) -> None:
    found = ask(live, "history", since=START - 600.0, points=90)
    until, hours = found["until"], (found["until"] - found["since"]) / HOUR
    assert live.store is not None
    nodes, holds = (
        live.store.nodes_between(0.0, until),
        live.store.holds_between(0.0, until),
    )
    owed = bill(nodes, holds, found["since"], until)
    mean = sum(found["spend_per_hour"]) / 90
    assert owed.total > 0
    assert mean * hours == pytest.approx(owed.total)
    used = sum(found["gpus"]["T4"]["used"]) / 90
    assert used * hours * 1.0 == pytest.approx(owed.jobs), "at $1 per GPU and hour"
    first = min(node.billed_from for node in nodes if node.billed_from is not None)
    average = owed.total / (until - first) * HOUR
    assert found["average_spend_per_hour"][-1] == pytest.approx(average)


def test_what_was_wanted_is_known_since_the_service_began(live: Live) -> None:
    found = ask(live, "history", since=START - 600.0, points=90)
    began = int(600.0 / found["step_s"])
    assert found["budget_per_hour"][: began - 1] == [None] * (began - 1)
    assert set(found["budget_per_hour"][began + 1 :]) == {12.0}
    for told in (found["active_jobs"], found["waiting_jobs"], found["gpus"]["T4"]["wanted"]):
        assert None not in told[began + 1 :]
        assert max(told[began + 1 :]) > 0 or told is found["waiting_jobs"]
    assert 0.0 in found["active_jobs"], "between the jobs"
    assert found["active_jobs"][-1] == 1.0


def test_a_job_s_runs_cost_what_the_job_cost(live: Live) -> None:
    for number in ("1", "2", "3"):
        found = ask(live, f"jobs/{number}/history")
        job = ask(live, f"jobs/{number}")["job"]
        assert sum(run["cost_usd"] for run in found["runs"]) == pytest.approx(job["cost_usd"])
        assert len(found["runs"]) == job["attempts"]
        assert (found["runs"][-1]["until"] is None) == (number == "3")
        assert {run["gpu_type"] for run in found["runs"]} == {"T4"}
        assert len(found["points"]) > 3
        assert all(rate is None or rate > 0 for rate in (p["rate"] for p in found["points"]))
        assert sum(point["rate"] is None for point in found["points"]) == len(found["runs"])
