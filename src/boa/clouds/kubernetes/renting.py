"""Nodes that are rented: asked for under a token, charged until they are gone.

The cluster itself remembers: what is ours, and under which token, is on its objects.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from boa.clock import Clock
from boa.clouds.backoff import Backoff
from boa.clouds.base import CloudTrouble, NoCapacity
from boa.clouds.kubernetes.sources import Source
from boa.clouds.kubernetes.watching import Moment, Sight, Watch
from boa.kubelink import Invalid, KubeTrouble, Refused
from boa.model.cloud import CloudNode
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds, UsdPerHour

REMEMBERED = 200
"""Refusals that are listed, the newest: whoever asked was told of each many times by then."""
_log = logging.getLogger(__name__)


class RentedNodes:
    """`max_nodes` and `max_spend` are the last word on what may be asked for."""

    def __init__(
        self,
        source: Source,
        watch: Watch,
        *,
        gpu_types: Mapping[GpuName, GpuType],
        max_nodes: Mapping[GpuName, int],
        max_spend: UsdPerHour | None,
        clock: Clock,
        speed: float = 1.0,
        wall: Callable[[], Seconds] = time.time,
    ) -> None:
        self._source, self._watch = source, watch
        self._gpu_types, self._max_nodes = dict(gpu_types), dict(max_nodes)
        self._max_spend = max_spend
        self._clock, self._speed, self._wall = clock, speed, wall
        self._lock = threading.Lock()
        self._there: dict[str, GpuName] | None = None
        """Tokens that something is there of; None: nobody has looked yet."""
        self._asked: dict[str, Sight] = {}
        """Wishes that were neither given back nor refused, as they were last seen."""
        self._refused: OrderedDict[str, CloudNode] = OrderedDict()
        self._duds = Backoff()

    def offers(self) -> Mapping[GpuName, GpuType]:
        return self._gpu_types

    def rent(self, token: str, gpu: GpuName) -> None:
        with self._lock, _asking():
            if token in self._asked:
                return
            if gpu not in self._gpu_types:
                known = ", ".join(sorted(self._gpu_types))
                raise NoCapacity(f"no {gpu} in the config; it has {known}")
            if self._there is None:
                self._look()
            assert self._there is not None
            if token in self._refused:
                raise NoCapacity(self._refused[token].refused)
            if token not in self._there:
                spare = self._source.spare(self._gpu_types[gpu])
                others = {one: its for one, its in self._there.items() if one != spare}
                self._guard(gpu, others)
                self._ask(token, gpu)
                self._there = {**others, token: gpu}
            # As long as nobody has looked, nobody knows that it is not there.
            self._asked.setdefault(token, Sight(token=token, gpu=gpu, asked=self._wall()))

    def release(self, token: str) -> None:
        with self._lock, _asking():
            self._asked.pop(token, None)
            self._source.take_away(token)

    def nodes(self) -> Sequence[CloudNode]:
        with self._lock, _asking():
            return [*self._look(), *self._refused.values()]

    def _ask(self, token: str, gpu: GpuName) -> None:
        try:
            self._source.ask(token, self._gpu_types[gpu])
        except (Refused, Invalid) as no:
            raise NoCapacity(str(no)) from no

    def _guard(self, gpu: GpuName, there: Mapping[str, GpuName]) -> None:
        waiting = self._duds.waiting(gpu, self._clock.now())
        if waiting is not None:
            raise NoCapacity(waiting)
        most, count = self._max_nodes.get(gpu), list(there.values()).count(gpu)
        if most is not None and count >= most:
            raise NoCapacity(f"max_nodes of {gpu} is {most}, and the cluster has {count} for us")
        if self._max_spend is None:
            return
        spent, more = sum(map(self._costs, there.values())), self._costs(gpu)
        if spent + more > self._max_spend * (1 + 1e-9):
            raise NoCapacity(
                f"max_spend_per_hour is {self._max_spend:g}: nodes cost {spent:.2f} now, and "
                f"another {gpu} node is {more:.2f}"
            )

    def _costs(self, gpu: GpuName) -> UsdPerHour:
        kind = self._gpu_types.get(gpu)
        return 0.0 if kind is None else kind.price * kind.gpus_per_node

    def _look(self) -> Sequence[CloudNode]:
        sights = self._source.look()
        moment = Moment(now=self._clock.now(), wall=self._wall(), speed=self._speed)
        looked = self._watch.look(sights, self._asked, moment)
        self._there = {sight.token: sight.gpu for sight in sights}
        for sight in sights:
            if sight.token in self._asked:
                self._asked[sight.token] = sight
        for token, why in looked.refused.items():
            self._refuse(token, why, moment.now)
        for node in looked.listed:  # a machine came after all, and is charged for
            self._refused.pop(node.token, None)
        for token in looked.strays:
            _log.warning("%s is taken away: nobody here has asked for it", token)
            self._source.take_away(token)
        self._judge(looked.listed, looked.duds, moment.now)
        return looked.listed

    def _refuse(self, token: str, why: str, now: Seconds) -> None:
        """Nothing of it is left in the cluster, and whoever asked for it is told."""
        assert self._there is not None
        gpu = self._there.get(token) or (self._asked[token].gpu if token in self._asked else "")
        self._source.take_away(token)
        self._asked.pop(token, None)
        kind = self._gpu_types.get(gpu)
        _log.warning("%s (%s) is given up: %s", token, gpu, why)
        self._refused[token] = CloudNode(
            token=token,
            gpu=gpu,
            gpus=1 if kind is None else kind.gpus_per_node,
            price=0.0 if kind is None else kind.price,
            billed_from=now,
            ready_at=None,
            gone_at=now,
            refused=why,
        )
        if len(self._refused) > REMEMBERED:
            self._refused.popitem(last=False)

    def _judge(self, listed: Sequence[CloudNode], duds: Mapping[str, str], now: Seconds) -> None:
        """A broken image, say, would otherwise be paid for again and again."""
        for node in listed:
            if node.token in duds:
                why = f"{node.token} ({node.gpu}) did not get ready: {duds[node.token]}"
                _log.warning("%s", why)
                self._duds.refused(node.gpu, now, why)
            elif node.ready_at == now:
                self._duds.had(node.gpu)


@contextmanager
def _asking() -> Iterator[None]:
    try:
        yield
    except KubeTrouble as trouble:
        raise CloudTrouble(str(trouble)) from trouble
