"""Tally: dollars that jobs have held since money was last looked at, by who is to pay. Pure.

Looks are a minute apart, or days if the service was away. Whoever held GPUs in between is charged
for them, whether or not anything of theirs is still there at the next look.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from boa.model.records import Hold
from boa.scheduler.money.ledger import held_between, hold_rate
from boa.units import Seconds, Usd, UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    since: Seconds = 0.0
    """Moment of the last look."""
    closed: Mapping[str, Usd] = field(default_factory=dict)
    """By stream: of holds that have ended since, or whose job went into the background. Negative: a
    look has charged a hold for time after its end, which was not known yet, or it has left the
    background and is open, and nobody pays for what it held there."""

    def with_closed(self, hold: Hold, until: Seconds) -> "Tally":
        """With an open hold that ended then."""
        usd = held_between(hold, self.since, until) - held_between(hold, until, self.since)
        return self._with(hold.stream, usd)

    def as_until_now(self, holds: Iterable[Hold], now: Seconds, *, background: bool) -> "Tally":
        """When the job of these open holds leaves the background, or goes there: what it held since
        the last look is charged as it was until now. `background`: it was there."""
        tally = self
        for hold in holds:
            usd = held_between(hold, self.since, now)
            tally = tally._with(hold.stream, -usd if background else usd)
        return tally

    def _with(self, stream: str, usd: Usd) -> "Tally":
        if not usd:
            return self
        had = self.closed.get(stream, 0.0)
        return Tally(since=self.since, closed={**self.closed, stream: had + usd})

    def looked(self, open_holds: Iterable[Hold], now: Seconds) -> "tuple[Tally, dict[str, Usd]]":
        """Another tally, from now on, and dollars by stream up to now. Whoever was charged too much
        gets it back from what it holds later."""
        found = dict(self.closed)
        for hold in open_holds:
            found[hold.stream] = found.get(hold.stream, 0.0) + held_between(hold, self.since, now)
        owed = {stream: usd for stream, usd in found.items() if usd < 0}
        held = {stream: usd for stream, usd in found.items() if usd > 0}
        return Tally(since=now, closed=owed), held

    def as_document(self) -> dict[str, Any]:
        return {"since": self.since, "closed": dict(self.closed)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Tally":
        return cls(since=document["since"], closed=document["closed"])


def rates(holds: Iterable[Hold], now: Seconds) -> dict[str, UsdPerHour]:
    """By stream: USD per hour of what its jobs hold at this moment."""
    found: dict[str, UsdPerHour] = {}
    for hold in holds:
        found[hold.stream] = found.get(hold.stream, 0.0) + hold_rate(hold, now)
    return found
