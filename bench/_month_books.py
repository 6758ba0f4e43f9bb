"""Books of a simulated month: what was billed at every moment, to whom, at the calendar's prices.

Made from nodes and holds alone, apart from what the scheduler charges and steers by: so they are a
check on that too. A team is charged what its jobs hold and, by the same parts, what nobody holds.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from boa.model.calendar import Calendar
from boa.model.cluster import NodeId
from boa.model.records import Hold, NodeRecord
from boa.model.workload import GpuType
from boa.scheduler.state import Draft
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, Usd, UsdPerHour

DAY_S: Seconds = 86_400.0
NEVER = float("inf")


@dataclass(slots=True)
class Seen:
    """Nodes and holds of a simulation: its `watch`."""

    nodes: dict[NodeId, NodeRecord] = field(default_factory=dict)
    holds: list[Hold] = field(default_factory=list)
    """Those that have ended."""

    def __call__(self, draft: Draft) -> None:
        self.nodes.update((node.id, node) for node in draft.changes.nodes.values())
        self.holds += [hold for hold in draft.changes.holds.values() if hold.until is not None]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time in which nothing changes."""

    begins: Seconds
    ends: Seconds
    period: int
    rate: UsdPerHour
    """All that is rented …"""
    held: Mapping[str, UsdPerHour]
    """… and what of it each team's jobs hold."""

    @property
    def usd(self) -> Usd:
        return self.rate * (self.ends - self.begins) / SECONDS_PER_HOUR


def dollars() -> defaultdict[Any, Usd]:
    return defaultdict(float)


@dataclass(slots=True)
class Books:
    """Dollars until a moment, and the most at any."""

    spent: defaultdict[tuple[int, int], Usd] = field(default_factory=dollars)
    """By period and the day that it was in."""
    teams: defaultdict[tuple[str, int], Usd] = field(default_factory=dollars)
    """By team and period."""
    peak: UsdPerHour = 0.0
    held_peaks: dict[str, UsdPerHour] = field(default_factory=dict)
    """By team: the most that its jobs held."""

    def add(self, stretch: Stretch) -> None:
        self.spent[stretch.period, int(stretch.begins // DAY_S)] += stretch.usd
        self.peak = max(self.peak, stretch.rate)
        held = sum(stretch.held.values())
        for team, rate in stretch.held.items():
            self.teams[team, stretch.period] += stretch.usd * rate / held
            self.held_peaks[team] = max(self.held_peaks.get(team, 0.0), rate)


def books_of(
    seen: Seen, calendar: Calendar, types: Mapping[GpuName, GpuType], until: Seconds
) -> Books:
    found = Books()
    for stretch in stretches(seen, calendar, types, until):
        found.add(stretch)
    return found


def stretches(
    seen: Seen, calendar: Calendar, types: Mapping[GpuName, GpuType], until: Seconds
) -> Iterator[Stretch]:
    """All time until then, in order. Prices are the calendar's: `price_factor` times the usual."""
    changes, now = _changes(seen, types), 0.0
    rented, held, place = 0.0, dollars(), 0
    for begins, ends, period in calendar.stretches(0.0, until):
        factor, now = calendar.periods[period].price_factor, begins
        while now < ends:
            while place < len(changes) and changes[place][0] <= now:
                _, team, more = changes[place]
                place += 1
                if team:
                    held[team] += more
                else:
                    rented += more
            then = min(changes[place][0] if place < len(changes) else NEVER, ends)
            of = {team: factor * rate for team, rate in held.items() if rate > 1e-9}
            yield Stretch(now, then, period, factor * rented, of)
            now = then


def _changes(seen: Seen, types: Mapping[GpuName, GpuType]) -> list[tuple[Seconds, str, float]]:
    """Moments at which somebody holds more or less, at usual prices; nobody's name: rented."""
    found = []
    for node in seen.nodes.values():
        if node.billed_from is not None:
            rate = node.gpus * types[node.gpu].price
            found.append((node.billed_from, "", rate))
            found.append((NEVER if node.gone_at is None else node.gone_at, "", -rate))
    for hold in seen.holds:
        assert hold.until is not None, "only those that have ended are kept"
        rate = hold.gpus * types[seen.nodes[hold.node].gpu].price
        team = hold.stream.split(".")[0]
        found += [(hold.since, team, rate), (hold.until, team, -rate)]
    return sorted(found)
