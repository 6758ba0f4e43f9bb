"""One moment, one figure: the terminal, the API, the metrics and the page agree to the cent."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from boa.amounts import dollars, duration, rate
from boa.scheduler.money.costs import month_of
from boa.server.app import create_app
from boa.server.http.run import listen, server_for, url_of
from integration.runner import Boa
from live import Live, config, prior, profile, spec
from reading import FakeEngine

NARROW, WIDE = profile("narrow", work=(1800.0,)), profile("wide", work=(36_000.0,), alpha=0.9)
UNSEEN_S = 27.0
"""Seconds that the clock has gone on since the loop last looked: nobody may count them."""
PARTS = {"jobs": "jobs", "idle": "idle", "provisioning": "booting"}
"""Parts of what was spent, as programs read them and as people do."""
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def live(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Live]:
    """Jobs of two classes under a budget and a cap, in the middle of it all: some have ended, some
    run, nodes are idle or boot. Then time stands still."""
    known = {"narrow": NARROW, "wide": WIDE}
    priors = {name: prior(profile, per_hour=3.0) for name, profile in known.items()}
    live = Live(
        config(
            tmp_path,
            budget=11.0,
            max_spend=24.0,
            billing=request.param,
            provision_s=120.0,
            release_s=30.0,
            keep_warm_s=600.0,
            priors=priors,
        ),
        known,
    )
    live.settle()
    for _ in range(4):
        live.submit(spec("narrow"))
        live.advance(1111.1)
        live.submit(spec("wide"))
        live.advance(777.7)
    live.clock.advance_to(live.clock.now() + UNSEEN_S)
    yield live
    live.close()


billings = pytest.mark.parametrize("live", ["gpu", "node"], indirect=True)


@contextmanager
def serving(live: Live, folder: Path) -> Iterator[str]:
    assert live.store is not None
    engine: Any = FakeEngine(folder)
    app = create_app(live.loop, live.store, engine, token=None, secret=b"s", version="1")
    listening, ready = listen("127.0.0.1", 0), threading.Event()
    server = server_for(app, ready.set, None)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert ready.wait(300)
        yield url_of(listening, None)
    finally:
        server.end()
        thread.join(300)


def cents(amount: float) -> str:
    return dollars(amount)


def metrics(url: str) -> dict[str, float]:
    """Samples by name, or name and part."""
    text = httpx.get(f"{url}/metrics", timeout=300).text
    samples = [s for f in text_string_to_metric_families(text) for s in f.samples]
    return {s.name + s.labels.get("part", ""): s.value for s in samples}


def opening(url: str) -> Any:
    """The first message of the page's stream."""
    with httpx.stream("GET", f"{url}/api/v1/live", headers=STREAM, timeout=300) as answer:
        line = next(line for line in answer.iter_lines() if line.startswith("data: "))
    return json.loads(line.removeprefix("data: "))


@billings
def test_terminal_api_metrics_and_page_agree_to_the_cent(
    live: Live, run: Boa, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    with serving(live, tmp_path) as url:
        monkeypatch.setenv("BOA_SERVER", url)

        def get(path: str) -> Any:
            return httpx.get(f"{url}/api/v1/{path}", timeout=300).raise_for_status().json()

        cost, told, page = get("cost"), metrics(url), opening(url)["budget"]
        assert min(cost[f"{part}_usd"] for part in PARTS) >= 0.01, "there is something to compare"
        assert cost["spend_now_per_hour"] > 0
        # Limits and rates, everywhere
        gauge = {
            "budget_per_hour": "boa_budget_usd_per_hour",
            "max_spend_per_hour": "boa_max_spend_usd_per_hour",
            "effective_budget_per_hour": "boa_effective_budget_usd_per_hour",
            "spend_now_per_hour": "boa_spend_usd_per_hour",
            "average_spend_per_hour": "boa_average_spend_usd_per_hour",
        }
        said, shown = run("cost"), run("budget", "show")
        budgets = [get("budget"), page, get("live")["budget"], run.json("budget", "show")]
        for key, name in gauge.items():
            figures = {cents(cost[key]), cents(told[name]), *(cents(b[key]) for b in budgets)}
            assert figures == {cents(cost[key])}, key
            if key != "average_spend_per_hour":  # since the budget was set, not on the bill's
                assert f"{cents(cost[key])}/h" in said, key
                assert f"{cents(cost[key])}/h" in shown, key
        bill = f"{rate(cost['forecast_pace_per_hour'])} over {duration(cost['forecast_over_s'])}"
        assert f"average     {bill}: " in said
        assert f"average  {bill}: " in shown
        assert f"{cents(cost['spend_now_per_hour'])}/h" in run("nodes")
        # Spend and its parts; the page asks for the month, which all of it is in
        month = get(f"cost?since={month_of(cost['now'])[0]}")
        for part, word in PARTS.items():
            amount = cents(cost[f"{part}_usd"])
            assert (
                amount == cents(told[f"boa_spent_usd_total{part}"]) == cents(month[f"{part}_usd"])
            )
            assert f"{word} {amount}" in said
        total = sum(told[f"boa_spent_usd_total{part}"] for part in PARTS)
        assert cents(cost["total_usd"]) == cents(total) == cents(month["total_usd"])
        assert f"spent       {cents(total)}: " in said
        # The month's forecast
        forecast = cents(cost["forecast_month_usd"])
        assert forecast == cents(told["boa_forecast_month_usd"])
        assert forecast == cents(month["forecast_month_usd"])
        assert f"this month  {forecast} by its end" in said


@billings
def test_spend_by_class_and_by_job_adds_up_to_the_spend_everywhere(
    live: Live, run: Boa, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    with serving(live, tmp_path) as url:
        monkeypatch.setenv("BOA_SERVER", url)

        def get(path: str) -> Any:
            return httpx.get(f"{url}/api/v1/{path}", timeout=300).raise_for_status().json()

        total = get("cost")["total_usd"]
        rows = {row["class"]: row["total_usd"] for row in get("cost?by=class")["rows"]}
        since = month_of(get("health")["now"])[0]
        month = {r["class"]: r["total_usd"] for r in get(f"cost?by=class&since={since}")["rows"]}
        assert set(rows) == {"narrow", "wide", None}
        assert cents(sum(rows.values())) == cents(total)
        assert {name: cents(usd) for name, usd in rows.items()} == {
            name: cents(usd) for name, usd in month.items()
        }
        table = run("cost", "--by", "class").partition("\n\n")[2].splitlines()[1:]
        printed = {re.split(r"\s+", line)[0]: re.split(r"\s{2,}", line)[4] for line in table}
        assert printed == {name or "idle": cents(usd) for name, usd in rows.items()}
        by_job = {row["job"]: row["total_usd"] for row in get("cost?by=job")["rows"]}
        jobs = {job["id"]: job["cost_usd"] for job in run.json("ps", "--all")["jobs"]}
        watched = {job["id"]: job["cost_usd"] for job in get("live")["jobs"]}
        assert {job: cents(usd) for job, usd in jobs.items()} == {
            job: cents(usd) for job, usd in by_job.items() if job is not None
        }
        assert watched.items() <= jobs.items()
        assert cents(rows[None]) == cents(by_job[None])


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Live]:
    """One job that has ended, and cost a few cents."""
    known = {"short": profile("short", work=(55.0,), widest=1)}
    priors = {"short": prior(known["short"], per_hour=1.0)}
    live = Live(config(tmp_path, billing="node", keep_warm_s=600.0, priors=priors), known)
    live.settle()
    live.submit(spec("short"))
    live.advance(3000.0)
    yield live
    live.close()


def test_the_amount_and_the_times_of_one_job_are_the_same_everywhere(
    small: Live, run: Boa, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    with serving(small, tmp_path) as url:
        monkeypatch.setenv("BOA_SERVER", url)
        job = httpx.get(f"{url}/api/v1/jobs/1", timeout=300).json()["job"]
        amount = dollars(job["cost_usd"])
        assert job["state"] == "succeeded"
        assert re.fullmatch(r"\$0\.0[1-9]\d", amount), "two digits of less than ten cents"
        row = run("ps", "--all").splitlines()[1]
        assert row.split()[-1] == amount
        assert re.search(rf"^cost +{re.escape(amount)}$", run("show", "1"), re.MULTILINE)
        assert f", {amount}" in run("events", "--job", "1")
        for by in ("job", "class"):
            line = run("cost", "--by", by).partition("\n\n")[2].splitlines()[1]
            assert amount in line.split(), by
        lines = run("statement").partition("payer")[2].splitlines()[1:]
        assert amount in lines[0].split()
        assert job["on_gpus_s"] + job["waiting_s"] == pytest.approx(job["since_submission_s"])
        assert job["since_submission_s"] == job["ended_at"] - job["submitted_at"]
        for name in ("on_gpus_s", "waiting_s", "since_submission_s"):
            words = f"{name.removesuffix('_s').replace('_', ' ').replace('gpus', 'GPUs')} "
            assert words + duration(job[name]) in run("show", "1")
            assert duration(job[name]) in row
