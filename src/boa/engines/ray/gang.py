"""How a run ended, from how its ranks did. All pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from boa.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEnd:
    rank: int
    exit_code: int | None
    stopped: bool = False
    reason: str = ""
    at: Seconds = 0.0
    """Seconds of its node's clock: who was first, to within what the clocks differ."""
    gone_at: Seconds = 0.0
    """Seconds of our own clock: what the run is charged for."""
    node_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """See `RunEvent`."""

    exit_code: int | None
    stopped: bool
    reason: str
    node_lost: bool = False


def together(ends: Sequence[RankEnd]) -> Ending:
    """The first that ended badly says why: the others could not go on without it.

    Unless a node was lost. Ranks elsewhere may have failed for want of it before anybody knew.
    """
    lost = [end for end in ends if end.node_lost]
    if lost:
        return Ending(exit_code=None, stopped=False, reason=lost[0].reason, node_lost=True)
    bad = [end for end in ends if end.exit_code != 0]
    if bad:
        first = min(bad, key=lambda end: (end.at, end.rank))
        who = f"worker {first.rank}: " if len(ends) > 1 and first.exit_code is not None else ""
        return Ending(exit_code=first.exit_code, stopped=first.stopped, reason=who + first.reason)
    stopped = any(end.stopped for end in ends)
    return Ending(exit_code=0, stopped=stopped, reason="stopped when asked" if stopped else "")
