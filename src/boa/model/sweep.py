"""A sweep: jobs of one class that differ in their parameters, and the rule by which losers end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

from boa.model.cluster import JobId
from boa.units import Seconds

Better: TypeAlias = Literal["min", "max"]
"""Which of two values of a metric is the better one."""
LOSS = "loss"
"""The metric that every report has a field of its own for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halving:
    """Successive halving: of the jobs that have done so many epochs the best part goes on."""

    metric: str = LOSS
    better: Better = "min"
    factor: int = 3
    """One of so many goes on, each time."""
    first: int = 1
    """Epochs before it is looked at first; then `factor` times as many, and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    id: str
    """s1, s2, …"""
    name: str
    job_class: str
    made_at: Seconds
    jobs: tuple[JobId, ...]
    epochs: int
    owner: str = ""
    team: str = ""
    halving: Halving | None = None
    rungs: Mapping[str, Mapping[JobId, float | None]] = field(default_factory=dict)
    """The metric of every job that got so far, by the number of epochs done; None: it was no
    number."""
    outcomes: Mapping[JobId, str] = field(default_factory=dict)
    """How those have ended that have."""
    finals: Mapping[JobId, float] = field(default_factory=dict)
    """The metric of those, where they reported it."""
    ended_usd: float = 0.0
    """Cost of those, in USD."""
    ended_at: Seconds | None = None

    @property
    def over(self) -> bool:
        return len(self.outcomes) == len(self.jobs)

    @property
    def outcome(self) -> str:
        """As of one job: it has succeeded if one of them has and none has failed; empty: not over
        yet."""
        if not self.over:
            return ""
        ends = set(self.outcomes.values())
        if "failed" in ends:
            return "failed"
        return "succeeded" if "succeeded" in ends else "stopped"

    def document(self) -> dict[str, Any]:
        rule = self.halving
        said = {name: getattr(self, name) for name in self.__slots__ if name != "halving"}
        if rule is not None:
            said["halving"] = {name: getattr(rule, name) for name in rule.__slots__}
        return said

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        rule = document.get("halving")
        said = {**document, "jobs": tuple(document["jobs"])}
        return cls(**{**said, "halving": None if rule is None else Halving(**rule)})
