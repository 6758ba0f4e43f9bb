"""Asking the clouds what their instances cost today.

Machines stay as the table has them; only prices are asked for, except from Lambda, which describes
its machines too. A cloud that fails or that we have no credentials for leaves its old rows.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from boa.catalogue.cloud_offers import ANYWHERE, CloudOffer
from boa.errors import BoaError, InputError
from boa.units import UsdPerHour

if TYPE_CHECKING:
    import httpx

AZURE = "https://prices.azure.com/api/retail/prices"
LAMBDA = "https://cloud.lambda.ai/api/v1/instance-types"
TIMEOUT_S = 30.0
MAX_PAGES = 200
SKUS_PER_QUESTION = 12
"""More would make the address too long."""
GCP = "Google publishes prices of parts, not of machines; what the table has stays"


class Skipped(BoaError):
    """A cloud that cannot be asked: nothing is wrong."""


class Unanswered(BoaError):
    """A cloud that was asked, and gave no prices."""


class Prices(Protocol):
    """Where one cloud's prices come from."""

    @property
    def cloud(self) -> str: ...

    def fetch(self, known: Sequence[CloudOffer], now: datetime) -> Iterable[CloudOffer]:
        """Fresh rows of these machines, or Skipped, or whatever went wrong."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshOutcome:
    fresh: tuple[CloudOffer, ...]
    skipped: Mapping[str, str]
    """Cloud -> why."""
    failed: Mapping[str, str]


def refresh(
    sources: Iterable[Prices], known: Sequence[CloudOffer], now: datetime
) -> RefreshOutcome:
    fresh: list[CloudOffer] = []
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    for source in sources:
        machines = {o.instance_type: o for o in known if o.cloud == source.cloud}
        try:
            rows = list(source.fetch(list(machines.values()), now))
            if not rows:
                raise Unanswered("it named no price of a machine that we know")
            fresh += rows
        except Skipped as why:
            skipped[source.cloud] = str(why)
        except Exception as problem:  # their libraries raise what they like; the others go on
            failed[source.cloud] = _said(problem)
    return RefreshOutcome(fresh=tuple(fresh), skipped=skipped, failed=failed)


def merged(old: Iterable[CloudOffer], fresh: Iterable[CloudOffer]) -> tuple[CloudOffer, ...]:
    """Rows refreshed earlier and now: of a cloud's region only the latest."""
    new = tuple(fresh)
    places = {(offer.cloud, offer.region) for offer in new}
    return (*(o for o in old if (o.cloud, o.region) not in places), *new)


def _said(problem: Exception) -> str:
    words = " ".join(str(problem).split())
    return words if isinstance(problem, BoaError) else f"{type(problem).__name__}: {words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsPrices:
    """On-demand prices from the price list, spot prices from the last price of each zone."""

    cloud: str = "aws"
    region: str = "us-east-1"
    pricing_endpoint: str | None = None
    ec2_endpoint: str | None = None

    def fetch(self, known: Sequence[CloudOffer], now: datetime) -> Iterable[CloudOffer]:
        try:
            import boto3
        except ImportError:
            raise Skipped("needs boa-constrictor[aws]") from None
        session = boto3.Session()
        if session.get_credentials() is None:
            raise Skipped("no AWS credentials")
        listed = self._listed(session)
        spot = self._spot(session, [offer.instance_type for offer in known], now)
        source = "AWS price list and spot price history"
        return _priced(known, listed, spot, self.region, source, now)

    def _listed(self, session: Any) -> dict[str, UsdPerHour]:
        # The price list is served from few regions; this one knows all of them.
        client = session.client(
            "pricing", region_name="us-east-1", endpoint_url=self.pricing_endpoint
        )
        wanted = {
            "regionCode": self.region,
            "operatingSystem": "Linux",
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
            "marketoption": "OnDemand",
        }
        filters = [{"Type": "TERM_MATCH", "Field": f, "Value": v} for f, v in wanted.items()]
        found: dict[str, UsdPerHour] = {}
        pages = client.get_paginator("get_products")
        for page in pages.paginate(ServiceCode="AmazonEC2", Filters=filters):
            for text in page["PriceList"]:
                product = json.loads(text)
                name = product["product"]["attributes"].get("instanceType", "")
                _keep_dearest(found, name, _on_demand(product))
        return found

    def _spot(self, session: Any, types: Sequence[str], now: datetime) -> dict[str, UsdPerHour]:
        """The cheapest zone's: nobody has to rent in another."""
        client = session.client("ec2", region_name=self.region, endpoint_url=self.ec2_endpoint)
        latest: dict[tuple[str, str], tuple[datetime, UsdPerHour]] = {}
        pages = client.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=list(types),
            ProductDescriptions=["Linux/UNIX"],
            StartTime=now,  # only what holds then
        )
        for page in pages:
            for row in page["SpotPriceHistory"]:
                place = (row["InstanceType"], row["AvailabilityZone"])
                said = (row["Timestamp"], float(row["SpotPrice"]))
                latest[place] = max(latest.get(place, said), said)
        cheapest: dict[str, UsdPerHour] = {}
        for (name, _zone), (_when, price) in latest.items():
            cheapest[name] = min(cheapest.get(name, price), price)
        return cheapest


def _on_demand(product: Mapping[str, Any]) -> UsdPerHour:
    """The hourly price of a product of the price list; 0 where it has none."""
    return max(
        (
            float(dimension["pricePerUnit"].get("USD", 0))
            for term in product.get("terms", {}).get("OnDemand", {}).values()
            for dimension in term["priceDimensions"].values()
            if dimension["unit"] == "Hrs"
        ),
        default=0.0,
    )


def _keep_dearest(found: dict[str, UsdPerHour], name: str, price: UsdPerHour) -> None:
    """Keep the highest of several prices for the same thing: a bill is then never a surprise."""
    if price > 0:
        found[name] = max(found.get(name, price), price)


def _priced(
    known: Iterable[CloudOffer],
    listed: Mapping[str, UsdPerHour],
    spot: Mapping[str, UsdPerHour],
    region: str,
    source: str,
    now: datetime,
) -> list[CloudOffer]:
    """The machines that have a price in this region."""
    return [
        replace(
            offer,
            region=region,
            price_per_hour=listed.get(offer.instance_type),
            spot_price_per_hour=spot.get(offer.instance_type),
            source=source,
            date=now.date().isoformat(),
        )
        for offer in known
        if offer.instance_type in listed or offer.instance_type in spot
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AzurePrices:
    """The public retail prices: nobody has to log in."""

    cloud: str = "azure"
    region: str = "eastus"
    endpoint: str = AZURE

    def fetch(self, known: Sequence[CloudOffer], now: datetime) -> Iterable[CloudOffer]:
        listed: dict[str, UsdPerHour] = {}
        spot: dict[str, UsdPerHour] = {}
        with _client() as client:
            for first in range(0, len(known), SKUS_PER_QUESTION):
                skus = [o.instance_type for o in known[first : first + SKUS_PER_QUESTION]]
                for item in self._items(client, skus):
                    _read_azure(item, listed, spot)
        return _priced(known, listed, spot, self.region, "Azure retail prices API", now)

    def _items(self, client: "httpx.Client", skus: Sequence[str]) -> Iterable[Mapping[str, Any]]:
        of_these = " or ".join(f"armSkuName eq '{sku}'" for sku in skus)
        wanted = (
            "serviceName eq 'Virtual Machines' and priceType eq 'Consumption' "
            f"and armRegionName eq '{self.region}' and ({of_these})"
        )
        answer = client.get(self.endpoint, params={"$filter": wanted})
        for _ in range(MAX_PAGES):
            page = answer.raise_for_status().json()
            yield from page["Items"]
            if not page.get("NextPageLink"):
                return
            answer = client.get(page["NextPageLink"])
        raise Unanswered(f"its answer did not end after {MAX_PAGES} pages")


def _read_azure(
    item: Mapping[str, Any], listed: dict[str, UsdPerHour], spot: dict[str, UsdPerHour]
) -> None:
    """Linux by the hour: Windows has the same meter, in a product of another name."""
    if item["type"] != "Consumption" or item["unitOfMeasure"] != "1 Hour":
        return
    if item["currencyCode"] != "USD" or re.search("Windows|Cloud ?Services", item["productName"]):
        return
    meter = item["meterName"]
    if meter.endswith("Low Priority"):  # what spot was before, for batch jobs only
        return
    prices = spot if meter.endswith("Spot") else listed
    _keep_dearest(prices, item["armSkuName"], float(item["retailPrice"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class LambdaPrices:
    """Lambda's prices, as it tells them to an account: the same in all of its regions."""

    cloud: str = "lambda"
    endpoint: str = LAMBDA
    key: str = field(default_factory=lambda: os.environ.get("LAMBDA_API_KEY", ""))

    def fetch(self, known: Sequence[CloudOffer], now: datetime) -> Iterable[CloudOffer]:
        if not self.key:
            raise Skipped("no $LAMBDA_API_KEY")
        with _client() as client:
            answer = client.get(self.endpoint, headers={"Authorization": f"Bearer {self.key}"})
            types = answer.raise_for_status().json()["data"]
        by_name = {offer.instance_type: offer for offer in known}
        rows = (_lambda_row(t["instance_type"], by_name, now) for t in types.values())
        return [row for row in rows if row is not None]


def _lambda_row(
    said: Mapping[str, Any], known: Mapping[str, CloudOffer], now: datetime
) -> CloudOffer | None:
    """None for machines without GPUs, or with some that we cannot name."""
    specs, name = said["specs"], said["name"]
    words = re.match(r"(?:NVIDIA |Tesla )*(.+?) \((\d+) GB", said.get("gpu_description", ""))
    if not specs.get("gpus") or (words is None and name not in known):
        return None
    mine = known.get(name)
    return CloudOffer(
        cloud="lambda",
        instance_type=name,
        gpu=mine.gpu if mine else words[1].replace(" ", "") if words else "",
        gpus=specs["gpus"],
        gpu_memory_gb=float(words[2]) if words else mine.gpu_memory_gb if mine else 0.0,
        vcpus=specs["vcpus"],
        memory_gb=float(specs["memory_gib"]),
        region=ANYWHERE,
        price_per_hour=said["price_cents_per_hour"] / 100,
        spot_price_per_hour=None,
        source="Lambda Cloud API",
        date=now.date().isoformat(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GcpPrices:
    cloud: str = "gcp"

    def fetch(self, known: Sequence[CloudOffer], now: datetime) -> Iterable[CloudOffer]:
        raise Skipped(GCP)


def sources_for(clouds: Sequence[str], region: str | None) -> list[Prices]:
    """Where to ask; a region is one cloud's, so it goes with that cloud alone."""
    if region is not None and not re.fullmatch(r"[a-z0-9-]+", region):
        raise InputError("--region", region, "a region, such as eu-west-1 or westeurope")
    if region is not None and tuple(clouds) not in (("aws",), ("azure",)):
        expected = "with --refresh: one cloud beside it, --cloud aws or --cloud azure"
        raise InputError("--region", region, expected)
    where = {} if region is None else {"region": region}
    makers: Mapping[str, Any] = {
        "aws": lambda: AwsPrices(**where),
        "azure": lambda: AzurePrices(**where),
        "lambda": LambdaPrices,
        "gcp": GcpPrices,
    }
    return [makers[cloud]() for cloud in clouds]


def _client() -> "httpx.Client":
    import httpx

    return httpx.Client(timeout=TIMEOUT_S, follow_redirects=True)
