"""What stands between our code and moto: AWS's slowness and failures, by script or by seed.

moto launches at once, has every capacity, forgets ClientTokens and knows one spot price. This layer
adds what it lacks, in the time of an injected clock: instances boot, shut down, are listed late,
vanish or are interrupted; zones run out of types; requests are throttled, fail before or after
their effect, or lose their answer. It keeps every request, and the truth of every instance.
"""

import http.client
import random
import re
import threading
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode

NS = "http://ec2.amazonaws.com/doc/2016-11-15/"
STATES = {"pending": "0", "running": "16", "shutting-down": "32", "terminated": "48"}
FAULTS = ("throttle", "500", "500-after", "lost")
"""lost: done, and the connection ends without an answer."""
CODES = {
    "throttle": (503, "RequestLimitExceeded"),
    "500": (500, "InternalError"),
    "denied": (403, "InvalidClientTokenId"),
}
Params = dict[str, str]


@dataclass(kw_only=True)
class Weather:
    """How often what goes wrong, per request."""

    seed: int = 0
    faults: float = 0.0
    short: float = 0.0
    """A launch finds nothing, in any zone."""


@dataclass
class Truth:
    """An instance as it really is."""

    launched: float
    ended: float | None = None
    hidden: bool = False
    """Not listed any more, nor again."""
    marked: float | None = None
    """AWS has said that it takes it away: when it said so."""
    token: str = ""
    kind: str = ""
    reason: str = "User initiated"


@dataclass
class Sky:
    """All that a test may set, and all that it may ask."""

    now: Callable[[], float]
    weather: Weather = field(default_factory=Weather)
    boot_s: float = 0.0
    stop_s: float = 0.0
    listed_after_s: float = 0.0
    idempotent: bool = True
    short: set[tuple[str, str]] = field(default_factory=set)
    """(instance type, subnet) of which there are none."""
    short_code: str = "InsufficientInstanceCapacity"
    prices: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    """(instance type, zone) -> from when on which price."""
    planned: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))
    """By action: what befalls the next requests; "" nothing."""
    requests: list[tuple[str, Params]] = field(default_factory=list)
    truth: dict[str, Truth] = field(default_factory=dict)
    answered: dict[str, tuple[Params, bytes]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def asked(self, action: str) -> list[Params]:
        return [params for name, params in self.requests if name == action]

    def luck(self, action: str) -> random.Random:
        """The same for the nth request of a kind, whatever others come between."""
        self.counts[action] += 1
        return random.Random(f"{self.weather.seed} {action} {self.counts[action]}")

    def fault(self, action: str) -> str:
        if self.planned[action]:
            return self.planned[action].popleft()
        luck = self.luck(action)
        return luck.choice(FAULTS) if luck.random() < self.weather.faults else ""

    def end(self, id: str, reason: str = "User initiated") -> None:
        if self.truth[id].ended is None:
            self.truth[id].ended, self.truth[id].reason = float(int(self.now())), reason

    def vanish(self, id: str) -> None:
        self.end(id)
        self.truth[id].hidden = True

    def interrupt(self, id: str) -> None:
        self.truth[id].marked = self.now()

    def state(self, id: str) -> str:
        one, now = self.truth[id], self.now()
        if one.marked is not None and now >= one.marked + 120:
            self.end(id, "Server.SpotInstanceTermination")
        if one.ended is not None:
            return "shutting-down" if now < one.ended + self.stop_s else "terminated"
        return "pending" if now < one.launched + self.boot_s else "running"

    def is_listed(self, id: str) -> bool:
        one = self.truth[id]
        return not one.hidden and self.now() >= one.launched + self.listed_after_s

    def alive(self) -> dict[str, Truth]:
        return {
            id: one for id, one in self.truth.items() if self.state(id) in ("pending", "running")
        }


class Layer:
    """Answers on a port of its own, and asks moto. `sky` may be replaced between tests."""

    def __init__(self, moto: tuple[str, int]) -> None:
        self.moto, self.sky = moto, Sky(lambda: 0.0)
        self.ec2: Any = None
        self.kept: dict[str, tuple[int, bytes]] = {}
        """moto takes 5 ms to list an instance: what it said holds until something is changed."""
        self._one = threading.Lock()
        layer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = layer.answer(body, dict(self.headers.items()))
                if answer is None:
                    self.close_connection = True
                    return
                status, text = answer
                self.send_response(status)
                self.send_header("Content-Type", "text/xml")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *said: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(300)
        self._server.server_close()

    def answer(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes] | None:
        with self._one:
            params = dict(parse_qsl(body.decode(), keep_blank_values=True))
            action = params.get("Action", "")
            self.sky.requests.append((action, params))
            fault = self.sky.fault(action)
            if fault in CODES:
                status, code = CODES[fault]
                return status, error(code, "as the test has it")
            status, text = self._with_effect(action, params, headers)
            if fault == "lost":
                return None
            return (
                (500, error("InternalError", "after all"))
                if fault == "500-after"
                else (status, text)
            )

    def _with_effect(
        self, action: str, params: Params, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        trial = params.get("DryRun") == "true"
        if action == "CreateFleet" and not trial:
            return self._create_fleet(params, headers)
        if action == "DescribeSpotPriceHistory":
            return 200, self._price_history(params)
        if not action.startswith("Describe"):
            self.kept.clear()
        key = str(sorted(params.items()))
        if key not in self.kept:
            self.kept[key] = self._forward(params, headers)
        status, text = self.kept[key]
        if status == 200 and action == "TerminateInstances" and not trial:
            for name, id in params.items():
                if name.startswith("InstanceId."):
                    self.sky.end(id)
        if status == 200 and action == "DescribeInstances":
            text = self._in_time(text)
        if status == 200 and action == "DescribeSpotInstanceRequests":
            text = self._interrupted(text)
        return status, text

    def _forward(self, params: Params, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self.moto, timeout=120)
        passed = {k: v for k, v in headers.items() if k.lower() not in ("host", "content-length")}
        connection.request("POST", "/", urlencode(params), passed)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text

    # Launching

    def _create_fleet(self, params: Params, headers: dict[str, str]) -> tuple[int, bytes]:
        self.kept.clear()
        sky, token = self.sky, params["ClientToken"]
        if sky.idempotent and token in sky.answered:
            before, text = sky.answered[token]
            if before != params:
                return 400, error("IdempotentParameterMismatch", "other parameters, same token")
            return 200, text
        left = self._in_stock(params)
        if not left or sky.luck("stock").random() < sky.weather.short:
            text = _none(params, sky.short_code)
        else:
            status, text = self._forward(_with_overrides(params, left), headers)
            if status != 200:
                return status, text
            kind, token_tag = left[0]["InstanceType"], _tag(params)
            for id in re.findall(r">(i-[0-9a-f]+)<", text.decode()):
                sky.truth[id] = Truth(float(int(sky.now())), token=token_tag, kind=kind)
        sky.answered[token] = params, text
        return 200, text

    def _in_stock(self, params: Params) -> list[Params]:
        left = []
        for number in range(1, 100):
            prefix = f"LaunchTemplateConfigs.1.Overrides.{number}."
            one = {k.removeprefix(prefix): v for k, v in params.items() if k.startswith(prefix)}
            if one and (one["InstanceType"], one["SubnetId"]) not in self.sky.short:
                left.append(one)
        return left

    # Listing

    def _in_time(self, text: bytes) -> bytes:
        root = _parse(text)
        for group in root.iter("instancesSet"):
            for item in list(group):
                id = _text(item, "instanceId")
                if id not in self.sky.truth:
                    continue
                one = self.sky.truth[id]
                if not self.sky.is_listed(id):
                    group.remove(item)
                    continue
                state = self.sky.state(id)
                _set(item, "launchTime", _iso(one.launched))
                _set(item, "instanceState/name", state)
                _set(item, "instanceState/code", STATES[state])
                _set(item, "reason", "" if one.ended is None else _reason(one))
        return ET.tostring(root)

    def _interrupted(self, text: bytes) -> bytes:
        root = _parse(text)
        for item in root.iter("item"):
            id = _text(item, "instanceId")
            one = self.sky.truth.get(id)
            if one is not None and one.marked is not None:
                _set(item, "state", "closed")
                _set(item, "status/code", "marked-for-termination")
                _set(item, "status/updateTime", _iso(one.marked))
        return ET.tostring(root)

    def _price_history(self, params: Params) -> bytes:
        begin = datetime.fromisoformat(params["StartTime"]).timestamp()
        asked = {v for k, v in params.items() if k.startswith("InstanceType.")}
        items = []
        for (kind, zone), points in self.sky.prices.items():
            past = [point for point in points if point[0] <= self.sky.now()]
            first = max([at for at, _ in past if at <= begin], default=begin)
            items += [
                f"<item><instanceType>{kind}</instanceType><availabilityZone>{zone}"
                f"</availabilityZone><spotPrice>{price:.6f}</spotPrice>"
                f"<timestamp>{_iso(at)}</timestamp></item>"
                for at, price in past
                if kind in asked and at >= first
            ]
        inside = f"<spotPriceHistorySet>{''.join(items)}</spotPriceHistorySet>"
        return _document("DescribeSpotPriceHistoryResponse", inside)


def error(code: str, message: str) -> bytes:
    inside = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return f"<Response><Errors>{inside}</Errors><RequestID>1</RequestID></Response>".encode()


def _none(params: Params, code: str) -> bytes:
    """What AWS answers to an instant fleet for which it has nothing: 200, and why."""
    kinds = [v for k, v in params.items() if k.endswith(".InstanceType")]
    said = "".join(
        f"<item><errorCode>{code}</errorCode><errorMessage>We currently do not have sufficient "
        f"{kind} capacity.</errorMessage></item>"
        for kind in kinds
    )
    inside = f"<fleetId>fleet-none</fleetId><fleetInstanceSet/><errorSet>{said}</errorSet>"
    return _document("CreateFleetResponse", inside)


def _document(name: str, inside: str) -> bytes:
    return f'<{name} xmlns="{NS}"><requestId>1</requestId>{inside}</{name}>'.encode()


def _with_overrides(params: Params, left: list[Params]) -> Params:
    prefix = "LaunchTemplateConfigs.1.Overrides."
    kept = {k: v for k, v in params.items() if not k.startswith(prefix)}
    for number, one in enumerate(left, start=1):
        kept |= {f"{prefix}{number}.{name}": value for name, value in one.items()}
    return kept


def _tag(params: Params) -> str:
    key = next(k for k, v in params.items() if v == "boa:token")
    return params[key.removesuffix("Key") + "Value"]


def _parse(text: bytes) -> ET.Element:
    """Without namespaces, of which moto has several and botocore heeds none."""
    root = ET.fromstring(text)
    for one in root.iter():
        one.tag = one.tag.rpartition("}")[2]
    return root


def _text(item: ET.Element, path: str) -> str:
    found = item.find(path)
    return "" if found is None else str(found.text)


def _set(item: ET.Element, path: str, text: str) -> None:
    found = item.find(path)
    if found is None:
        found = ET.SubElement(item, path)
    found.text = text


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _reason(one: Truth) -> str:
    assert one.ended is not None
    when = datetime.fromtimestamp(one.ended, UTC).strftime("%Y-%m-%d %H:%M:%S GMT")
    return f"{one.reason} ({when})"
