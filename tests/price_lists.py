"""The clouds' price lists, served from this machine in the shapes that they were recorded in."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = Callable[["Asked"], tuple[int, str]]


class Asked:
    """One request."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.path = urlsplit(handler.path).path
        self.query = {k: v[0] for k, v in parse_qs(urlsplit(handler.path).query).items()}
        self.headers = handler.headers
        length = int(handler.headers.get("Content-Length") or 0)
        self.body = handler.rfile.read(length).decode()


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """The address of a server that answers like this, until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            status, text = answer(Asked(self))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def aws_product(name: str, usd: str) -> str:
    """A product as GetProducts lists it, less what nobody reads."""
    dimension = {
        "unit": "Hrs",
        "description": f"${usd} per On Demand Linux {name} Instance Hour",
        "pricePerUnit": {"USD": usd},
    }
    term = {"priceDimensions": {"SKU.JRTCKXETXF.6YS6EN2CT7": dimension}, "sku": "SKU"}
    attributes = {"instanceType": name, "operatingSystem": "Linux", "tenancy": "Shared"}
    product = {"productFamily": "Compute Instance", "attributes": attributes, "sku": "SKU"}
    terms = {"OnDemand": {"SKU.JRTCKXETXF": term}, "Reserved": {}}
    return json.dumps({"product": product, "serviceCode": "AmazonEC2", "terms": terms})


def azure_item(sku: str, usd: float, **fields: Any) -> Mapping[str, Any]:
    """A meter of the retail prices API."""
    short = sku.removeprefix("Standard_").replace("_", " ")
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": usd,
        "unitPrice": usd,
        "armRegionName": "eastus",
        "location": "US East",
        "meterName": short,
        "productName": "Virtual Machines N Series",
        "skuName": short,
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "armSkuName": sku,
    } | fields


def lambda_type(name: str, cents: int, gpus: int, gpu: str) -> dict[str, Any]:
    """An entry of Lambda's instance-types."""
    specs = {"vcpus": 30, "memory_gib": 226, "storage_gib": 1400, "gpus": gpus}
    machine = {
        "name": name,
        "description": f"{gpus}x {gpu}",
        "gpu_description": gpu,
        "price_cents_per_hour": cents,
        "specs": specs,
    }
    return {"instance_type": machine, "regions_with_capacity_available": []}


SPOT_HISTORY = """<?xml version="1.0" encoding="UTF-8"?>
<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
  <requestId>r</requestId>
  <spotPriceHistorySet>{items}</spotPriceHistorySet>
  <nextToken></nextToken>
</DescribeSpotPriceHistoryResponse>"""


def spot_history(*rows: tuple[str, str, str, str]) -> str:
    """DescribeSpotPriceHistory's answer: type, zone, price, time."""
    item = (
        "<item><instanceType>{}</instanceType><productDescription>Linux/UNIX</productDescription>"
        "<availabilityZone>{}</availabilityZone><spotPrice>{}</spotPrice>"
        "<timestamp>{}</timestamp></item>"
    )
    return SPOT_HISTORY.format(items="".join(item.format(*row) for row in rows))
