"""One actor of a run on the cluster: what was asked of it, and what is known."""

import time
from dataclasses import dataclass
from typing import Any

from boa.engines.gang import RankEnd
from boa.engines.mirror import Mirror
from boa.units import Seconds


@dataclass(slots=True)
class Member:
    """An actor, and what is known of it."""

    actor: Any
    node: str = ""
    rank: int | None = None
    """None: it holds a GPU for a process that another actor runs."""
    ref: Any = None
    asked_at: Seconds = 0.0
    answer: dict[str, Any] | None = None
    state: str = "idle"
    started: bool = False
    mirror: Mirror | None = None
    end: RankEnd | None = None
    silent_since: Seconds | None = None
    ask_at: Seconds = 0.0
    dead: str = ""
    """Ray says that the actor died: why."""

    def ask(self) -> None:
        """For news; the answer is `ref`'s."""
        seen = self.mirror.seen if self.mirror is not None else 0
        self.asked_at = time.monotonic()
        self.ref = self.actor.news.remote(seen, self.state)

    def tell_to_stop(self, grace_s: Seconds) -> None:
        if self.rank is not None and self.end is None and self.actor is not None:
            self.actor.stop.remote(grace_s)

    def ends(
        self, code: int | None, reason: str, *, stopped: bool = False, node_lost: bool = False
    ) -> None:
        """As we take it to have; what itself has told before stays."""
        if self.end is None:
            now = time.time()
            self.end = RankEnd(
                rank=self.rank or 0,
                exit_code=code,
                stopped=stopped,
                reason=reason,
                at=now,
                gone_at=now,
                node_lost=node_lost,
            )
