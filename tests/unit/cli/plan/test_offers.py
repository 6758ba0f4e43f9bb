"""`boa offers`: what it lists, in which order, and what it says of clouds that do not answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from boa.catalogue import refreshing
from boa.catalogue.cloud_offers import load, shipped
from integration.runner import Boa
from price_lists import Asked, azure_item, lambda_type, serving

KEYS = {
    "cloud", "instance_type", "gpu", "gpus", "gpu_memory_gb", "vcpus", "memory_gb", "region",
    "price_per_hour", "price_per_gpu_hour", "spot_price_per_hour", "spot_price_per_gpu_hour",
    "source", "date",
}  # fmt: skip
A100 = "Standard_ND96asr_v4"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BOA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LAMBDA_API_KEY", raising=False)
    return tmp_path / "home"


def rows(run: Boa, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run.json("offers", *arguments)["offers"]
    return found


def test_all_offers_come_with_every_key_cheapest_gpu_first(run: Boa) -> None:
    found = rows(run)
    assert len(found) == len(shipped())
    assert all(set(row) == KEYS for row in found)
    prices = [row["price_per_gpu_hour"] for row in found]
    known = [round(price, 4) for price in prices if price is not None]
    assert known == sorted(known)
    assert prices[len(known) :] == [None] * (len(prices) - len(known))


def test_options_narrow_the_list(run: Boa) -> None:
    found = rows(run, "--cloud", "aws,gcp", "--gpu", "a100", "--region", "us-east-1")
    assert {row["instance_type"] for row in found} == {"p4d.24xlarge", "p4de.24xlarge"}
    assert all(row["spot_price_per_hour"] for row in rows(run, "--spot"))


def test_a_region_has_what_costs_the_same_everywhere(run: Boa) -> None:
    assert {row["cloud"] for row in rows(run, "--region", "eastus")} == {"azure", "lambda"}


@pytest.mark.parametrize(
    ("sort", "key"), [("memory", "gpu_memory_gb"), ("gpus", "gpus"), ("cloud", "cloud")]
)
def test_the_order_is_the_one_asked_for(run: Boa, sort: str, key: str) -> None:
    found = [row[key] for row in rows(run, "--sort", sort)]
    order = ["aws", "gcp", "azure", "lambda"]
    assert found == sorted(found, key=order.index if sort == "cloud" else lambda value: -value)


def test_the_table_says_how_old_it_is(run: Boa, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    out = run("offers", "--gpu", "H200")
    assert "p5en.48xlarge" in out
    assert "8×H200" in out
    assert "7.91" in out
    assert "63.30" in out
    assert "AWS price list" in out
    assert "3 offers, prices of 2026-02-09 to 2026-10-13" in out
    assert "1 offer, prices of 2026-02-09;" in run("offers", "--gpu", "B200", "--cloud", "aws")
    assert "1 offer, no prices" in run("offers", "--gpu", "H200", "--cloud", "azure")


@pytest.mark.parametrize("width", ["40", "60", "80", "100"])
def test_the_table_fits_the_terminal(run: Boa, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    out = run("offers", "--gpu", "A100")
    assert max(map(len, out.splitlines())) <= int(width)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gpu", "P100"), "--gpu: got 'P100'; expected one of A10, A100"),
        (("--cloud", "oracle"), "--cloud: got 'oracle'; expected one of aws, gcp, azure, lambda"),
        (("--cloud", "aws,aws"), "each once"),
        (("--region", "mars"), "expected one of eastus, us-central1, us-east-1"),
        (("--region", "mars", "--cloud", "lambda"), "expected none: all cost the same"),
        (("--sort", "colour"), "expected one of price, memory, gpus, cloud"),
        (("--refresh", "--region", "eu-west-1"), "--cloud aws or --cloud azure"),
    ],
)
def test_a_mistake_is_one_line_that_names_what_is_accepted(
    run: Boa, arguments: tuple[str, ...], said: str
) -> None:
    assert run("offers", *arguments, code=2) == ""
    assert said in run.err
    assert run.err.count("\n") == 1


def _sources(monkeypatch: pytest.MonkeyPatch, *sources: refreshing.Prices) -> None:
    monkeypatch.setattr(refreshing, "sources_for", lambda clouds, region: list(sources))


def _cheap(request: Asked) -> tuple[int, str]:
    return 200, json.dumps({"Items": [azure_item(A100, 8.0)], "NextPageLink": None})


def _broken(request: Asked) -> tuple[int, str]:
    return 503, "later"


def test_refreshed_prices_are_kept_and_win(
    run: Boa, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(_cheap) as base:
        gcp = refreshing.GcpPrices()
        _sources(monkeypatch, refreshing.AzurePrices(endpoint=base), gcp)
        found = run.json("offers", "--refresh", "--gpu", "A100")
    assert found["refreshed"]["offers"] == {"azure": 1}
    assert "gcp: not refreshed: Google" in run.err
    assert [row.price_per_hour for row in load(home / "offers.json")] == [8.0]
    again = {row["instance_type"]: row for row in rows(run, "--gpu", "A100")}
    assert again[A100]["price_per_gpu_hour"] == 1.0
    assert again[A100]["source"] == "Azure retail prices API"
    assert again["p4d.24xlarge"]["price_per_hour"] == 21.957642


def test_a_cloud_that_fails_keeps_its_old_prices(
    run: Boa, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fine(request: Asked) -> tuple[int, str]:
        return 200, json.dumps({"data": {"x": lambda_type("gpu_1x_a10", 75, 1, "A10 (24 GB)")}})

    with serving(_cheap) as base:
        _sources(monkeypatch, refreshing.AzurePrices(endpoint=base))
        run("offers", "--refresh")
    with serving(_broken) as base, serving(fine) as other:
        asked = refreshing.LambdaPrices(endpoint=other, key="k")
        _sources(monkeypatch, refreshing.AzurePrices(endpoint=base), asked)
        run("offers", "--refresh")
    assert "azure: failed, its old prices stay: HTTPStatusError" in run.err
    assert {row.cloud: row.price_per_hour for row in load(home / "offers.json")} == {
        "azure": 8.0,
        "lambda": 0.75,
    }


def test_only_if_all_fail_does_the_command(
    run: Boa, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(_broken) as base:
        _sources(monkeypatch, refreshing.AzurePrices(endpoint=base), refreshing.GcpPrices())
        out = run("offers", "--refresh", code=1)
    assert "p4d.24xlarge" in out
    assert "error: no cloud could be refreshed" in run.err
    assert not (home / "offers.json").exists()
    _sources(monkeypatch, refreshing.GcpPrices())
    run("offers", "--refresh", "--cloud", "gcp")


def test_a_place_that_cannot_be_written_is_refused_before_anybody_is_asked(
    run: Boa, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions: list[Asked] = []
    home.write_text("a file")

    def answer(request: Asked) -> tuple[int, str]:
        questions.append(request)
        return _cheap(request)

    with serving(answer) as base:
        _sources(monkeypatch, refreshing.AzurePrices(endpoint=base))
        run("offers", "--refresh", code=2)
    assert run.err.count("\n") == 1
    assert questions == []


def test_a_broken_file_of_refreshed_prices_is_named(run: Boa, home: Path) -> None:
    home.mkdir()
    (home / "offers.json").write_text("{")
    assert run("offers", code=2) == ""
    assert "offers.json: is not a file of offers" in run.err
