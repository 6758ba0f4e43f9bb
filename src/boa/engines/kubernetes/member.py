"""One pod of a run: what was asked of it, and what is known."""

import time
from dataclasses import dataclass, field

from boa.engines.gang import RankEnd
from boa.engines.kubernetes.follower import Follower
from boa.engines.kubernetes.names import Part
from boa.engines.kubernetes.status import Outcome, PodState
from boa.units import Seconds

LOGS_S: Seconds = 15.0
"""Seconds, after all has ended, for the last of the output to arrive."""
STUCK_S: Seconds = 30.0
"""Beyond the grace, after which it is told that pods do not end."""
SIGKILL, SIGTERM = 9, 15


@dataclass(slots=True)
class Member:
    part: Part
    pod: PodState | None = None
    """As it was seen last; None: there was none, or there is none any more."""
    created: bool = False
    """Whether it was, as far as we know."""
    refused: str = ""
    """Why it could not be created yet."""
    going: bool = False
    """Whether its container was seen running, by this engine."""
    broken_since: Seconds | None = None
    wanted_at: Seconds | None = None
    """When it was first to be told to stop."""
    asked_s: Seconds | None = None
    """The grace that it was given when it was told to stop …"""
    asked_at: Seconds = 0.0
    """… and when."""
    deleted: str = ""
    """Somebody else has: in words."""
    forced: bool = False
    """Nobody will say that it has ended: it is to be removed without."""
    follower: Follower | None = None
    end: RankEnd | None = None
    ended_at: Seconds = field(default=0.0)

    def is_heard(self, now: Seconds, patience_s: Seconds) -> bool:
        """Whether what it prints when it is told to stop will arrive; after a while, that does not
        matter any more."""
        if self.wanted_at is None:
            self.wanted_at = now
        if self.follower is None or self.follower.following or now > self.wanted_at + patience_s:
            return True
        self.follower.hurry()
        return False

    def is_stuck(self, now: Seconds) -> bool:
        """Whether it goes on long after it was to have ended."""
        asked_s = self.asked_s
        return self.end is None and asked_s is not None and now - self.asked_at > asked_s + STUCK_S

    def is_logged(self, now: Seconds) -> bool:
        """Whether all that it printed is here, or does not come."""
        if self.follower is None:
            return True
        if self.pod is None or not self.pod.going:
            self.follower.finish({})  # of those that ended well it was told how much
        return self.follower.done or self.forced or now - self.ended_at > LOGS_S

    @property
    def name(self) -> str:
        return self.part.name

    def ends(
        self,
        code: int | None,
        reason: str,
        *,
        stopped: bool = False,
        node_lost: bool = False,
        run_lost: bool = False,
        unready: bool = False,
        done: bool = False,
        at: Seconds = 0.0,
        gone_at: Seconds = 0.0,
    ) -> None:
        """As we take it to have; what was known before stays."""
        if self.end is not None:
            return
        now = time.time()
        self.ended_at = time.monotonic()
        self.end = RankEnd(
            rank=self.part.ranks[0] if self.part.ranks else 0,
            exit_code=code,
            stopped=stopped,
            reason=reason,
            at=at or now,
            gone_at=min(gone_at or now, now),
            node_lost=node_lost,
            run_lost=run_lost,
            unready=unready,
            done=done,
        )

    def is_over(self, outcome: Outcome) -> None:
        """As its supervisor says, or else the kubelet."""
        assert self.pod is not None
        code, stopped, reason = outcome.code, outcome.stopped, outcome.reason
        told_to = self.asked_s is not None or bool(self.deleted)
        if not outcome.told and told_to and code == -SIGKILL:
            asked = "" if self.asked_s is None else f" {self.asked_s:g} s"
            stopped, reason = True, f"killed: still running{asked} after SIGTERM"
        elif not outcome.told and told_to and code == -SIGTERM:
            code, stopped, reason = 0, True, "stopped before it began"
        if self.deleted and stopped:
            reason = self.deleted if code == 0 else f"{reason} ({self.deleted})"
        self.ends(
            code,
            reason,
            stopped=stopped,
            node_lost=self.pod.node_leaves,
            run_lost=outcome.lost,
            done=outcome.done,
            at=outcome.at,
            gone_at=0.0 if self.going else outcome.at,
        )
