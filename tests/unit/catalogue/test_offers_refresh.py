"""Asking clouds for prices: a real moto server, and recorded shapes where it has none."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import pytest
from moto.server import ThreadedMotoServer

from boa.catalogue.cloud_offers import CloudOffer, shipped
from boa.catalogue.refreshing import (
    AwsPrices,
    AzurePrices,
    GcpPrices,
    LambdaPrices,
    Prices,
    RefreshOutcome,
    refresh,
    sources_for,
)
from boa.errors import InputError
from price_lists import (
    Asked,
    aws_product,
    azure_item,
    lambda_type,
    serving,
    spot_history,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
V100, A100 = "Standard_ND40rs_v2", "Standard_ND96asr_v4"


def asked(*sources: Prices) -> RefreshOutcome:
    return refresh(sources, shipped(), NOW)


def by_type(rows: Sequence[CloudOffer]) -> dict[str, CloudOffer]:
    return {row.instance_type: row for row in rows}


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # seconds, for nothing
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


def price_list(request: Asked) -> tuple[int, str]:
    """GetProducts, on two pages."""
    said = json.loads(request.body)
    page = {"FormatVersion": "aws_v1"}
    if said.get("NextToken") != "more":
        rows = [aws_product("p4d.24xlarge", "20.5000000000"), aws_product("m5.large", "0.096")]
        return 200, json.dumps(page | {"PriceList": rows, "NextToken": "more"})
    rows = [aws_product("g4dn.xlarge", "0.5000000000"), aws_product("p5.48xlarge", "0.0000000000")]
    return 200, json.dumps(page | {"PriceList": rows})


@pytest.mark.usefixtures("credentials")
def test_aws_lists_prices_on_every_page_and_spot_prices_of_a_real_ec2_api(moto: str) -> None:
    questions: list[Any] = []

    def answer(request: Asked) -> tuple[int, str]:
        questions.append((request.headers["X-Amz-Target"], json.loads(request.body)))
        return price_list(request)

    with serving(answer) as pricing:
        got = asked(AwsPrices(pricing_endpoint=pricing, ec2_endpoint=moto))
    assert (got.failed, got.skipped) == ({}, {})
    rows = by_type(got.fresh)
    assert rows["p4d.24xlarge"].price_per_hour == 20.5
    assert rows["p4d.24xlarge"].spot_price_per_hour == 0.00001  # what moto says of everything
    assert (rows["p4d.24xlarge"].gpu, rows["p4d.24xlarge"].gpus) == ("A100", 8)
    assert rows["g4dn.xlarge"].price_per_hour == 0.5
    assert rows["p5.48xlarge"].price_per_hour is None  # a product at no price is not free
    assert "m5.large" not in rows
    assert {(row.region, row.date) for row in got.fresh} == {("us-east-1", "2026-11-20")}
    (target, said), _ = questions
    assert target == "AWSPriceListService.GetProducts"
    assert {f["Field"]: f["Value"] for f in said["Filters"]} == {
        "regionCode": "us-east-1",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }


@pytest.mark.usefixtures("credentials")
def test_the_spot_price_is_the_last_one_of_the_cheapest_zone() -> None:
    p4d, noon, earlier = "p4d.24xlarge", "2026-11-20T12:00:00Z", "2026-11-20T03:00:00Z"
    history = spot_history(
        (p4d, "eu-west-1a", "9.1", noon),
        (p4d, "eu-west-1a", "3.0", earlier),
        (p4d, "eu-west-1b", "8.4", earlier),
    )
    questions: list[dict[str, list[str]]] = []

    def answer(request: Asked) -> tuple[int, str]:
        questions.append(parse_qs(request.body))
        return 200, history

    with serving(price_list) as pricing, serving(answer) as ec2:
        source = AwsPrices(region="eu-west-1", pricing_endpoint=pricing, ec2_endpoint=ec2)
        got = asked(source)
    row = by_type(got.fresh)[p4d]
    assert (row.spot_price_per_hour, row.region) == (8.4, "eu-west-1")
    assert questions[0]["ProductDescription.1"] == ["Linux/UNIX"]
    assert questions[0]["StartTime"] == ["2026-11-20T12:00:00Z"]


def test_aws_without_credentials_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert asked(AwsPrices()).skipped == {"aws": "no AWS credentials"}


def azure(request: Asked, base: str) -> tuple[int, str]:
    if "page" in request.query:
        items = [azure_item(A100, 5.2, meterName="ND96asr v4 Spot")]
        return 200, json.dumps({"Items": items, "NextPageLink": None})
    items = [
        azure_item(V100, 21.5),
        azure_item(V100, 29.9, productName="Virtual Machines N Series Windows"),
        azure_item("Standard_NC64as_T4_v3", 0.9, meterName="NC64as T4 v3 Low Priority"),
        azure_item(V100, 99999.0, type="Reservation"),
        azure_item(V100, 77.0, currencyCode="EUR"),
        azure_item(A100, 27.0),
    ]
    return 200, json.dumps({"Items": items, "NextPageLink": f"{base}/?page=2"})


def test_azure_gives_linux_by_the_hour_and_spot_over_all_pages() -> None:
    filters: list[str] = []

    def answer(request: Asked) -> tuple[int, str]:
        filters.append(request.query.get("$filter", ""))
        if A100 not in filters[-1] and "page" not in request.query:
            return 200, json.dumps({"Items": [], "NextPageLink": None})
        return azure(request, f"http://{request.headers['Host']}")

    with serving(answer) as base:
        got = asked(AzurePrices(endpoint=base))
    assert got.failed == {}
    rows = by_type(got.fresh)
    assert set(rows) == {V100, A100}
    assert (rows[V100].price_per_hour, rows[V100].spot_price_per_hour) == (21.5, None)
    assert (rows[A100].price_per_hour, rows[A100].spot_price_per_hour) == (27.0, 5.2)
    assert "armRegionName eq 'eastus'" in filters[0]
    machines = {row.instance_type for row in shipped() if row.cloud == "azure"}
    assert all(any(f"'{name}'" in text for text in filters) for name in machines)


def test_lambda_updates_machines_that_we_know_and_adds_those_that_it_describes() -> None:
    types = {
        "gpu_1x_a10": lambda_type("gpu_1x_a10", 75, 1, "A10 (24 GB PCIe)"),
        "gpu_1x_rtx6000": lambda_type("gpu_1x_rtx6000", 50, 1, "RTX 6000 (24 GB)"),
        "gpu_8x_h200": lambda_type("gpu_8x_h200", 3192, 8, "H200 (141 GB SXM5)"),
        "cpu_4x_general": lambda_type("cpu_4x_general", 20, 0, "N/A"),
        "gpu_1x_odd": lambda_type("gpu_1x_odd", 20, 1, "something new"),
    }
    keys: list[str | None] = []

    def answer(request: Asked) -> tuple[int, str]:
        keys.append(request.headers["Authorization"])
        return 200, json.dumps({"data": types})

    with serving(answer) as base:
        got = asked(LambdaPrices(endpoint=base, key="secret"))
    rows = by_type(got.fresh)
    assert keys == ["Bearer secret"]
    assert set(rows) == {"gpu_1x_a10", "gpu_1x_rtx6000", "gpu_8x_h200"}
    assert rows["gpu_1x_a10"].price_per_hour == 0.75
    assert rows["gpu_1x_rtx6000"].gpu == "QuadroRTX6000"
    new = rows["gpu_8x_h200"]
    assert (new.gpu, new.gpus, new.gpu_memory_gb, new.region) == ("H200", 8, 141.0, "any")
    assert new.price_per_gpu_hour == pytest.approx(3.99)


def test_clouds_that_fail_leave_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMBDA_API_KEY", raising=False)

    def broken(request: Asked) -> tuple[int, str]:
        return 500, "no"

    def nonsense(request: Asked) -> tuple[int, str]:
        return 200, "[]"

    def nothing(request: Asked) -> tuple[int, str]:
        return 200, json.dumps({"Items": [], "NextPageLink": None})

    def fine(request: Asked) -> tuple[int, str]:
        return 200, json.dumps({"data": {"x": lambda_type("gpu_1x_a10", 75, 1, "A10 (24 GB)")}})

    for answer, why in ((broken, "500"), (nonsense, "TypeError"), (nothing, "named no price")):
        with serving(answer) as base, serving(fine) as other:
            got = asked(AzurePrices(endpoint=base), LambdaPrices(endpoint=other, key="k"))
        assert [row.cloud for row in got.fresh] == ["lambda"]
        assert why in got.failed["azure"]
    got = asked(GcpPrices(), LambdaPrices())
    assert got.fresh == ()
    assert got.skipped["lambda"] == "no $LAMBDA_API_KEY"
    assert "Google" in got.skipped["gcp"]


def test_a_region_is_asked_of_the_one_cloud_that_it_belongs_to() -> None:
    assert sources_for(["azure"], "westeurope") == [AzurePrices(region="westeurope")]
    assert [source.cloud for source in sources_for(["gcp", "aws"], None)] == ["gcp", "aws"]
    for clouds, region in ((["aws", "azure"], "eu-west-1"), (["aws"], "it's"), (["gcp"], "r")):
        with pytest.raises(InputError, match="--region"):
            sources_for(clouds, region)
