"""How a run on a cluster ended, from how its parts did: ranks, or pods of several. All pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from boa.units import Seconds

_WHO = "worker "


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEnd:
    """The end of one rank, or of one pod's, which are told of by the first of them."""

    rank: int
    exit_code: int | None
    stopped: bool = False
    reason: str = ""
    at: Seconds = 0.0
    """Seconds of its node's clock: who was first, to within what the clocks differ."""
    gone_at: Seconds = 0.0
    """Seconds of our own clock: what the run is charged for."""
    node_lost: bool = False
    run_lost: bool = False
    unready: bool = False
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """See `RunEvent`."""

    exit_code: int | None
    stopped: bool
    reason: str
    node_lost: bool = False
    run_lost: bool = False
    unready: bool = False
    done: bool = False


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
        named = first.reason.startswith(_WHO)  # by a supervisor of several
        alone = len(ends) == 1 or first.exit_code is None
        return Ending(
            exit_code=first.exit_code,
            stopped=first.stopped,
            reason=first.reason if named or alone else f"{_WHO}{first.rank}: {first.reason}",
            run_lost=first.run_lost,
            unready=first.unready,
        )
    stopped, done = any(end.stopped for end in ends), any(end.done for end in ends)
    why = "done when asked to stop" if done else "stopped when asked"
    return Ending(exit_code=0, stopped=stopped, reason=why if stopped else "", done=done)
