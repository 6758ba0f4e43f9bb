"""EC2 as a cloud. AWS itself remembers: what is ours, and under which token, is in its tags."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from boa.clock import Clock
from boa.clouds.aws import shapes
from boa.clouds.aws.calls import PAGE, Api, AwsFailed, hint
from boa.clouds.aws.check import check
from boa.clouds.aws.listing import ALIVE, Instance, instances, marked
from boa.clouds.aws.prices import Prices
from boa.clouds.aws.templates import Templates, is_missing
from boa.clouds.aws.watching import Moment, Watch
from boa.clouds.backoff import Backoff
from boa.clouds.base import CloudTrouble, NoCapacity
from boa.model.cloud import CloudNode
from boa.model.provider_settings import AwsSettings
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds, UsdPerHour

CAPACITY = frozenset(
    {
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientCapacity",
        "InsufficientFreeAddressesInSubnet",
        "InstanceLimitExceeded",
        "VcpuLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "SpotMaxPriceTooLow",
        "UnfulfillableCapacity",
        "Unsupported",
    }
)
"""Answers that mean: not this, not here, or not now. The last: no such type in this zone."""
LISTED_WITHIN_S: Seconds = 60.0
"""How long AWS may take to list what it has launched."""
REMEMBERED = 10_000
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Launched:
    id: str
    gpu: GpuName
    at: Seconds
    judged: bool = False
    """Whether it is known if it joined, or we did not wait for that."""


class AwsCloud:
    """`joined`: which instances are in the Ray cluster, token -> node id there."""

    def __init__(
        self,
        settings: AwsSettings,
        *,
        gpu_types: Mapping[GpuName, GpuType],
        unpriced: Collection[GpuName],
        max_nodes: Mapping[GpuName, int],
        max_spend: UsdPerHour | None,
        clock: Clock,
        owner: str,
        joined: Callable[[], Mapping[str, str]],
        wall: Callable[[], Seconds] = time.time,
    ) -> None:
        self.settings, self.owner = settings, owner
        self.max_nodes, self.max_spend = dict(max_nodes), max_spend
        self._clock, self._wall, self._joined = clock, wall, joined
        self.api = Api(settings)
        zones = check(self.api, settings, gpu_types)
        self.prices = Prices(
            self.api, settings, gpu_types, unpriced, zones=set(zones.values()), wall=wall
        )
        self.templates = Templates(self.api, settings, gpu_types, owner)
        self._lock = threading.Lock()
        self._backoff, self._duds, self._watch = Backoff(), Backoff(), Watch()
        self._attempts: Counter[str] = Counter()
        self._unsure: set[str] = set()
        """Tokens under which something was asked for, and nobody knows what came of it."""
        self._launched: dict[str, _Launched] = {}
        self._swept = False

    def offers(self) -> Mapping[GpuName, GpuType]:
        return self.prices.offers

    def rent(self, token: str, gpu: GpuName) -> None:
        with self._lock:
            if token in self._launched:
                return
            if gpu not in self.offers():
                raise NoCapacity(f"{gpu} has no machine of AWS; {', '.join(self.offers())} have")
            now = self._clock.now()
            waiting = self._backoff.waiting(gpu, now) or self._duds.waiting(gpu, now)
            if waiting is not None and token not in self._unsure:
                raise NoCapacity(waiting)
            listed = self.instances()
            if all(one.token != token for one in listed):
                self._guard(gpu, listed)
                self._launch(token, gpu)
            self._unsure.discard(token)

    def release(self, token: str) -> None:
        """That instance and no other, even if AWS does not list it yet."""
        with self._lock:
            if token in self._launched:
                self._launched[token].judged = True
            found = [one for one in self.instances() if one.token == token]
            if found:
                ids = [one.id for one in found if one.state != "shutting-down" and not one.is_gone]
            else:
                ids = [self._launched[token].id] if token in self._launched else []
            if not ids:
                return
            try:
                self.api.change("terminate_instances", InstanceIds=ids)
            except AwsFailed as failed:
                if not failed.code.startswith("InvalidInstanceID"):
                    raise

    def nodes(self) -> Sequence[CloudNode]:
        with self._lock:
            self._sweep_once()
            joined = self._ask_ray()
            listed = self.instances()
            moment = Moment(
                now=self._clock.now(),
                wall=self._wall(),
                joined=joined,
                marked=self._marked(listed),
            )
            self.prices.refresh(listed)
            self._watch.forget(listed)
            seen = [
                self._watch.seen(
                    one, moment, gpus=self.prices.gpus(one), prices=self.prices.of(one)
                )
                for one in listed
            ]
            self._judge(seen, moment.now)
            return seen

    def instances(self) -> list[Instance]:
        """Instances of this owner, those included that were terminated within the hour."""
        mine = [{"Name": f"tag:{shapes.OWNER}", "Values": [self.owner]}]
        pages = self.api.pages(
            "describe_instances", Filters=mine, PaginationConfig={"PageSize": PAGE}
        )
        return instances(pages, self.owner)

    # Renting

    def _guard(self, gpu: GpuName, listed: Sequence[Instance]) -> None:
        """The last word on what may be rented, whatever else is broken."""
        now = self._clock.now()
        tokens = {one.token for one in listed}
        unlisted = [
            new.gpu
            for token, new in self._launched.items()
            if token not in tokens and now - new.at < LISTED_WITHIN_S
        ]
        charged = [one for one in listed if not one.is_gone]
        there = unlisted.count(gpu) + sum(one.gpu == gpu for one in charged)
        most = self.max_nodes.get(gpu)
        if most is not None and there >= most:
            raise NoCapacity(f"max_nodes of {gpu} is {most}, and AWS has {there} running for us")
        if self.max_spend is None:
            return
        spent = sum(map(self.prices.now, charged))
        spent += sum(self.prices.dearest(name) for name in unlisted)
        more = self.prices.dearest(gpu)
        if spent + more > self.max_spend * (1 + 1e-9):
            raise NoCapacity(
                f"max_spend_per_hour is {self.max_spend:g}: AWS charges {spent:.2f} now, and "
                f"another {gpu} node may be {more:.2f}"
            )

    def _launch(self, token: str, gpu: GpuName) -> None:
        template = self.templates.ready(gpu)
        self._unsure.add(token)
        attempt = self._attempts[token]
        request = shapes.fleet(
            self.settings, self.owner, gpu, token=token, attempt=attempt, template=template
        )
        try:
            answer = self.api.change("create_fleet", **request)
        except AwsFailed as failed:
            if is_missing(failed):
                self.templates.forget(gpu)
            if failed.code == "IdempotentParameterMismatch":  # the settings were other ones then
                self._attempts[token] += 1
            if failed.code in CAPACITY:
                self._refuse(token, gpu, str(failed))
            raise
        ids = [id for said in answer.get("Instances", ()) for id in said["InstanceIds"]]
        if not ids:
            self._turn_down(token, gpu, answer.get("Errors", ()))
        self._backoff.had(gpu)
        self._attempts.pop(token, None)
        self._launched[token] = _Launched(ids[0], gpu, self._clock.now())
        if len(self._launched) > REMEMBERED:
            del self._launched[next(iter(self._launched))]

    def _turn_down(self, token: str, gpu: GpuName, errors: Sequence[Mapping[str, str]]) -> None:
        """None in any zone, of any type. Of many reasons, one that can be mended is told."""
        self._attempts[token] += 1
        said = {
            error.get("ErrorCode", ""): error.get("ErrorMessage", "").strip().split("\n")[0]
            for error in errors
        }
        wrong = [code for code in said if code not in CAPACITY]
        if wrong:
            self._unsure.discard(token)
            raise AwsFailed("create_fleet", wrong[0], said[wrong[0]])
        why = "; ".join(f"{text} ({code}){hint(code)}" for code, text in said.items())
        zones = f"{len(self.settings.subnets)} zones"
        self._refuse(token, gpu, f"AWS has no {gpu} in {zones}: {why or 'no reason given'}")

    def _refuse(self, token: str, gpu: GpuName, why: str) -> None:
        self._unsure.discard(token)
        self._backoff.refused(gpu, self._clock.now(), why)
        raise NoCapacity(why)

    # Looking

    def _ask_ray(self) -> Mapping[str, str]:
        try:
            return self._joined()
        except Exception as problem:  # Ray's errors are many
            reason = str(problem).strip().split("\n")[0]
            raise CloudTrouble(f"the Ray cluster could not be asked: {reason}") from problem

    def _judge(self, nodes: Sequence[CloudNode], now: Seconds) -> None:
        """A broken image or setup would otherwise be paid for again and again."""
        for node in nodes:
            new = self._launched.get(node.token)
            if new is None or new.judged:
                continue
            new.judged = node.ready_at is not None or node.leaving_at is not None
            if node.ready_at is not None:
                self._duds.had(new.gpu)
            elif new.judged and self._duds.waiting(new.gpu, now) is None:
                why = f"{new.id} did not join the Ray cluster: see docs/aws.md"
                _log.warning("%s", why)
                self._duds.refused(new.gpu, now, why)

    def _marked(self, listed: Sequence[Instance]) -> Mapping[str, Seconds]:
        if not any(one.spot and one.state in ALIVE for one in listed):
            return {}
        mine = [
            {"Name": f"tag:{shapes.OWNER}", "Values": [self.owner]},
            {"Name": "state", "Values": ["active", "closed"]},  # closed with the notice
        ]
        return marked(self.api.pages("describe_spot_instance_requests", Filters=mine))

    def _sweep_once(self) -> None:
        """At the start: instances that nobody has are given back by the loop, templates here."""
        if self._swept:
            return
        self._swept = True
        try:
            self.templates.sweep()
        except AwsFailed as failed:
            _log.warning("launch templates that nobody uses were not deleted: %s", failed)
