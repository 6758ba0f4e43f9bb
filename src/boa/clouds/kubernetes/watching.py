"""From what a cluster shows at one moment, and what was seen before, what becomes of each node.
Pure.

Times that nobody tells are those at which we saw it. What was asked for and is not there yet is
charged to nobody, and so not listed; what will not come is listed as refused.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from boa.clouds.kubernetes.objects import KubeNode
from boa.model.cloud import CloudNode
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds

LOST_S: Seconds = 20.0
"""How long a node may be not Ready before jobs leave it. The API server says so 40 s after it last
heard of it."""
UNKNOWN_S: Seconds = 180.0
"""How long after our start what nobody here has asked for is left to whoever may ask again, which
is done after a minute."""
NOBODY = "nobody says why"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Objects that are there under a token. Times are the wall's."""

    token: str
    gpu: GpuName
    asked: Seconds
    since: Seconds | None = None
    """Charged since then; None: no machine is there yet."""
    node: KubeNode | None = None
    free: bool = True
    """Whether jobs could have its GPUs."""
    deleting: bool = False
    """Somebody takes it away, or we do."""
    failure: str = ""
    """Why no machine will come."""
    status: str = ""
    """The last word on what it waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When the cluster was asked, by both clocks."""

    now: Seconds
    wall: Seconds
    speed: float = 1.0

    def at(self, wall: Seconds) -> Seconds:
        """A moment of the wall's, in the service's time; never in the future."""
        return min(self.now - (self.wall - wall) * self.speed, self.now)


@dataclass(slots=True)
class _Memory:
    ready_at: Seconds | None = None
    leaving_at: Seconds | None = None
    down_since: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """The outcome of a look."""

    listed: Sequence[CloudNode] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    """Tokens under which nothing will come, and why: what is there of them is to be taken away."""
    duds: Mapping[str, str] = field(default_factory=dict)
    """Tokens whose node has come and does not get ready, and why."""
    strays: Sequence[str] = ()
    """Tokens that nobody here has asked for, without a machine: to be taken away, charged to
    nobody."""


class Watch:
    """`ready_s`, `lost_s`: how long a node may take to get ready, and be not Ready later."""

    def __init__(
        self,
        types: Mapping[GpuName, GpuType],
        *,
        ready_s: Seconds,
        lost_s: Seconds = LOST_S,
        unknown_s: Seconds = UNKNOWN_S,
    ) -> None:
        self._types = dict(types)
        self._ready_s, self._lost_s, self._unknown_s = ready_s, lost_s, unknown_s
        self._known: dict[str, _Memory] = {}
        self._began: Seconds | None = None

    def look(self, sights: Sequence[Sight], asked: Mapping[str, Sight], moment: Moment) -> Looked:
        """`asked`: what this process has asked for and not given back, as it was last seen."""
        self._began = moment.now if self._began is None else self._began
        there = {sight.token: sight for sight in sights}
        self._known = {token: known for token, known in self._known.items() if token in there}
        refused = {
            token: f"it was taken away before its machine came: {before.status or NOBODY}"
            for token, before in asked.items()
            if token not in there and before.since is None
        }
        listed, duds, strays = [], {}, []
        for sight in sights:
            failure = self._failure(sight, moment)
            if failure:
                refused[sight.token] = failure
            elif sight.since is not None:
                node, dud = self._seen(sight, moment)
                listed.append(node)
                if dud:
                    duds[sight.token] = dud
            elif self._is_nobodys(sight, asked, moment):
                strays.append(sight.token)
        return Looked(listed, refused, duds, strays)

    def _failure(self, sight: Sight, moment: Moment) -> str:
        """Why no machine comes."""
        if sight.since is not None or sight.deleting:
            return ""
        if sight.failure:
            return sight.failure
        if moment.now - moment.at(sight.asked) < self._ready_s:
            return ""
        return f"no {sight.gpu} came within {self._ready_s:g} s: {sight.status or NOBODY}"

    def _is_nobodys(self, sight: Sight, asked: Collection[str], moment: Moment) -> bool:
        """A wish that is on its way though nobody here has asked for it."""
        assert self._began is not None
        if sight.deleting:
            return False  # being taken away already
        since = max(moment.at(sight.asked), self._began)
        return sight.token not in asked and moment.now - since >= self._unknown_s

    def _seen(self, sight: Sight, moment: Moment) -> tuple[CloudNode, str]:
        assert sight.since is not None
        known = self._known.setdefault(sight.token, _Memory())
        kind = self._types.get(sight.gpu)
        gpus = 1 if kind is None else kind.gpus_per_node
        lacks = "no Node has come up" if sight.node is None else sight.node.lacks(gpus)
        if known.ready_at is None and not lacks and sight.free and not sight.deleting:
            known.ready_at = moment.now
        dud = ""
        if known.leaving_at is None:
            known.leaving_at, dud = self._leaving(sight, known, lacks, moment)
        seen = CloudNode(
            token=sight.token,
            gpu=sight.gpu,
            gpus=gpus,
            price=0.0 if kind is None else kind.price,
            billed_from=moment.at(sight.since),
            ready_at=known.ready_at,
            leaving_at=known.leaving_at,
            address="" if sight.node is None else sight.node.name,
        )
        return seen, dud

    def _leaving(
        self, sight: Sight, known: _Memory, lacks: str, moment: Moment
    ) -> tuple[Seconds | None, str]:
        """When it is taken away, and what is wrong with it if it never was of use."""
        if sight.deleting:
            return moment.now, ""
        going = None if sight.node is None else sight.node.going_in
        if going is not None:
            return moment.now + going * moment.speed, ""
        if known.ready_at is None:
            late = moment.now - moment.at(sight.asked) >= self._ready_s
            return (moment.now, lacks or "its GPUs are not free") if late else (None, "")
        if sight.node is not None and sight.node.ready:
            known.down_since = None
        elif known.down_since is None:
            known.down_since = moment.now
        elif moment.now - known.down_since >= self._lost_s:
            return moment.now, ""
        return None, ""
